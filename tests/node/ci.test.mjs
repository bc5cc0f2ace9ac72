/** H25: the jobs of CI run what there is, and all of it. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { checks, compiled, lints } from "../../scripts/lint.mjs";
import { incomplete, skippedIn } from "../../scripts/test/skips.mjs";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");
const folder = ".github/workflows/";
const workflows = readdirSync(new URL(folder, root)).map((file) => read(folder + file)).join("\n");
const runs = Array.from(workflows.matchAll(/\brun: (npm (?:test|run).*?)(?: }|$)/gm), ([, command]) => command);

/** Tiers, as the script tells who asks for another. */
const tiers = spawnSync(process.execPath, [fileURLToPath(new URL("scripts/test.mjs", root)), "?"], { encoding: "utf8" })
  .stderr.match(/there are (.*)/)[1]
  .split(", ");

test("H25: every job runs a script, a tier or a lint that there is", () => {
  const { scripts } = JSON.parse(read("package.json"));
  const names = [...checks, ...lints, ...compiled].map(([name]) => name);
  assert.ok(runs.length > 10);
  for (const command of runs) {
    const [, script, argument] = command.match(/^npm (?:run )?([\w-]+)(?: -- (\S+))?$/) ?? [];
    assert.ok(script in scripts, command);
    if (script === "test") assert.ok(tiers.includes(argument), command);
    if (script === "lint") assert.ok(names.some((name) => name.startsWith(argument)), command);
  }
});

test("H25: every tier has a job, the hosts one for each part", () => {
  const inJobs = runs.map((command) => command.match(/^npm test -- (\S+)$/)?.[1]).filter(Boolean);
  assert.deepEqual(inJobs.toSorted(), tiers.filter((tier) => tier !== "hosts").toSorted());
});

test("H25: CI fails where a test is skipped as something is missing, data excepted", () => {
  const file = `import { describe, test } from "node:test";
    describe('an engine', { skip: 'WebKitGTK is not installed' }, () => test('never', () => {}));
    test('syncs', (context) => context.skip('strace is not installed'));
    test('recorded', { skip: 'no transcripts (CC_DATA)' }, () => {});
    test('run', () => {});`;
  const args = ["--input-type=module", "--test-reporter=tap", "--eval", file];
  // A run of its own, and no part of this one.
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", env });
  assert.equal(stderr, "");
  const skipped = skippedIn(stdout);
  assert.deepEqual(skipped.map(({ name }) => name), ["an engine", "syncs", "recorded"]);
  assert.deepEqual(incomplete(skipped).map(({ why }) => why), ["WebKitGTK is not installed", "strace is not installed"]);
  assert.match(read(".ci/run"), /^exec npm test -- --complete$/m);
});
