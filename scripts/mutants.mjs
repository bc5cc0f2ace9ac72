/**
 * `npm run mutants`: breaks the code in small ways (`tests/mutants/`), one at a time and in a copy of the tree, and expects
 * the tests that carry the id of the behaviour to fail. A mutant that they let pass, or that does not compile, fails the
 * run. What failed is written to `bench/reports/mutants.json`.
 *
 * `npm run mutants -- S1.4 S3` runs those of S1.4 and of the whole of S3, `npm run mutants -- new` those that the report
 * does not have; it keeps what it says of the others. `npm run mutants -- --generated` tries mutants that nobody wrote
 * (`mutants/generated.mjs`).
 */

import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { carries, mutants } from "../tests/mutants/index.mjs";
import { generated } from "./mutants/generated.mjs";
import { mirror, ran } from "./mutants/tree.mjs";
import { Problem, must, root, say, script } from "./process.mjs";

const tree = join(root, "target/mutants/tree");
const report = join(root, "bench/reports/mutants.json");

/** What a mutant may change, and whose tests must see the change. What cargo needs besides are links. */
const COPIED = ["crates", "tests", "pkg"];
const LINKED = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "src", "xtask", "js"];

/** A mutant must not go on for ever; a test of the package is told apart sooner. */
const TIMEOUT_MS = 120_000;
const NODE_TIMEOUT_MS = 20_000;

const env = {
  ...process.env,
  CARGO_TARGET_DIR: join(root, "target/mutants/build"),
  CC_DATA: process.env.CC_DATA ?? join(root, "../shared/data"),
  RUST_BACKTRACE: "0",
};

await script(async () => {
  const asked = process.argv.slice(2);
  if (asked.includes("--generated")) return generated(asked);
  const killed = new Map(known().map((entry) => [key(entry), entry]));
  const isNew = (mutant) => killed.get(key(mutant))?.file !== mutant.file;
  const names = (name, { id }) => id === name || id.startsWith(`${name}.`);
  const isAsked = (mutant) => asked.some((name) => (name === "new" ? isNew(mutant) : names(name, mutant)));
  const chosen = asked.length === 0 ? mutants : mutants.filter(isAsked);
  if (chosen.length === 0) throw new Problem(`mutants: none of ${asked.join(", ")}`);
  const started = Date.now();
  copy();
  await green(chosen);
  const failures = [];
  for (const [nth, mutant] of chosen.entries()) {
    const { id, what } = mutant;
    const { red, problem } = await broken(mutant);
    killed.delete(key(mutant));
    if (red.length > 0) killed.set(key(mutant), { id, what, file: mutant.file, red });
    else failures.push(`${id} ${what}: ${problem}`);
    const told = red.length > 0 ? `red: ${red.join(", ")}` : `NOT RED: ${problem}`;
    say("mutants", `${nth + 1}/${chosen.length} ${id} ${what}: ${told}`);
  }
  write(killed);
  const minutes = ((Date.now() - started) / 60_000).toFixed(1);
  for (const failure of failures) console.log(failure);
  say("mutants", `${chosen.length - failures.length} red, ${failures.length} not, ${minutes} min`);
  if (failures.length > 0) process.exitCode = 1;
});

function key({ id, what }) {
  return `${id} ${what}`;
}

/** Brings the copy up to date. Only what differs is written: what was compiled stays as long as it can. */
function copy() {
  if (!existsSync(join(root, "pkg/core.wasm"))) throw new Problem("mutants: `npm run build` first");
  mkdirSync(tree, { recursive: true });
  for (const name of LINKED) {
    if (!existsSync(join(tree, name))) symlinkSync(relative(tree, join(root, name)), join(tree, name));
  }
  for (const name of COPIED) mirror(join(root, name), join(tree, name));
  // The tests of the copy take the package of the copy.
  const self = join(tree, "node_modules/context-compactor");
  mkdirSync(dirname(self), { recursive: true });
  if (!existsSync(self)) symlinkSync("../pkg", self);
}

/** Without any mutant the tests are there, and pass. */
async function green(chosen) {
  for (const target of new Set(chosen.flatMap(({ tests }) => tests))) {
    const ids = [...new Set(chosen.filter(({ tests }) => tests.includes(target)).map(({ id }) => id))];
    const { passed, failed, problem } = await tests(target, ids);
    if (problem) throw new Problem(`mutants: ${target}: ${problem}`);
    if (failed.length > 0) throw new Problem(`mutants: ${target} fails without a mutant: ${failed.join(", ")}`);
    const none = ids.filter((id) => !passed.some((name) => carries(name, id)));
    if (none.length > 0) throw new Problem(`mutants: ${target} has no test of ${none.join(", ")}`);
    say("mutants", `${target}: ${passed.length} tests pass without a mutant`);
  }
}

/** The tests of a mutant's id that fail with it; else what is wrong with the mutant, or with the tests. */
async function broken({ id, file, from, to, tests: targets }) {
  const source = readFileSync(join(root, file), "utf8");
  // No replacement pattern means anything.
  const { problem, undo } = await put(file, source.split(from).join(to));
  if (problem) return { red: [], problem };
  try {
    const red = [];
    for (const target of targets) {
      const { failed, problem } = await tests(target, [id]);
      if (problem) return { red: [], problem };
      red.push(...failed);
    }
    return { red, problem: "every test passes" };
  } finally {
    undo();
  }
}

