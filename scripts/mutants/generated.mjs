/**
 * `npm run mutants -- --generated`: tries a sample of the mutants that `cargo xtask mutate` finds in the core and its crate of formats, and names
 * those that every test lets pass. All of them are compiled at once; a run of all tests tells first which of them come
 * by which mutant, and only those are run for it, the quickest first, until one fails.
 *
 * `--count 40 --seed 2` is another sample, `--survivors` tries those alone that the report does not have as caught,
 * `--resume` goes on where a run was stopped. The sample of the report is written to `tests/mutants/generated.json`; why a
 * survivor is one stands in `tests/mutants/generated.mjs`.
 */

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { COUNT, reasons, SEED } from "../../tests/mutants/generated.mjs";
import { must, Problem, root, say } from "../process.mjs";
import { mirror, ran } from "./tree.mjs";

const folder = join(root, "target/mutants/generated");
const tree = join(folder, "tree");
const list = join(folder, "mutants.tsv");
const without = join(folder, "without.tsv");
const progress = join(folder, "results.json");
const report = join(root, "tests/mutants/generated.json");
/** What gets switches, and what the names of its files begin with. */
const SOURCES = [["crates/wire/src", "wire/"], ["crates/core/src", ""]];

/** What cannot come to an end, or takes all memory, is told apart from what works. */
const TIMEOUT_MS = 30_000;
const MEMORY_KB = 4_000_000;
const BUILD_MS = 3_600_000;
/** Tests that are run at once take about as long as this together. */
const TURN_MS = 1_000;
/** Rounds of compiling until all that does not compile is left out. */
const ROUNDS = 12;

const env = {
  ...process.env,
  CARGO_TARGET_DIR: join(folder, "build"),
  CC_DATA: process.env.CC_DATA ?? join(root, "../shared/data"),
  RUST_BACKTRACE: "0",
};

export async function generated(args) {
  const number = (name, value) => (args.includes(name) ? Number(args[args.indexOf(name) + 1]) : value);
  const [count, seed] = [number("--count", COUNT), number("--seed", SEED)];
  if (!(count > 0 && seed > 0)) throw new Problem("mutants: --count and --seed are positive numbers");
  mkdirSync(folder, { recursive: true });
  copy();
  const mutants = await compiling();
  const programs = await build();
  const reached = await reach(programs, mutants);
  const chosen = sample(mutants, count, seed);
  const results = args.includes("--resume") && existsSync(progress) ? JSON.parse(readFileSync(progress, "utf8")) : {};
  if (args.includes("--survivors")) {
    const { mutants: caught } = JSON.parse(readFileSync(report, "utf8"));
    for (const mutant of caught) results[key(mutant)] = { by: mutant.by };
  }
  const started = Date.now();
  for (const [nth, mutant] of chosen.entries()) {
    const name = key(mutant);
    if (results[name]) continue;
    const before = Date.now();
    results[name] = await tried(mutant, reached.get(mutant.number) ?? []);
    writeFileSync(progress, JSON.stringify(results));
    const told = results[name].by ? `caught by ${results[name].by}` : `SURVIVES ${results[name].tests} tests`;
    say("mutants", `${nth + 1}/${chosen.length} ${shown(mutant)}: ${told} (${Date.now() - before} ms)`);
  }
  const survivors = chosen.filter((mutant) => !results[key(mutant)].by);
  const minutes = ((Date.now() - started) / 60_000).toFixed(1);
  say("mutants", `${chosen.length - survivors.length} of ${chosen.length} caught, ${minutes} min`);
  for (const mutant of survivors) console.log(`${shown(mutant)}${why(mutant) ? `: ${why(mutant)}` : ""}`);
  if (count === COUNT && seed === SEED) write(mutants, chosen, results);
}

/** Where the file of a mutant is. */
export function pathOf(file) {
  const [source, prefix] = SOURCES.find(([, prefix]) => file.startsWith(prefix));
  return `${source}/${file.slice(prefix.length)}`;
}

function key({ file, function: name, operator, text, to, nth }) {
  return [file, name, operator, text, to, nth].join("\t");
}

function shown({ file, function: name, operator, text, to }) {
  return `${file} ${name} ${operator} \`${text}\` → ${to}`;
}

