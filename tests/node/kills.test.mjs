/** Kills of processes that append and compact, on every store that outlives them. `CC_KILLS` says how many. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { killProcess } from "../support/kills-node.mjs";
import { durable } from "../support/stores.mjs";

const kills = Number(process.env.CC_KILLS ?? 3);
const seed = Number(process.env.CC_KILLS_SEED ?? Date.now() % 1_000_000);

for (const store of Object.keys(durable)) {
  test(`${store}: a killed process has lost nothing that was acknowledged`, async (t) => {
    const sum = await killProcess(store, { kills, seed });
    const counts = sum.counts();
    t.diagnostic(`count ${JSON.stringify(counts)}`);
    assert.deepEqual(sum.problems, [], `CC_KILLS_SEED=${seed} repeats it`);
    assert.equal(counts.kills, kills);
  });
}

const skip = Object.keys(durable).length === 0 && "none in this build";
test("a store that outlives its process is there", { skip }, () => {
  assert.ok(Object.keys(durable).length > 0);
});