/** Puts a changed file into the copy, or says why not; `undo` takes it out again. */
async function put(file, text) {
  if (!file.startsWith("js/")) {
    writeFileSync(join(tree, file), text);
    return { undo: () => cpSync(join(root, file), join(tree, file)) };
  }
  const { default: typescript } = await import("typescript");
  const { outputText, diagnostics } = typescript.transpileModule(text, {
    compilerOptions: {
      target: typescript.ScriptTarget.ES2022,
      module: typescript.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
    },
    reportDiagnostics: true,
  });
  if (diagnostics.length > 0) return { problem: "does not compile" };
  const output = file.replace(/^js\//, "pkg/dist/").replace(/\.ts$/, ".js");
  writeFileSync(join(tree, output), outputText);
  // Node takes other files, made of these.
  await must(process.execPath, ["scripts/packages.mjs", "pkg"], { cwd: tree });
  return { undo: () => [output, "pkg/node"].forEach((path) => cpSync(join(root, path), join(tree, path), { recursive: true })) };
}

/** Runs the tests of a target whose names carry one of the ids. */
async function tests(target, ids) {
  return target.endsWith(".mjs") ? nodeTests(target, ids) : rustTests(target, ids);
}

/** `lib` are the unit tests of the core, any other name is a module of its other tests, or of those of `store-tests/name`. */
async function rustTests(target, ids) {
  const [name, owner = name === "lib" ? "core" : "core/tests"] = target.split("/").reverse();
  const selection = name === "lib" ? ["--lib"] : ["--test", name === "allocations" ? name : "all"];
  // Most of the time goes into compiling.
  const args = ["test", "--profile", "dev", "--package", `context-compactor-${owner.replace("/", "-")}`, ...selection, "--no-run"];
  let output;
  try {
    output = await must("cargo", [...args, "--message-format", "json-render-diagnostics"], { cwd: tree, env });
  } catch (error) {
    const errors = error.message.split("\n").filter((line) => line.startsWith("error"));
    return { passed: [], failed: [], problem: ["does not compile", ...errors].join("\n") };
  }
  const artifacts = output.split("\n").filter((line) => line.startsWith("{"));
  const { executable } = artifacts.map((line) => JSON.parse(line)).findLast(({ executable }) => executable);
  const cwd = join(tree, "crates", owner);
  const list = await ran(executable, ["--list"], { cwd, env, timeout: TIMEOUT_MS });
  const inside = selection.includes("all") ? `${name}::` : "";
  const wanted = Array.from(list.text.matchAll(/^(\S+): test$/gm), ([, test]) => test).filter(
    (test) => test.startsWith(inside) && ids.some((id) => carries(test, id)),
  );
  if (wanted.length === 0) return { passed: [], failed: [] };
  const { text, code } = await ran(executable, ["--exact", ...wanted], { cwd, env, timeout: TIMEOUT_MS });
  const named = (word) =>
    Array.from(text.matchAll(new RegExp(`^test (\\S+) .*\\b${word}$`, "gm")), ([, name]) => name);
  return { passed: named("ok"), failed: named("FAILED"), ...(code === null ? { problem: "does not end" } : {}) };
}

async function nodeTests(file, ids) {
  const pattern = ids.map((id) => `${id.replace(".", "[._]")}(?!\\d)`).join("|");
  const args = ["--test", "--test-reporter=tap", `--test-name-pattern=/${pattern}/i`];
  args.push(`--test-timeout=${NODE_TIMEOUT_MS}`, file);
  const { text, code } = await ran(process.execPath, args, { cwd: tree, env, timeout: TIMEOUT_MS });
  const lines = Array.from(text.matchAll(/^\s*(ok|not ok) \d+ - (.*?)( # .*)?$/gm)).filter(([, , , skip]) => !skip);
  const named = (word) =>
    lines.map(([, result, name]) => result === word && name).filter((name) => name && ids.some((id) => carries(name, id)));
  return { passed: named("ok"), failed: named("not ok"), ...(code === null ? { problem: "does not end" } : {}) };
}

/** What the report says of mutants so far. */
function known() {
  return existsSync(report) ? JSON.parse(readFileSync(report, "utf8")).mutants : [];
}

/** A line for each mutant, in the order of the table, so that differences are readable. */
function write(killed) {
  const { version } = JSON.parse(readFileSync(join(root, "pkg/package.json"), "utf8"));
  const entries = mutants.map((mutant) => killed.get(key(mutant))).filter(Boolean);
  const lines = entries.map((entry) => `    ${JSON.stringify(entry)}`);
  const text = `{\n  "version": ${JSON.stringify(version)},\n  "mutants": [\n${lines.join(",\n")}\n  ]\n}\n`;
  mkdirSync(dirname(report), { recursive: true });
  writeFileSync(report, text);
  say("mutants", `${relative(root, report)} written: ${entries.length} of ${mutants.length}`);
}
