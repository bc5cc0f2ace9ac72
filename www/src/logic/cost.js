// @ts-check
/** What the tab “Cost” compares, and what of the reports it shows. */
import { ticks } from "./series.js";

/** @typedef {import("../evaluator.js").PolicyRule} PolicyRule */
/** @typedef {import("../evaluator.js").ReplayReport} ReplayReport */
/** @typedef {import("../evaluator.js").RecallReport} RecallReport */
/** @typedef {import("../evaluator.js").RecallScores} RecallScores */
/** @typedef {import("../evaluator.js").CompactorName} CompactorName */
/** @typedef {import("../evaluator.js").Prices} Prices */
/** @typedef {"none" | "threshold" | "slide" | "clear" | "balanced"} PolicyId */
/** @typedef {{ id: PolicyId, name: string, rule: PolicyRule }} NamedPolicy */
/** @typedef {{ x: number, y: number }} Point */
/** @typedef {{ id: PolicyId, name: string, points: Point[] }} Line */
/** @typedef {{ cost: number, ratio: number | undefined, compactions?: number, refetches?: number, largest?: number, isOver?: boolean }} Figures */
/** @typedef {{ id: PolicyId | "optimum", name: string, figures: Figures | undefined }} CostRow */
/** @typedef {Pick<RecallScores, "mention" | "context" | "recoverable">} Shares */

/** Policies for a window. That of `balanced` has the engine's own numbers: when it acts, and what it leaves beside a page.
 *  @param {number} window @returns {NamedPolicy[]} */
export function policiesFor(window) {
  const at = Math.round(0.85 * window);
  const answer = Math.min(16_384, Math.floor(window / 4));
  const trigger = Math.max(Math.min(0.75 * window, 96_000), 0.5 * window);
  return [
    { id: "none", name: "No compaction", rule: { kind: "none" } },
    { id: "threshold", name: "Fixed threshold", rule: { kind: "threshold", at, keep: Math.round(0.1 * window) } },
    { id: "slide", name: "Sliding window", rule: { kind: "slide", at, to: at } },
    { id: "clear", name: "Clear every turn", rule: { kind: "clear", at: 0, keep: 3 } },
    {
      id: "balanced",
      name: "balanced",
      rule: {
        kind: "threshold",
        at: Math.floor(Math.min(trigger, 0.9 * (window - answer))),
        keep: Math.floor(0.275 * window),
        clear: { keep: 3, minTokens: 1_000, inputs: false },
      },
    },
  ];
}

/** @type {readonly CompactorName[]} */
export const COMPACTORS = ["keep-layer", "extractive", "tail", "masking", "bag of names + tail"];
/** Shares of the history. */
export const BUDGETS = [0.05, 0.1];
/** A run of the demo is short: what is usual for transcripts of agents would cut none of them. */
export const CUTTING = { prefixTokens: 5_000, needs: 1 };

/** What was paid so far, by call. @param {readonly NamedPolicy[]} policies @param {readonly ReplayReport[]} reports @returns {Line[]} */
export function costLines(policies, reports) {
  return policies.map(({ id, name }, i) => {
    const steps = reports[i]?.steps ?? [];
    return { id, name, points: [{ x: 0, y: 0 }, ...steps.map(({ cost }, call) => ({ x: call + 1, y: cost }))] };
  });
}

/** A row for each policy, and one for the optimum; without figures as long as there are no reports.
 *  @param {readonly NamedPolicy[]} policies @param {readonly ReplayReport[] | undefined} reports @param {number} window
 *  @returns {CostRow[]} */
export function costRows(policies, reports, window) {
  const optimum = reports?.[0]?.optimum;
  /** @param {number} cost */
  const ratio = (cost) => (optimum === undefined || optimum === 0 ? undefined : cost / optimum);
  /** @type {CostRow[]} */
  const rows = policies.map(({ id, name }, i) => {
    const report = reports?.[i];
    if (!report) return { id, name, figures: undefined };
    const { cost, compactions, refetches, largestPrompt: largest } = report;
    const isOver = largest > window;
    return { id, name, figures: { cost, ratio: ratio(cost), compactions, refetches, largest, isOver } };
  });
  const figures = optimum === undefined ? undefined : { cost: optimum, ratio: ratio(optimum) };
  return [...rows, { id: "optimum", name: "Optimum", figures }];
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

/** A sheet of prices on one line. @param {Prices} prices @param {string} [locale] */
export function pricesLine({ input, output, cacheRead, cacheWrite, tiers }, locale) {
  const format = formatter(2, locale);
  /** @param {string} what @param {number | undefined} price */
  const part = (what, price) => (price === undefined ? [] : [`${what} ${exact(price, format, locale)}`]);
  const parts = [
    ...part("input", input),
    ...part("output", output),
    ...part("cache read", cacheRead),
    ...part("cache write", cacheWrite),
  ];
  return `USD per million tokens: ${parts.join(", ")}${tiers && tiers.length > 0 ? "; more for large prompts" : ""}`;
}

/** Tenths of a cent stand in some sheets. @param {number} price @param {(amount: number) => string} format @param {string} [locale] */
function exact(price, format, locale) {
  return Math.round(price * 1_000) % 10 === 0 ? format(price) : formatter(3, locale)(price);
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
