/** The tests in Rust: built once, by one call of cargo, and run as programs, with the time of each test. */

import { dirname, join, relative } from "node:path";
import { Problem, root } from "../process.mjs";
import { failedAtLeastOnce, logged } from "./runner.mjs";

const crates = join(root, "crates");

/**
 * Builds the tests of the packages; resolves to their programs as `{ owner, executable, cwd }`. Examples are no tests: the
 * lints compile them. In the profile `dev` what changes often is compiled soon, and runs slowly.
 */
export async function buildTests(log, packages, { targets = ["--lib", "--test", "*"], profile = "test" } = {}) {
  // With the build tool, which decides on the features of what they depend on: so that all calls share what they compile.
  const names = new Set([...packages, "xtask"]);
  const args = ["test", "--no-run", "--profile", profile, ...targets, ...Array.from(names, (name) => `--package=${name}`)];
  const { ok, output } = await logged(log, "cargo", [...args, "--message-format", "json-render-diagnostics"]);
  if (!ok) throw new Problem(`cargo ${args.join(" ")} failed`);
  return output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
    .filter(({ executable, profile }) => executable && profile.test)
    .map(({ manifest_path, target, executable }) => {
      const cwd = dirname(manifest_path);
      // As `core/tests/all`.
      return { owner: `${relative(crates, cwd)}/${target.name}`, executable, cwd };
    });
}

/** Runs one of them. */
export async function runTests(log, { executable, cwd, owner }, args = []) {
  // The times of single tests are shown to whoever asks for what is not stable yet.
  const timed = ["-Zunstable-options", "--report-time"];
  const { ok, output } = await logged(log, executable, [...timed, ...args], { cwd, env: { RUSTC_BOOTSTRAP: "1" } });
  const result = { passed: 0, failed: 0, skipped: 0 };
  for (const [, passed, failed, ignored] of output.matchAll(
    /^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored/gm,
  )) {
    result.passed += Number(passed);
    result.failed += Number(failed);
    result.skipped += Number(ignored);
  }
  result.failures = Array.from(output.matchAll(/^test (\S+) \.\.\. FAILED/gm), ([, name]) => `${owner} ${name}`);
  result.slowest = Array.from(output.matchAll(/^test (\S+) .*<([\d.]+)s>$/gm), ([, name, seconds]) => ({
    name: `${owner} ${name}`,
    ms: Number(seconds) * 1000,
  }));
  return failedAtLeastOnce(result, ok);
}

/** The sum of several results. */
export function total(results) {
  const sum = (key) => results.reduce((all, result) => all + (result[key] ?? 0), 0);
  return {
    passed: sum("passed"),
    failed: sum("failed"),
    skipped: sum("skipped"),
    failures: results.flatMap(({ failures = [] }) => failures),
    slowest: results.flatMap(({ slowest = [] }) => slowest),
  };
}
