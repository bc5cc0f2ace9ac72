/** Words, numbers and colors that the parts share. */

import type { Edit, LedgerEntry } from "context-compactor";

/** Where a message is now, as in `LedgerEntry.fate`. */
export type Fate = LedgerEntry["fate"];

const numbers = new Intl.NumberFormat();
const percents = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });
const money = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", maximumSignificantDigits: 2 });

export const count = (value: number): string => numbers.format(value);
export const percent = (share: number): string => percents.format(share);
export const dollars = (amount: number): string => money.format(amount);
export const plural = (value: number, word: string): string => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

/** All fates, in the order of a legend. */
export const FATES: readonly Fate[] = ["verbatim", "offloaded", "summarized", "reduced", "dropped"];

/** What each fate means, in a few words. */
export const FATE_HINTS: Readonly<Record<Fate, string>> = {
  verbatim: "in the context as it was",
  offloaded: "stored, with a reference in its place",
  summarized: "replaced by the summary",
  reduced: "shortened by a rule",
  dropped: "left out, with a reason",
};

/** The path of an icon of 16 × 16, which is drawn in lines. */
export const FATE_PATHS: Readonly<Record<Fate, string>> = {
  verbatim: "M3.5 8.5l3 3 6-7",
  summarized: "M3 4h10M3 8h7M3 12h4",
  offloaded: "M8 2.5v7M5 7l3 3 3-3M3 12.5h10",
  reduced: "M3 5h10M5 8h6M7 11h2",
  dropped: "M4 4l8 8M12 4l-8 8",
};

/** The color of a category of `ContextUsage.categories`, by its name: `var(--cc-user)` and others of `styles.css`. */
export function categoryColor(name: string): string {
  const text = name.toLowerCase();
  const found = [
    ["summar", "summary"],
    ["checkpoint", "summary"],
    ["result", "results"],
    ["system", "system"],
    ["user", "user"],
    ["call", "calls"],
    ["tool", "calls"],
  ].find(([part = ""]) => text.includes(part));
  return `var(--cc-${found?.[1] ?? "assistant"})`;
}

const DONE: Readonly<Record<string, string>> = {
  admit: "results shortened as they came",
  clear: "old results cleared",
  offload: "results moved out",
  compress: "results shortened",
  summarize: "the past summarized",
  age: "checkpoints shortened",
  merge: "checkpoints merged",
  media: "old images and documents left out",
  rollover: "restarted with a summary",
  repair: "messages corrected for the provider",
} satisfies Record<Edit["kind"], string>;

/** Describes in a few words what a compaction did, by its `edits`. */
export function stepsOf(edits: readonly { kind: string }[]): string {
  // The last step changes most.
  const [first = "compacted", ...others] = [...new Set(edits.map(({ kind }) => DONE[kind] ?? kind))].reverse();
  return [first.charAt(0).toUpperCase() + first.slice(1), ...others].join(", ");
}
