import assert from "node:assert/strict";
import { test } from "node:test";
import { baselines, recall, replay } from "context-compactor-evaluator";
import {
  BUDGETS,
  COMPACTORS,
  CUTTING,
  costLines,
  costRows,
  dollarTicks,
  dollars,
  measured,
  policiesFor,
  pricesLine,
  recallRows,
} from "../src/logic/cost.js";
import { transcripts } from "../transcript/generate.mjs";

const policies = policiesFor(32_768);
const report = (cost, more = {}) => ({
  cost,
  compactions: 2,
  refetches: 1,
  largestPrompt: 30_000,
  optimum: 0.5,
  steps: [{ cost: cost / 2 }, { cost }],
  ...more,
});
const reports = policies.map((_, i) => report(0.5 + i, { largestPrompt: 32_768 + (i === 0 ? 1 : 0) }));

test("policies: shares of the window, and balanced as the engine has it", async () => {
  const rules = Object.fromEntries(policies.map(({ id, rule }) => [id, rule]));
  assert.deepEqual(rules.threshold, { kind: "threshold", at: 27_853, keep: 3_277 });
  assert.deepEqual(rules.slide, { kind: "slide", at: 27_853, to: 27_853 });
  assert.deepEqual([rules.balanced.at, rules.balanced.keep], [22_118, 9_011]);
  const { policies: known } = await baselines();
  const { policy } = known.find(({ name }) => name === "balanced");
  assert.deepEqual(policiesFor(200_000).at(-1).rule, policy);
});

test("policies: the evaluator takes them for every window, and knows the compactors", async () => {
  const { prices, compactors } = await baselines();
  const messages = JSON.parse(transcripts()["queue-triage.json"]);
  for (const window of [8_192, 16_384, 32_768, 65_536, 131_072]) {
    const of = policiesFor(window);
    const rules = of.map(({ rule }) => rule);
    const found = await replay({ messages, stableTokens: 0 }, rules, prices[0].prices, { optimum: true });
    const rows = costRows(of, found, window);
    assert.equal(rows.length, of.length + 1);
    assert.ok(rows.every(({ figures }) => figures.cost > 0));
  }
  for (const name of COMPACTORS) assert.ok(compactors.some((known) => known.name === name));
});

test("what is retained: the recorded run is cut, a short one is not", async () => {
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

test("lines: they begin with nothing paid, and end with the cost", () => {
  const lines = costLines(policies, reports);
  assert.deepEqual(lines[0].points, [
    { x: 0, y: 0 },
    { x: 1, y: 0.25 },
    { x: 2, y: 0.5 },
  ]);
  assert.deepEqual(costLines(policies, [])[0].points, [{ x: 0, y: 0 }]);
});

test("rows: over the optimum, which is the last, and prompts that do not fit", () => {
  const rows = costRows(policies, reports, 32_768);
  assert.deepEqual(rows[0].figures, {
    cost: 0.5,
    ratio: 1,
    compactions: 2,
    refetches: 1,
    largest: 32_769,
    isOver: true,
  });
  assert.equal(rows[1].figures.ratio, 3);
  assert.equal(rows[1].figures.isOver, false);
  assert.deepEqual(rows.at(-1), { id: "optimum", name: "Optimum", figures: { cost: 0.5, ratio: 1 } });
  assert.ok(costRows(policies, undefined, 32_768).every(({ figures }) => figures === undefined));
  const free = costRows(policies, [report(0, { optimum: 0 })], 32_768);
  assert.equal(free[0].figures.ratio, undefined);
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

test("prices: what a sheet says, on one line", () => {
  const prices = { input: 1.25, output: 10, cacheRead: 0.125 };
  assert.equal(
    pricesLine(prices, "en-US"),
    "USD per million tokens: input $1.25, output $10.00, cache read $0.125",
  );
  assert.match(pricesLine({ ...prices, tiers: [{ above: 200_000, input: 2 }] }), /; more for large prompts$/);
});
