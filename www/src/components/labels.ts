import { plural } from "../logic/numbers.js";
import type { Compaction, Fate, Left } from "../run/types.js";

export { count, percent, plural, short } from "../logic/numbers.js";

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
