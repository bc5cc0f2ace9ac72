import { stepsOf } from "context-compactor-ui";
import type { Compaction, Offload } from "../run/types.js";
import { CompactionDiff } from "./compaction-diff.js";
import { Icon } from "./icon.js";
import { costOf, count, leftText, percent, plural } from "./labels.js";

interface Props {
  compactions: readonly Compaction[];
  offloads: readonly Offload[];
  selected: number | undefined;
  onSelect(number: number | undefined): void;
  onOffload(ref: string): void;
}

/** Every rewrite of the context; one at a time is open as a diff. */
export function Compactions({ compactions, offloads, selected, onSelect, onOffload }: Props) {
  if (compactions.length === 0) {
    return (
      <p class="empty">
        No compaction yet. The first one comes when the context reaches the trigger, or with{" "}
        <code>/compact</code> in the chat.
      </p>
    );
  }
  return (
    <ol class="compactions">
      {[...compactions].reverse().map((compaction) => {
        const { number, kind, previousTokens, tokensAfter, manual, x, edits, deleted, why } = compaction;
        const open = number === selected;
        return (
          <li key={number} class={open ? "open" : ""} id={`compaction-${number}`}>
            <button
              type="button"
              class="head"
              aria-expanded={open}
              onClick={() => onSelect(open ? undefined : number)}
            >
              <span class={`kind ${kind}`}>
                <Icon name={kind === "summary" ? "summarized" : "offloaded"} />
              </span>
              <span class="title">
                <b>
                  {stepsOf(edits)}
                  {manual ? " · /compact" : ""}
                </b>
                <span>
                  at message {count(x)}
                  {deleted.length > 0 ? ` · ${plural(deleted.length, "offload")} retired` : ""}
                </span>
              </span>
              <span class="change number">
                <b>
                  {count(previousTokens)} → {count(tokensAfter)}
                </b>
                <span>−{percent(previousTokens === 0 ? 0 : 1 - tokensAfter / previousTokens)}</span>
              </span>
              <Icon name="chevron" />
            </button>
            {open && (
              <>
                <p class="facts">
                  Why: {why}. Cost: {costOf(compaction)}. Left: {leftText(compaction.left)}.
                </p>
                <p class="facts">
                  {count(Math.round(compaction.durationMs))} ms
                  {compaction.problems === 0
                    ? " · valid for the provider"
                    : ` · ${plural(compaction.problems, "broken rule")}`}
                  {compaction.reason ? ` · ${compaction.reason}` : ""}
                </p>
                <CompactionDiff compaction={compaction} offloads={offloads} onOffload={onOffload} />
              </>
            )}
          </li>
        );
      })}
    </ol>
  );
}
