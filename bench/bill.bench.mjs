/**
 * Where the bill of a long session comes from, and what a compaction could save at best: the sessions of `front`, at its prices,
 * with compactions that are free, lose nothing and leave exactly what they are to leave.
 */

import { transcripts } from "../tests/support/transcripts.mjs";
import { PRICES, stableOf, tokensOf } from "./front/bill.mjs";
import { isCall } from "./front/replay.mjs";
import { LONG, SOURCES } from "./front.bench.mjs";

export const title = "Parts of the bill without compaction, and the least that compactions leave of it";

export const notes = [
  "Shares of the bill without compaction, of the sessions of `front` and of those that the defaults were chosen by.",
  "A compaction is free here, and nothing is looked up again: a policy of these numbers pays this much at least, unless it clears results in between.",
];

const WINDOW = 200_000;
const STABLE = stableOf(WINDOW);
/** Tokens at which a compaction comes, and of the prompt that it leaves. */
const LAWS = [[100, 60], [100, 50], [100, 20], [80, 60], [80, 40], [60, 40], [60, 25]].map((law) => law.map((thousands) => thousands * 1_000));
const PARTS = {
  answers: (call) => call.output * PRICES.output,
  "each text, written to the cache once": (call) => (call.fresh + (call.isFirst ? STABLE : 0)) * PRICES.cacheWrite,
  "system prompt and tools, read again": (call) => (call.isFirst ? 0 : STABLE * PRICES.cacheRead),
  "history below 60,000 tokens of the prompt, read again": (call) => between(call.history, 0, 60_000) * PRICES.cacheRead,
  "history from there to 100,000": (call) => between(call.history, 60_000, 100_000) * PRICES.cacheRead,
  "history above": (call) => between(call.history, 100_000, Number.POSITIVE_INFINITY) * PRICES.cacheRead,
};

/** Of so many tokens of history those that stand between two sizes of the prompt. */
function between(history, from, to) {
  return Math.max(0, Math.min(history, to - STABLE) - (from && from - STABLE));
}

export async function run() {
  const all = SOURCES.flatMap((name) => transcripts(name) ?? []).filter(({ messages }) => JSON.stringify(messages).length > LONG);
  if (all.length === 0) return [{ case: "skipped: no recordings (set CC_DATA)" }];
  const sessions = [];
  for (const { messages } of all) sessions.push(await callsOf(messages));
  const halves = [1, 0].map((half) => sessions.filter((_, nth) => nth % 2 === half));
  const bill = (half, of) => half.flat().reduce((sum, call) => sum + of(call), 0);
  const wholes = halves.map((half) => Object.values(PARTS).reduce((sum, of) => sum + bill(half, of), 0));
  const row = (name, costs) => ({ case: name, sessions: halves[0].length, ...Object.fromEntries(["share", "share, other half"].map((key, at) => [key, round(costs[at] / wholes[at])])) });
  const parts = Object.entries(PARTS).map(([name, of]) => row(name, halves.map((half) => bill(half, of))));
  const laws = LAWS.map(([acts, leaves]) => {
    const name = `at ${acts.toLocaleString("en")} tokens, to ${leaves.toLocaleString("en")}`;
    return row(name, halves.map((half) => half.reduce((sum, calls) => sum + under(calls, acts, leaves), 0)));
  });
  return [...parts, ...laws];
}

/** The calls of a session: tokens of the history before what is `fresh`, and of the answer. */
async function callsOf(messages) {
  const calls = [];
  let [history, fresh] = [0, 0];
  for (const [index, message] of messages.entries()) {
    const output = await tokensOf(message);
    if (isCall(message, index)) {
      calls.push({ isFirst: calls.length === 0, history, fresh, output });
      [history, fresh] = [history + fresh, 0];
    }
    fresh += output;
  }
  return calls;
}

/** What the calls cost with a compaction to `leaves` tokens whenever the prompt has `acts`. */
function under(calls, acts, leaves) {
  let [history, cost] = [0, 0];
  for (const call of calls) {
    const isDue = STABLE + history + call.fresh >= acts;
    const fresh = isDue ? Math.max(leaves - STABLE, call.fresh) : call.fresh;
    const now = { ...call, fresh, history: isDue ? 0 : history };
    cost += Object.values(PARTS).reduce((sum, of) => sum + of(now), 0);
    history = now.history + fresh;
  }
  return cost;
}

const round = (number) => Math.round(number * 1_000) / 1_000;
