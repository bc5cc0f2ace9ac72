/**
 * `npm test`: sets up, builds each thing once, and runs every check and test. `npm test -- engine node` runs those tiers alone,
 * `npm test -- workers` a part of the tier `hosts`. With `--complete`, as CI has it, a test that is skipped as something is
 * missing is one that failed.
 *
 * Rust, the tests in Node and the hosts run side by side. Nothing stops it before the end. Every step prints
 * its time, a check that fails counts as one failure, and the last line is `N passed, N failed`.
 */

import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { buildTool, runTool } from "./build.mjs";
import { checks, compiled, lints } from "./lint.mjs";
import { Problem, root, script } from "./process.mjs";
import { rust as setupRust, setup } from "./setup.mjs";
import { runFiles, testFiles } from "./test/node.mjs";
import { heartbeat, logged, minutes, step } from "./test/runner.mjs";
import { incomplete } from "./test/skips.mjs";
import { buildTests, runTests, total } from "./test/rust.mjs";

/** Crates with tests that take no longer than a minute together, and the one with the simulator and the properties. */
const ENGINE = ["core", "core-tests", "estimator", "evaluator", "scan", "tokenizer", "wire"].map((name) => `context-compactor-${name}`);
const LONG = ["context-compactor-store-tests"];

/** Folders of Node's runner, in the order of what they build on. What is in none of them is a host. */
const NODE = ["tests/node", "tests/conformance", "tests/formats", "tests/adapters"];
const HOSTS = { browsers: "tests/browser", workers: "tests/workerd", packaging: "tests/packaging", demo: "www" };

/** Hosts whose tests mostly wait: they run beside those in Node. The others are for whichever of the two ends first. */
const LIVE = [HOSTS.browsers, HOSTS.workers];

/** Where every major of what others make is tested, and not the newest alone; and what tests nothing else, which npm installs. It
 *  runs when it is asked for. */
const MATRIX = ["tests/formats", "tests/adapters"];
const ENVIRONMENTS = "tests/matrix";

const TIERS = ["style", "engine", "node", "hosts", "long", "matrix", ...Object.keys(HOSTS)];

await script(async () => {
  const asked = process.argv.slice(2).filter((word) => word !== "--complete");
  const isComplete = process.argv.includes("--complete");
  const unknown = asked.filter((tier) => !TIERS.includes(tier));
  if (unknown.length > 0) throw new Problem(`npm test: no tier ${unknown.join(", ")}; there are ${TIERS.join(", ")}`);
  const wanted = (tier) => asked.length === 0 || asked.includes(tier);
  const hosts = wanted("hosts")
    ? [...Object.values(HOSTS), ...others()]
    : asked.filter((tier) => tier in HOSTS).map((tier) => HOSTS[tier]);
  const needsRust = wanted("engine") || wanted("long");
  const isMatrix = asked.includes("matrix");
  const needsPackage = wanted("node") || hosts.length > 0 || wanted("style") || isMatrix;
  const started = Date.now();
  const results = [];
  const run = async (name, work) => {
    const done = await step(name, work);
    const missing = isComplete ? incomplete(done.skips) : [];
    done.failed += missing.length;
    done.failures.push(...missing.map(({ name, why }) => `${name}: skipped: ${why}`));
    results.push(done);
  };
  const stop = heartbeat();

  await setupRust();
  // Rust needs none of the packages and browsers: it is built while they are installed.
  const ready = setup({ tools: true, browsers: hosts.length > 0 || isMatrix, databases: wanted("node") || isMatrix });
  // What it says is told in its step.
  ready.catch(() => {});
  // Before the tests in Rust take cargo's lock for minutes: the package is then built beside them.
  let tool;
  if (needsPackage) await run("build the build tool", async () => void (tool = await buildTool()));
  const rust = async () => {
    if (needsRust) {
      let programs = [];
      const packages = [...(wanted("engine") ? ENGINE : []), ...(wanted("long") ? LONG : [])];
      await run("build the tests in Rust", async (log) => {
        programs = await buildTests(log, packages, {
          targets: ["--lib", "--test", "*", ...(wanted("engine") ? ["--bins"] : [])],
        });
      });
      const isLong = ({ owner }) => owner.startsWith("store-tests/");
      if (wanted("engine")) {
        await run("engine", (log) => inTurn(programs.filter((program) => !isLong(program)), (one) => runTests(log, one)));
      }
      if (wanted("long")) {
        await run("long", (log) => inTurn(programs.filter(isLong), (one) => runTests(log, one)));
      }
    }
    if (wanted("style")) for (const check of compiled) await run(...commandOf(check));
  };
  const javascript = async () => {
    await run("set up", async () => void (await ready));
    if (needsPackage) await run("build the package", async () => void (await runTool(tool)));
    if (wanted("style")) for (const check of [...checks, ...lints]) await run(...commandOf(check));
    if (isMatrix) process.env.CC_MAJORS = "all";
    const matrix = isMatrix && !wanted("node") ? MATRIX : [];
    const environments = isMatrix ? [ENVIRONMENTS] : [];
    const inFolders = async (folders, ...args) => {
      for (const folder of folders) await run(folder, (log) => runFiles(log, folder, testFiles(folder), args));
    };
    const all = `--test-concurrency=${availableParallelism()}`;
    const isLive = (folder) => LIVE.includes(folder);
    const rest = [...hosts.filter((folder) => !isLive(folder)), ...environments];
    const thenTheRest = async (first) => {
      await first;
      while (rest.length > 0) await inFolders([rest.shift()]);
    };
    const node = inFolders(wanted("node") ? NODE : matrix, all);
    await Promise.all([node, inFolders(hosts.filter(isLive))].map(thenTheRest));
  };
  await Promise.all([rust(), javascript()]);
  stop();
  summarize(results, Date.now() - started);
});

/** A check of the linter as a step. */
function commandOf([name, command, args]) {
  return [name, async (log) => ({ failed: (await logged(log, command, args)).ok ? 0 : 1 })];
}

async function inTurn(programs, work) {
  const results = [];
  for (const program of programs) results.push(await work(program));
  return total(results);
}

/** Folders with tests that are not in the lists above. */
function others() {
  return readdirSync(join(root, "tests"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== "node_modules")
    .map((entry) => `tests/${entry.name}`)
    .filter((folder) => ![...NODE, ...Object.values(HOSTS), ENVIRONMENTS].includes(folder) && testFiles(folder).length > 0);
}

/** Times of every step, the slowest tests, what failed and why; and the sum. */
function summarize(results, ms) {
  const sum = (key) => results.reduce((all, result) => all + result[key], 0);
  console.log("\n== steps");
  for (const { name, passed, failed, skipped, ms } of results) {
    const counts = passed + failed + skipped > 0 ? `${passed} passed, ${failed} failed, ${skipped} skipped` : "";
    console.log(`${minutes(ms).padStart(6)}  ${name.padEnd(34)} ${counts}`.trimEnd());
  }
  console.log(`${minutes(ms).padStart(6)}  in all, with Rust beside the rest`);
  console.log("\n== slowest tests");
  const slowest = results.flatMap(({ slowest }) => slowest).sort((one, other) => other.ms - one.ms);
  for (const { name, ms } of slowest.slice(0, 15)) console.log(`${minutes(ms).padStart(6)}  ${name}`);
  if (sum("failed") > 0) process.exitCode = 1;
  for (const { name, failures } of results) {
    for (const failure of failures) console.log(`\nfailed in ${name}: ${failure}`);
  }
  console.log(`\n${sum("passed")} passed, ${sum("failed")} failed`);
}
