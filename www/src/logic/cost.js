// @ts-check
/** What the tab “Cost” shows of replays, and of what compactors retain. */
import { ticks } from "./series.js";

/** @typedef {import("../evaluator.js").RecallReport} RecallReport */
/** @typedef {import("../evaluator.js").RecallScores} RecallScores */
/** @typedef {import("../evaluator.js").CompactorName} CompactorName */
/** @typedef {import("../../../bench/front/replay.mjs").Call} Call */
/** @typedef {Pick<RecallScores, "mention" | "context" | "recoverable">} Shares */
/** One policy, call by call; `error`: why it ended before the transcript did.
 *  @typedef {{ id: "none" | "preset" | "economy", name: string, calls: Call[], error?: string }} Curve */
/** @typedef {{ id: Curve["id"], name: string, isEnded: boolean, cost: number, share: number | undefined, calls: number, lost: number,
 *  compactions: number, largest: number }} Row */

/** @type {readonly CompactorName[]} */
export const COMPACTORS = ["keep-layer", "extractive", "tail", "masking", "bag of names + tail"];
/** Shares of the history. */
export const BUDGETS = [0.05, 0.1];
/** A run of the demo is short: what is usual for transcripts of agents would cut none of them. */
export const CUTTING = { prefixTokens: 5_000, needs: 1 };

/** The points of a curve, from nothing on. @param {Curve} curve @param {"cost" | "lost"} figure */
export function pointsOf({ calls }, figure) {
  return [{ x: 0, y: 0 }, ...calls.map((call, at) => ({ x: at + 1, y: call[figure] }))];
}

/** What each policy came to after `shown` calls; the share is of the first, which is none.
 *  @param {readonly Curve[]} curves @param {number} shown @returns {Row[]} */
export function rowsAt(curves, shown) {
  const base = curves[0]?.calls.slice(0, shown).at(-1)?.cost ?? 0;
  return curves.map(({ id, name, calls }) => {
    const until = calls.slice(0, shown);
    const { cost = 0, lost = 0 } = until.at(-1) ?? {};
    const isEnded = until.length < shown;
    return {
      id,
      name,
      isEnded,
      cost,
      share: base > 0 && !isEnded ? cost / base : undefined,
      calls: until.length,
      lost,
      compactions: until.filter(({ edits }) => edits > 0).length,
      largest: Math.max(0, ...until.map(({ tokens }) => tokens)),
    };
  });
}

/** Shares by budget for each compactor; without them as long as there is no report.
 *  @param {readonly RecallReport[] | undefined} reports @returns {{ name: CompactorName, shares: Shares[] | undefined }[]} */
export function recallRows(reports) {
  return COMPACTORS.map((name, i) => ({ name, shares: reports?.[i]?.means }));
}

/** How much was measured: every compactor has the same cuts.
 *  @param {readonly RecallReport[]} reports @returns {{ cuts: number, needs: number }} */
export function measured(reports) {
  const cuts = reports[0]?.cuts ?? [];
  return { cuts: cuts.length, needs: cuts.reduce((sum, { needs }) => sum + needs, 0) };
}

/** Writes amounts of up to `max` so that the largest has four digits that say something, and all have as many decimals.
 *  @param {number} max @param {string} [locale] @returns {(amount: number) => string} */
export function dollars(max, locale) {
  const decimals = max > 0 ? 3 - Math.floor(Math.log10(max)) : 2;
  return formatter(Math.min(6, Math.max(2, decimals)), locale);
}

/** Round amounts from 0 up to `max`, written with the decimals that their steps need.
 *  @param {number} max @param {number} count @param {string} [locale] @returns {{ value: number, text: string }[]} */
export function dollarTicks(max, count, locale) {
  const millionths = ticks(max * 1e6, count);
  const step = millionths[1] ?? 1e6;
  const needed = [2, 3, 4, 5].find((decimals) => step % 10 ** (6 - decimals) === 0) ?? 6;
  const format = formatter(step % 1e6 === 0 ? 0 : needed, locale);
  return millionths.map((value) => ({ value: value / 1e6, text: format(value / 1e6) }));
}

/** What a call pays for, on one line. @param {{ output: number, cacheRead: number, cacheWrite: number }} prices @param {string} [locale] */
export function pricesLine({ output, cacheRead, cacheWrite }, locale) {
  const format = formatter(2, locale);
  const parts = [`written to the cache ${format(cacheWrite)}`, `read from it ${format(cacheRead)}`, `answers ${format(output)}`];
  return `USD per million tokens: ${parts.join(", ")}`;
}

/** @param {number} decimals @param {string} [locale] */
function formatter(decimals, locale) {
  const { format } = new Intl.NumberFormat(locale, {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
  return (/** @type {number} */ amount) => format(amount);
}
