import assert from "node:assert/strict";
import { test } from "node:test";
import { baselines, recall } from "context-compactor-evaluator";
import { PRICES } from "../../bench/front/bill.mjs";
import {
  BUDGETS,
  COMPACTORS,
  CUTTING,
  dollarTicks,
  dollars,
  measured,
  pointsOf,
  pricesLine,
  recallRows,
  rowsAt,
} from "../src/logic/cost.js";
import { transcripts } from "../transcript/generate.mjs";

test("what is retained: the recorded run is cut, a short one is not", async () => {
  const { compactors } = await baselines();
  for (const name of COMPACTORS) assert.ok(compactors.some((known) => known.name === name));
  const messages = JSON.parse(transcripts()["queue-triage.json"]);
  const found = await recall({ messages }, "tail", BUDGETS, { cutting: CUTTING });
  const { cuts, needs } = measured([found]);
  assert.ok(cuts > 0 && needs > 0);
  const rows = recallRows(COMPACTORS.map(() => found));
  assert.deepEqual(
    rows.map(({ name, shares }) => [name, shares.length]),
    COMPACTORS.map((name) => [name, BUDGETS.length]),
  );
  const short = await recall({ messages: messages.slice(0, 2) }, "tail", BUDGETS, { cutting: CUTTING });
  assert.deepEqual(measured([short]), { cuts: 0, needs: 0 });
  assert.equal(recallRows(undefined)[0].shares, undefined);
});

const call = (cost, lost, tokens, edits) => ({ calls: 0, cost, lost, tokens, edits });
const curves = [
  { id: "none", name: "No compaction", calls: [call(1, 0, 10, 0), call(2, 0, 20, 0), call(4, 0, 30, 0)] },
  { id: "preset", name: "balanced", calls: [call(1, 0, 10, 0), call(3, 1, 12, 2), call(3.5, 2, 11, 1)] },
  { id: "economy", name: "ended", calls: [call(1, 1, 9, 1)], error: "context_overflow" },
];

test("W16 lines: they begin with nothing paid and nothing lost, and end with the sums", () => {
  assert.deepEqual(pointsOf(curves[1], "cost"), [
    { x: 0, y: 0 },
    { x: 1, y: 1 },
    { x: 2, y: 3 },
    { x: 3, y: 3.5 },
  ]);
  assert.deepEqual(pointsOf(curves[1], "lost").at(-1), { x: 3, y: 2 });
  assert.deepEqual(pointsOf({ ...curves[1], calls: [] }, "lost"), [{ x: 0, y: 0 }]);
});

test("W16 rows: the share is of no compaction at the same call, and of none that ended before", () => {
  const [none, balanced, ended] = rowsAt(curves, 3);
  assert.deepEqual([none.cost, none.share, none.lost, none.largest], [4, 1, 0, 30]);
  const expected = { id: "preset", name: "balanced", isEnded: false, cost: 3.5, share: 0.875 };
  assert.deepEqual(balanced, { ...expected, calls: 3, lost: 2, compactions: 2, largest: 12 });
  assert.deepEqual([ended.isEnded, ended.share, ended.calls, ended.cost], [true, undefined, 1, 1]);
  assert.equal(rowsAt(curves, 1)[2].share, 1);
  assert.deepEqual(
    rowsAt(curves, 0).map(({ cost, share, largest }) => [cost, share, largest]),
    [0, 1, 2].map(() => [0, undefined, 0]),
  );
});

test("dollars: as many decimals as the largest needs", () => {
  const write = (max, amount = max) => dollars(max, "en-US")(amount);
  assert.equal(write(2.4848), "$2.485");
  assert.equal(write(2.4848, 0.5), "$0.500");
  assert.equal(write(0.2036), "$0.2036");
  assert.equal(write(1_234.5), "$1,234.50");
  assert.equal(write(0.0000012), "$0.000001");
  assert.equal(write(0), "$0.00");
});

test("dollars: ticks are round and tell their steps", () => {
  const texts = (max) => dollarTicks(max, 4, "en-US").map(({ text }) => text);
  assert.deepEqual(texts(4.1), ["$0", "$2", "$4"]);
  assert.deepEqual(texts(0.9), ["$0.00", "$0.25", "$0.50", "$0.75"]);
  assert.deepEqual(texts(0.02), ["$0.000", "$0.005", "$0.010", "$0.015", "$0.020"]);
  assert.deepEqual(
    dollarTicks(0.9, 4).map(({ value }) => value),
    [0, 0.25, 0.5, 0.75],
  );
});

test("W16 prices: what a call pays for, on one line", () => {
  assert.equal(
    pricesLine(PRICES, "en-US"),
    "USD per million tokens: written to the cache $3.75, read from it $0.30, answers $15.00",
  );
});
