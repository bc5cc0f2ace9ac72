/**
 * Kills of browsers while pages append and compact (`storage` rows 1 to 4). `CC_KILLS` says how many for each engine,
 * `CC_KILLS_SEED` repeats what was done. `npm run soak -- --only kills` does hundreds.
 */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ENGINES, missing } from "../support/engines.mjs";
import { killBrowser } from "../support/kills.mjs";

const kills = Number(process.env.CC_KILLS ?? 3);
const seed = Number(process.env.CC_KILLS_SEED ?? Date.now() % 1_000_000);
const chosen = process.env.CC_BROWSERS?.split(",") ?? Object.keys(ENGINES);

for (const engine of chosen) {
  describe(engine, { skip: missing(engine) }, () => {
    test("browser, renderer and storage killed: what was acknowledged is there, once and in order", async (t) => {
      const sum = await killBrowser(engine, { kills, seed });
      const counts = sum.counts();
      t.diagnostic(`count ${JSON.stringify(counts)}`);
      assert.deepEqual(sum.problems, [], `CC_KILLS_SEED=${seed} repeats it`);
      assert.equal(counts.kills, kills);
      assert.ok(counts["acknowledged messages"] > kills * 4);
    });
  });
}
