/** The checks of a file store can fail: each way to do it wrong is found. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { checks as faultChecks } from "../support/file-checks.mjs";
import { damageChecks } from "../support/file-damage.mjs";
import { gapChecks } from "../support/file-gaps.mjs";
import { seedChecks } from "../support/file-seeds.mjs";
import { folder, loadStore, QUICK, release } from "../support/file-store.mjs";
import { mutants } from "../support/file-store-mutants.mjs";

const checks = { ...faultChecks, ...damageChecks, ...gapChecks, ...seedChecks };
/** Where it has not failed by then, it hangs. */
const HANGS_MS = 60_000;

for (const [name, { caughtBy, changes }] of Object.entries(mutants)) {
  test(`${name} is caught by: ${caughtBy}`, async (context) => {
    const library = await loadStore([QUICK, ...changes]);
    let timer;
    const hangs = new Promise((_, reject) => (timer = setTimeout(reject, HANGS_MS, new Error("it hangs"))));
    const failed = await Promise.race([checks[caughtBy](library, await folder(context)), hangs]).then(
      () => undefined,
      (error) => error,
    );
    clearTimeout(timer);
    await release(library.disk);
    assert.ok(failed, "the check passed");
    context.diagnostic(String(failed.message).split("\n")[0]);
  });
}
