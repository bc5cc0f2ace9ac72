/** Kills of workerd and of its objects while they append and compact (`storage` row 16). `CC_KILLS` says how many. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { killWorkerd } from "../support/kills-workerd.mjs";

const kills = Number(process.env.CC_KILLS ?? 4);
const seed = Number(process.env.CC_KILLS_SEED ?? Date.now() % 1_000_000);

test("objects ended, workerd killed: what was acknowledged is there, once and in order", async (t) => {
  const sum = await killWorkerd("workerd", { kills, seed });
  const counts = sum.counts();
  t.diagnostic(`count ${JSON.stringify(counts)}`);
  assert.deepEqual(sum.problems, [], `CC_KILLS_SEED=${seed} repeats it`);
  assert.equal(counts.kills, kills);
});