function why(mutant) {
  const same = (entry) => ["file", "function", "operator", "text", "to"].every((name) => entry[name] === mutant[name]);
  return reasons.find(same)?.why;
}

/** Everything but the sources that get their switches. */
function copy() {
  mkdirSync(tree, { recursive: true });
  for (const name of ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "src", "xtask", "pkg", "bench"]) {
    if (!existsSync(join(tree, name))) symlinkSync(relative(tree, join(root, name)), join(tree, name));
  }
  const switched = SOURCES.map(([source]) => join(root, source));
  for (const name of ["crates", "docs", "tests"]) mirror(join(root, name), join(tree, name), switched);
}

/** The mutants, once all that does not compile is left out. */
async function compiling() {
  for (let round = 0; round < ROUNDS; round++) {
    const args = [join(root, "crates"), join(tree, "crates"), list, without];
    say("mutants", (await must("cargo", ["xtask", "mutate", ...args], { cwd: root })).trim());
    const mutants = read();
    const { text, code } = await cargo("check", "--lib");
    if (code === 0) return mutants;
    const errors = messages(text).filter(({ level }) => level === "error");
    const left = errors.flatMap((error) => culprits(error, mutants));
    if (left.length === 0) throw new Problem(`mutants: ${errors.map(({ rendered }) => rendered).join("\n")}`);
    const lines = existsSync(without) ? readFileSync(without, "utf8") : "";
    const names = new Set(left.map(({ line }) => `${line}\n`));
    writeFileSync(without, lines + [...names].join(""));
    say("mutants", `${names.size} do not compile`);
  }
  throw new Problem("mutants: there is always one that does not compile");
}

function cargo(command, ...args) {
  const packages = ["core", "core-tests", "wire"].map((name) => `--package=context-compactor-${name}`);
  const all = [command, ...packages, ...args, "--message-format", "json"];
  return ran("cargo", all, { cwd: tree, env, timeout: BUILD_MS });
}

function messages(text) {
  const lines = text.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line)).flatMap(({ message }) => (message?.spans ? [message] : []));
}

/** The smallest mutants that the places of an error lie in, or that lie in them. */
function culprits({ spans, children }, mutants) {
  const main = ({ is_primary }) => is_primary;
  const rest = [...spans.filter((span) => !main(span)), ...children.flatMap((child) => child.spans)];
  const places = [...spans.filter(main), ...rest];
  for (const { file_name, byte_start, byte_end } of places) {
    const ofFile = mutants.filter(({ file }) => file_name === pathOf(file));
    const around = ofFile.filter(({ start, end }) => start <= byte_start && byte_end <= end);
    if (around.length > 0) {
      const least = Math.min(...around.map(({ start, end }) => end - start));
      return around.filter(({ start, end }) => end - start === least);
    }
    const inside = ofFile.filter(({ start, end }) => byte_start <= start && end <= byte_end);
    if (inside.length > 0) return inside;
  }
  return [];
}

function read() {
  const seen = new Map();
  return readFileSync(list, "utf8").trim().split("\n").map((line) => {
    const [number, start, end, file, name, operator, text, to] = line.split("\t");
    const own = line.split("\t").slice(3).join("\t");
    const nth = seen.get(own) ?? 0;
    seen.set(own, nth + 1);
    return { number: Number(number), start: Number(start), end: Number(end), line: own, file, function: name, operator, text, to, nth };
  });
}

/** The programs of the core's tests. */
async function build() {
  const { text, code } = await cargo("test", "--lib", "--test", "all", "--no-run");
  if (code !== 0) throw new Problem(`mutants: ${messages(text).map(({ rendered }) => rendered).join("\n")}`);
  const lines = text.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line)).flatMap(({ executable }) => executable ?? []);
}

