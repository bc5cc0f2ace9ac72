// @ts-check
/** The presets as the page offers them, and at which number each of them acts. */

import { count } from "./numbers.js";

/** @typedef {import("../engine.js").ContextUsage} ContextUsage */
/** @typedef {import("../engine.js").Edit["kind"]} Kind */
/** @typedef {import("../engine.js").Preset} Preset */
/** @typedef {{ preset: Preset, economy: boolean }} Policy */
/** `sooner`: the steps that it takes below its trigger, and why.
 *  @typedef {{ does: string, sooner: Partial<Record<Kind, string>> }} Description */

/** @type {Record<Preset, Description>} */
export const PRESETS = {
  balanced: {
    does: "old results leave first, then the past becomes a summary",
    sooner: { admit: "a large new result becomes a preview", clear: "old results leave if that pays" },
  },
  offload: { does: "old results become references, then the past a summary", sooner: {} },
  react: {
    does: "results are shortened, no message is removed",
    sooner: { compress: "long results are shortened one by one" },
  },
  layered: {
    does: "old results are cleared before every call, then the past becomes a summary",
    sooner: { clear: "old results are cleared before every call", admit: "a large new result becomes a preview" },
  },
  factor3: {
    does: "new results are reduced to what matters, then the past becomes a summary",
    sooner: { admit: "new results are reduced to what matters" },
  },
  checkpoint: { does: "the past becomes checkpoints, which age and merge", sooner: {} },
};

export const NAMES = /** @type {Preset[]} */ (Object.keys(PRESETS));

/** The price decides only in `balanced`: the other presets act at the numbers of their documents.
 *  @param {Preset} preset */
export const hasEconomy = (preset) => preset === "balanced";

/** What is done below the trigger, in one line. @param {Policy} policy */
export function soonerOf({ preset, economy }) {
  const price = economy ? ["it compacts once going on has cost as much as a compaction"] : [];
  return [...price, ...Object.values(PRESETS[preset].sooner)].join("; ");
}

/** Why a compaction came. `plan`: the plan's own words just before it, where the price decides.
 *  @param {{ previousTokens: number, trigger: number, edits: readonly { kind: Kind }[], plan: string }} compaction
 *  @param {Policy} policy */
export function whyOf({ previousTokens, trigger, edits, plan }, { preset, economy }) {
  if (previousTokens >= trigger) return `${count(previousTokens)} tokens, and the trigger is ${count(trigger)}`;
  const { sooner } = PRESETS[preset];
  const kinds = [...new Set(edits.map(({ kind }) => kind))];
  const isByPrice = economy && kinds.some((kind) => kind !== "admit");
  if (isByPrice || kinds.some((kind) => sooner[kind] === undefined)) return plan;
  return `below the trigger: ${kinds.map((kind) => sooner[kind]).join("; ")}`;
}

/** Tokens at which the next compaction comes: those of the preset, or what can be sent at all where that is less. A context
 *  that is larger takes up room of the answer: then it is what it was `before`.
 *  @param {Pick<ContextUsage, "threshold" | "maxTokens" | "categories">} usage @param {number} [before] */
export function triggerOf({ threshold, maxTokens, categories }, before = threshold) {
  const answer = categories.filter(({ kind }) => kind === "buffer").reduce((sum, { tokens }) => sum + tokens, 0);
  return Math.min(before, threshold, maxTokens - answer);
}
