/** H25: the jobs of CI run what there is, and all of it. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { checks, compiled, lints } from "../../scripts/lint.mjs";

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