/** Which tests come by a mutant, the quickest first. */
async function reach(programs, mutants) {
  const record = join(folder, "reached.tsv");
  const stamp = programs.map((program) => `# ${program} ${statSync(program).mtimeMs}\n`).join("");
  if (!existsSync(record) || !readFileSync(record, "utf8").startsWith(stamp)) {
    rmSync(record, { force: true });
    let told = stamp;
    for (const [nth, program] of programs.entries()) {
      const file = join(folder, `reached-${nth}.tsv`);
      rmSync(file, { force: true });
      // A test that is run alone has no thread of its own, whose name would say which it is.
      const options = { cwd: join(tree, "crates/core"), env: { ...env, CC_MUTANT_REACHED: file }, timeout: BUILD_MS };
      const { text, code } = await ran(program, ["--test-threads", `${Math.max(2, availableParallelism())}`], options);
      if (code !== 0) throw new Problem(`mutants: tests fail without a mutant:\n${text.slice(-2_000)}`);
      const tests = new Set(Array.from(text.matchAll(/^test (\S+) .*\bok$/gm), ([, name]) => name));
      const lines = readFileSync(file, "utf8").split("\n").filter((line) => tests.has(line.split("\t")[0]));
      told += lines.map((line) => `${nth}\t${line}\n`).join("");
      say("mutants", `${relative(folder, program)}: ${tests.size} tests`);
    }
    writeFileSync(record, told);
  }
  const reached = new Map(mutants.map(({ number }) => [number, []]));
  for (const line of readFileSync(record, "utf8").split("\n").filter((line) => /^\d/.test(line))) {
    const [program, name, micros, numbers] = line.split("\t");
    const test = { program: programs[Number(program)], name, ms: Number(micros) / 1_000 };
    for (const number of numbers.split(",")) reached.get(Number(number))?.push(test);
  }
  for (const tests of reached.values()) tests.sort((one, other) => one.ms - other.ms);
  return reached;
}

/** The sample of a seed: what is added elsewhere leaves most of it as it was. */
function sample(mutants, count, seed) {
  const place = (mutant) => createHash("sha256").update(`${seed}\t${key(mutant)}`).digest("hex");
  const placed = mutants.map((mutant) => [place(mutant), mutant]).sort(([one], [other]) => (one < other ? -1 : 1));
  return placed.slice(0, count).map(([, mutant]) => mutant);
}

/** The first test that fails with a mutant. */
async function tried({ number }, tests) {
  const rest = [...tests];
  while (rest.length > 0) {
    const { program } = rest[0];
    const turn = [];
    let ms = 0;
    while (rest.length > 0 && rest[0].program === program && (turn.length === 0 || ms + rest[0].ms <= TURN_MS)) {
      ms += rest[0].ms;
      turn.push(rest.shift().name);
    }
    const limit = TIMEOUT_MS + ms * 20;
    const limited = ["-c", `ulimit -v ${MEMORY_KB}; exec "$0" "$@"`, program, "--exact", "--test-threads", "1", ...turn];
    const options = { cwd: join(tree, "crates/core"), env: { ...env, CC_MUTANT: String(number) }, timeout: limit };
    const { text, code } = await ran("sh", limited, options);
    if (code === 0) continue;
    const by = /^test (\S+) .*\bFAILED$/m.exec(text)?.[1];
    return { by: by ?? `${turn[0]} (${code === null ? "does not end" : "ends at once"})` };
  }
  return { tests: tests.length };
}

/** The sample of the report, so that a difference can be read. */
function write(mutants, chosen, results) {
  const plain = ({ file, function: name, operator, text, to, nth }) => ({ file, function: name, operator, text, to, nth });
  const survivors = chosen.filter((mutant) => !results[key(mutant)].by);
  const caught = chosen.filter((mutant) => results[key(mutant)].by);
  const lines = (entries) => entries.map((entry) => `    ${JSON.stringify(entry)}`).join(",\n");
  const head = { seed: SEED, of: mutants.length, count: chosen.length, caught: caught.length };
  const fields = Object.entries(head).map(([name, value]) => `  "${name}": ${value},\n`).join("");
  const told = survivors.map((mutant) => ({ ...plain(mutant), why: why(mutant) ?? "no test sees it yet" }));
  const by = caught.map((mutant) => ({ ...plain(mutant), by: results[key(mutant)].by }));
  writeFileSync(report, `{\n${fields}  "survivors": [\n${lines(told)}\n  ],\n  "mutants": [\n${lines(by)}\n  ]\n}\n`);
  say("mutants", `${relative(root, report)} written`);
}
