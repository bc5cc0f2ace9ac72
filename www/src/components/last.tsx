import { stepsOf } from "context-compactor-ui";
import type { Compaction } from "../run/types.js";
import { costOf, count, leftText } from "./labels.js";

interface Props {
  /** The last one up to the step that is looked at. */
  compaction: Compaction | undefined;
  onOpen(number: number): void;
  onRecall(): void;
}

/** Why the last compaction came, what it freed, what it cost, and what left. */
export function Last({ compaction, onOpen, onRecall }: Props) {
  if (!compaction) return <p class="last none">No compaction yet.</p>;
  const { number, x, why, previousTokens, tokensAfter, edits, left } = compaction;
  return (
    <dl class="last" aria-label="Last compaction">
      <div>
        <dt>Last compaction</dt>
        <dd>
          {stepsOf(edits)}, at message {count(x)}{" "}
          <button type="button" class="link" onClick={() => onOpen(number)}>
            what changed
          </button>
        </dd>
      </div>
      <div class="why">
        <dt>Why</dt>
        <dd>{why}</dd>
      </div>
      <div class="freed">
        <dt>Freed</dt>
        <dd>
          <span class="number">{count(previousTokens - tokensAfter)}</span> of {count(previousTokens)} tokens
        </dd>
      </div>
      <div class="paid">
        <dt>Cost</dt>
        <dd>{costOf(compaction)}</dd>
      </div>
      <div class="left">
        <dt>Left the context</dt>
        <dd>
          {leftText(left)}{" "}
          {left.length > 0 && (
            <button type="button" class="link" onClick={onRecall}>
              have it back
            </button>
          )}
        </dd>
      </div>
    </dl>
  );
}
