import type { Fate } from "../run/types.js";

export const FATES: readonly Fate[] = ["verbatim", "offloaded", "summarized", "reduced", "dropped"];

export const FATE_HINT: Record<Fate, string> = {
  verbatim: "in the context as it was",
  offloaded: "stored, a reference stands in its place",
  summarized: "told by the summary",
  reduced: "shortened by a rule",
  dropped: "left out, with a reason",
};

/** Colour of a category of the context, by what its name says. */
export function categoryColor(name: string): string {
  const text = name.toLowerCase();
  if (text.includes("summar") || text.includes("checkpoint")) return "var(--c-summary)";
  if (text.includes("result")) return "var(--c-results)";
  if (text.includes("system")) return "var(--c-system)";
  if (text.includes("user")) return "var(--c-user)";
  if (text.includes("call") || text.includes("tool")) return "var(--c-calls)";
  return "var(--c-assistant)";
}

const numbers = new Intl.NumberFormat();
const percents = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

export const count = (value: number): string => numbers.format(value);
export const percent = (share: number): string => percents.format(share);
export const short = (value: number): string => compact.format(value);
export const plural = (value: number, word: string): string =>
  `${count(value)} ${word}${value === 1 ? "" : "s"}`;
