/** Published thresholds of other products, as rules that the evaluator replays: triggers, with one operator for all. */

import { baselines, replay } from "../../pkg-evaluator/dist/entry/evaluator-inline.js";
import { PRICES } from "../front/bill.mjs";

/** The window that the thresholds were published for. */
const PUBLISHED = 200_000;
/** Rules of this library. */
const OWN = /^(balanced|rent or buy|factor3)/;

/** The rules by name. */
export async function rulesOf() {
  const { policies } = await baselines();
  return policies.filter(({ name }) => !OWN.test(name));
}

/** What each rule makes of a history, over the optimum, and without a compaction. @param {import("./histories.mjs").History} history */
export async function replayed({ messages, contextWindow, stable }, rules) {
  const share = contextWindow / PUBLISHED;
  const transcript = { messages, format: "openai-chat", stableTokens: stable };
  const reports = await replay(transcript, [{ kind: "none" }, ...rules.map(({ policy }) => scaled(policy, share))], PRICES, { optimum: true });
  const [none, ...others] = reports;
  return others.map(({ cost, optimum, largestPrompt }) => ({ cost: cost / none.cost, optimum: cost / optimum, isStuck: largestPrompt > contextWindow }));
}

/** The rule in a window of another size. */
function scaled(policy, share) {
  const { kind, at, keep, to } = policy;
  const of = (tokens) => Math.round(tokens * share);
  if (kind === "none") return policy;
  if (kind === "slide") return { kind, at: of(at), to: of(to) };
  // Of `clear`, `keep` is a number of results.
  return { kind, at: of(at), keep: kind === "clear" ? keep : of(keep) };
}
