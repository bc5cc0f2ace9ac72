/**
 * `npm run soak`: the properties of every wire format over many more histories than `npm test` takes, every cut point
 * of every recorded transcript, each of them through every preset with every summariser, the simulator over more seeds, and
 * the exact tokenizers against others over more texts. Counts are shown as they come; the sum is
 * `bench/reports/soak-formats.json`, written when everything was run.
 *
 * `--histories N` for each format, `--seeds N` of the simulator, `--cuts some`, `--data core|full|none`, `--megabytes N` and
 * `--fuzzed N` texts for each encoding.
 * A run other than the whole one leaves the report as it is, unless `--report FILE` says where to write.
 */

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, relative } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { build as buildPackage } from "./build.mjs";
import { Problem, must, root, say, script } from "./process.mjs";
import { setup } from "./setup.mjs";

const committed = join(root, "bench/reports/soak-formats.json");
const usual = { histories: "100000", seeds: "50000", cuts: "all", megabytes: "50", fuzzed: "500000", data: present() };

await script(async () => {
  const { values: asked } = parseArgs({
    options: Object.fromEntries([...Object.keys(usual), "report"].map((name) => [name, { type: "string" }])),
  });
  const wanted = { ...usual, ...asked };
  const isWhole = Object.keys(usual).every((name) => wanted[name] === usual[name]);
  const started = Date.now();
  await setup({ tools: true });
  await buildPackage();
  const binaries = await build();
  const env = {
    CC_PROGRESS: "1",
    CC_HISTORIES: wanted.histories,
    CC_SIM_SEEDS: wanted.seeds,
    CC_CUTS: wanted.cuts,
    CC_DATA_SET: wanted.data,
  };
  const checks = [];
  for (const name of ["formats", "recorded", "summarisers", "simulation"]) {
    if (["recorded", "summarisers"].includes(name) && wanted.data === "none") continue;
    say("soak", `${name} (${minutes(started)})`);
    checks.push(...(await test(binaries[name], ["--nocapture", "--test-threads=1"], env)));
  }
  say("soak", `tokenizer (${minutes(started)})`);
  const sizes = { CC_TOKENIZER_MEGABYTES: wanted.megabytes, CC_TOKENIZER_FUZZ: wanted.fuzzed };
  checks.push(...(await test(process.execPath, [join(root, "tests/soak/tokenizer.mjs")], sizes)));
  const failures = checks.reduce((sum, { failures }) => sum + (failures ?? 0), 0);
  const report = { version: version(), ...numbers(wanted), failures, checks };
  const file = asked.report ?? (isWhole ? committed : undefined);
  if (file) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, written(report));
    say("soak", `${relative(root, file)} written`);
  }
  say("soak", `${checks.length} checks, ${failures} failures, ${minutes(started)}, ${availableParallelism()} cores`);
  if (failures > 0) process.exitCode = 1;
});

/** The fullest data set that is there. */
function present() {
  const data = process.env.CC_DATA ?? join(root, "../shared/data");
  return ["full", "core"].find((set) => existsSync(join(data, set))) ?? "none";
}

/** Builds the tests, optimised; resolves to the path of each by its name. */
async function build() {
  say("soak", "cargo test --profile soak --no-run");
  const args = ["test", "--package", "context-compactor-store-tests", "--profile", "soak", "--no-run"];
  const output = await must("cargo", [...args, "--message-format", "json-render-diagnostics"]);
  const artifacts = output.split("\n").filter((line) => line.startsWith("{"));
  const tests = artifacts.map((line) => JSON.parse(line)).filter(({ executable }) => executable);
  return Object.fromEntries(tests.map(({ target, executable }) => [target.name, executable]));
}

/** Runs the tests of a program one after the other (each uses every core); resolves to their counts. */
function test(binary, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(binary, args, {
      cwd: join(root, "crates/store-tests"),
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const counts = [];
    createInterface({ input: child.stdout }).on("line", (line) => {
      console.log(line);
      const found = line.match(/count (\{.*\})$/);
      if (found) counts.push(JSON.parse(found[1]));
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (signal) reject(new Problem(`soak: ended by ${signal}; nothing was written`));
      const failed = counts.some(({ failures }) => failures > 0);
      // A test that failed in a way that it did not count.
      if (code !== 0 && !failed) counts.push({ check: relative(root, binary), of: "the whole run", failures: 1 });
      resolve(counts);
    });
  });
}

function version() {
  const manifest = JSON.parse(readFileSync(join(root, "pkg/package.json"), "utf8"));
  return manifest.version;
}

function numbers({ histories, seeds, cuts, megabytes, fuzzed, data }) {
  const of = { histories, seeds, megabytes, fuzzed };
  return { ...Object.fromEntries(Object.entries(of).map(([name, text]) => [name, Number(text)])), cuts, data };
}

/** A line for each check, so that differences are readable. */
function written({ checks, ...head }) {
  const lines = checks.map(({ check, of, ...counts }) => `    ${JSON.stringify({ check, of, ...counts })}`);
  return `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "checks": [\n${lines.join(",\n")}\n  ]\n}\n`;
}

function minutes(started) {
  return `${((Date.now() - started) / 60_000).toFixed(1)} min`;
}
