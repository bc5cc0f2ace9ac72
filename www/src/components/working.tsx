import type { RunState } from "../run/types.js";
import { Icon } from "./icon.js";
import { count } from "./labels.js";

/** A compaction under way: stage, progress, and a way out. Nothing is changed until it commits. */
export function Working({ busy, onAbort }: { busy: RunState["busy"]; onAbort(): void }) {
  if (!busy) return null;
  const { label, progress } = busy;
  const share = progress && progress.total > 0 ? progress.done / progress.total : undefined;
  return (
    <div class="working" role="status">
      <span>
        {label}
        {progress ? `: ${progress.stage} ${count(progress.done)}/${count(progress.total)}` : "…"}
      </span>
      <progress max={1} {...(share === undefined ? {} : { value: share })} aria-label="Progress" />
      {progress && (
        <span class="number">
          {count(progress.previousTokens)} → {count(progress.currentTokens)}
        </span>
      )}
      <button type="button" class="button" onClick={onAbort}>
        <Icon name="stop" /> Abort
      </button>
    </div>
  );
}
