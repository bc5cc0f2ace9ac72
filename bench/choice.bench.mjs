/** What a choice of earlier results and inputs would keep of what calls need, beside the newest, the one used last, and the future. */

import { transcripts } from "../tests/support/transcripts.mjs";
import { fit, SCORES, simulateAll, WEIGHTS, workOf } from "./front/choice.mjs";
import { exchanged } from "./front/exchange.mjs";
import { engine, replay } from "./front/replay.mjs";
import { LONG, SOURCES } from "./front.bench.mjs";

export const title = "What stays whole: a choice of earlier texts, simulated, window 200,000";

export const notes = [
  "needs lost: of 100 calls, by runs as in the bench front, in both halves of its sessions; the weights of past use are fitted on the tuning half.",
  "engine: the prompts that the session itself makes. Of what a cut leaves the oldest 18,000 tokens are exchanged for as many of the best older texts.",
  "All others are a simulation without pages and previews: it compares choices. Cost is over no compaction, without answers; of the engine, over the engine as it is.",
  "cut: at the trigger a share of what is left is for the best of the older texts, of any kind. clear: of the results that are " +
    "cleared the best stay, as long as the prompt is no larger than that.",
];

const HALVES = ["tuning", "held out"];

/** By name. @type {Record<string, import("./front/choice.mjs").Choice>} */
const CHOICES = {
  "newest 30 % at half of the window": {},
  "as now: clears, then cuts": { clears: true },
  ...Object.fromEntries(
    Object.entries(SCORES).flatMap(([name, score]) => [
      ...[0.15, 0.3, 0.6].map((keeps) => [`cut, ${keeps * 100} % for ${name}`, { clears: true, keeps, score }]),
      ...[60_000, 80_000].map((spares) => [`clear, ${spares / 1_000}K with ${name}`, { clears: true, spares, score }]),
    ]),
  ),
  "as now, at 55 % of the window": { clears: true, trigger: 110_000 },
  "as now, at 60 % of the window": { clears: true, trigger: 120_000 },
};

export async function run() {
  const records = SOURCES.flatMap((name) => transcripts(name) ?? []);
  const all = records.map(({ messages }) => messages).filter((messages) => JSON.stringify(messages).length > LONG);
  if (all.length === 0) return [{ case: "skipped: no recordings (set CC_DATA)" }];
  /** @type {import("./front/choice.mjs").Work[][]} */
  const halves = [[], []];
  for (const [nth, messages] of all.entries()) halves[nth % 2].push(await workOf(messages));
  const fitted = fit(halves[0]);
  const isSame = JSON.stringify(fitted) === JSON.stringify(WEIGHTS);
  if (!isSame) throw new Error(`the fit gives ${JSON.stringify(fitted)}: write it into WEIGHTS of front/choice.mjs`);
  const none = halves.map((works) => simulateAll(works, { trigger: Infinity }));
  const rows = Object.entries(CHOICES).map(([name, choice]) => {
    const sums = halves.map((works) => simulateAll(works, choice));
    return rowOf(name, sums, none);
  });
  const sessions = HALVES.map((_, half) => all.filter((_, nth) => nth % 2 === half));
  let base;
  for (const [name, score] of Object.entries({ "engine: as it is": undefined, ...ENGINE })) {
    const sums = [];
    for (const [half, works] of halves.entries()) sums.push(await replayAll(sessions[half], works, score));
    base ??= sums;
    rows.push(rowOf(name, sums, base));
    console.log(JSON.stringify(rows.at(-1)));
  }
  return rows;
}

/** Of what a cut leaves of 200,000 tokens, 30 %. */
const EXCHANGED = 18_000;
const ENGINE = { "engine: for past use": SCORES["past use"], "engine: for the future": SCORES["the future"] };

async function replayAll(sessions, works, score) {
  const sum = { calls: 0, lost: 0, cost: 0, tokens: 0 };
  for (const [nth, messages] of sessions.entries()) {
    const policy = score ? exchanged(engine({}), messages, works[nth], { room: EXCHANGED, score }) : engine({});
    const one = await replay(messages, policy, 200_000);
    for (const key of Object.keys(sum)) sum[key] += one[key];
  }
  return sum;
}

function rowOf(name, sums, over) {
  const row = { case: name };
  for (const [nth, { calls, lost, cost, tokens }] of sums.entries()) {
    row[`${HALVES[nth]}: needs lost`] = Math.round((1e4 * lost) / calls) / 100;
    row[`${HALVES[nth]}: cost`] = Math.round((1e3 * cost) / over[nth].cost) / 1e3;
    row[`${HALVES[nth]}: mean prompt`] = Math.round(tokens / calls);
  }
  return row;
}
