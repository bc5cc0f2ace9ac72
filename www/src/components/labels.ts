import { plural } from "../logic/numbers.js";
import type { Compaction, Fate, Left } from "../run/types.js";

export { count, percent, plural, short } from "../logic/numbers.js";

export const FATES: readonly Fate[] = ["verbatim", "offloaded", "summarized", "reduced", "dropped"];

export const FATE_HINT: Record<Fate, string> = {
  verbatim: "in the context as it was",
  offloaded: "stored, a reference stands in its place",
  summarized: "told by the summary",
  reduced: "shortened by a rule",
  dropped: "left out, with a reason",
};

/** Color of a category of the context, by what its name says. */
export function categoryColor(name: string): string {
  const text = name.toLowerCase();
  if (text.includes("summar") || text.includes("checkpoint")) return "var(--c-summary)";
  if (text.includes("result")) return "var(--c-results)";
  if (text.includes("system")) return "var(--c-system)";
  if (text.includes("user")) return "var(--c-user)";
  if (text.includes("call") || text.includes("tool")) return "var(--c-calls)";
  return "var(--c-assistant)";
}

/** What a compaction costs beside the tokens that it frees. */
export function costOf({ llmCalls, rewritten }: Compaction): string {
  const calls = llmCalls === 0 ? "no model call" : plural(llmCalls, "model call");
  return `${calls}, ${rewritten === 0 ? "the provider's cache stays" : `${plural(rewritten, "token")} cached anew`}`;
}

const WHERE: Record<Fate, string> = {
  verbatim: "kept",
  summarized: "into the summary",
  offloaded: "behind references",
  reduced: "shortened",
  dropped: "left out",
};

/** What left the context, and where it is. */
export function leftText(left: readonly Left[]): string {
  if (left.length === 0) return "nothing";
  return left.map(({ fate, messages }) => `${plural(messages, "message")} ${WHERE[fate]}`).join(", ");
}
