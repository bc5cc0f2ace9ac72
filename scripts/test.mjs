/**
 * `npm test`: sets up, builds, and runs every check and test. Nothing stops it before the end; the last line is
 * `N passed, N failed`, and a check that fails counts as one failure.
 */

import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { build } from "./build.mjs";
import { lint } from "./lint.mjs";
import { root, run, script } from "./process.mjs";
import { setup } from "./setup.mjs";

/** Where Node's runner leaves its counts. */
const reports = join(root, "target/test-reports");

await script(async () => {
  await setup({ tools: true, browsers: true });
  await build();
  const results = (await lint()).map((name) => ({ name, passed: 0, failed: 1, skipped: 0 }));
  results.push(await cargo("--workspace", "--exclude", "xtask"));
  // In the profile that the build has compiled it in already.
  results.push(await cargo("--package", "xtask", "--profile", "dev"));
  for (const folder of groups()) results.push(await node(folder));
  summarise(results);
});

function heading(name) {
  console.log(`\n== ${name}`);
}

/** Rust tests: unit tests and those of the documentation. */
async function cargo(...selection) {
  const args = ["test", ...selection, "--no-fail-fast"];
  const result = { name: `cargo ${args.join(" ")}`, passed: 0, failed: 0, skipped: 0 };
  heading(result.name);
  const { ok, output } = await run("cargo", args, { output: "both" });
  for (const [, passed, failed, ignored] of output.matchAll(
    /^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored/gm,
  )) {
    result.passed += Number(passed);
    result.failed += Number(failed);
    result.skipped += Number(ignored);
  }
  result.failures = [...output.matchAll(/^test (.+) \.\.\. FAILED$/gm)].map(([, name]) => name);
  return failedAtLeastOnce(result, ok);
}

/** Folders with tests: those of tests/ in the order of what they build on, and the demo's. */
function groups() {
  const order = ["node", "conformance", "browser", "workerd", "packaging"];
  const others = readdirSync(join(root, "tests"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== "node_modules" && !order.includes(entry.name))
    .map((entry) => entry.name);
  return [...order, ...others]
    .map((name) => join("tests", name))
    .concat("bench", "www")
    .filter((folder) => testFiles(folder).length > 0);
}

/** Files `*.test.mjs` below a folder. Node 20 takes no patterns. */
function testFiles(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return ["node_modules", "dist"].includes(entry.name) ? [] : testFiles(path);
      return entry.name.endsWith(".test.mjs") ? [path] : [];
    })
    .sort();
}

async function node(folder) {
  heading(folder);
  mkdirSync(reports, { recursive: true });
  const name = join(reports, relative(".", folder).replaceAll(/\W/g, "-"));
  const [report, failures] = [`${name}.tap`, `${name}.failures`];
  for (const file of [report, failures]) rmSync(file, { force: true });
  const { ok } = await run(process.execPath, [
    "--test",
    // Of a file too, and real browsers are slow on a busy machine: what waits has shorter limits of its own.
    "--test-timeout=600000",
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    "--test-reporter=tap",
    `--test-reporter-destination=${report}`,
    `--test-reporter=${join(root, "scripts/failures.mjs")}`,
    `--test-reporter-destination=${failures}`,
    ...testFiles(folder),
  ]);
  const text = existsSync(report) ? readFileSync(report, "utf8") : "";
  const count = (word) => Number(text.match(new RegExp(`^# ${word} (\\d+)$`, "m"))?.[1] ?? 0);
  const result = {
    name: folder,
    passed: count("pass"),
    failed: count("fail") + count("cancelled"),
    skipped: count("skipped") + count("todo"),
    failures: existsSync(failures) ? [readFileSync(failures, "utf8").trimEnd()].filter(Boolean) : [],
  };
  return failedAtLeastOnce(result, ok);
}

/** A run that ended badly has failed, whatever it counted. */
function failedAtLeastOnce(result, ok) {
  return ok || result.failed > 0 ? result : { ...result, failed: 1 };
}

function summarise(results) {
  heading("summary");
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  for (const { name, passed, failed, skipped } of results) {
    console.log(`${name}: ${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
  }
  if (sum("failed") > 0) process.exitCode = 1;
  for (const { name, failures = [] } of results) {
    for (const failure of failures) console.log(`\nfailed in ${name}: ${failure}`);
  }
  console.log(`\n${sum("passed")} passed, ${sum("failed")} failed`);
}
