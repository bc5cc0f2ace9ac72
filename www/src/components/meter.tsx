import { mountContextMap, type ContextMap, type MapUsage } from "context-compactor-ui";
import { useLayoutEffect, useRef } from "preact/hooks";
import { overflowOf, wholeOf } from "../logic/forecast.js";
import { soonerOf } from "../logic/presets.js";
import type { RunState, Sample } from "../run/types.js";
import { count } from "./labels.js";

/** How full the window is, by category, next to the same history without compaction. */
export function Meter({ state, sample }: { state: RunState; sample: Sample | undefined }) {
  const max = state.contextWindow;
  const used = sample?.used ?? 0;
  const without = sample?.without ?? 0;
  const trigger = sample?.trigger ?? max;
  const sooner = soonerOf(state);
  const overflowed = without > max;
  const overflow = overflowOf(wholeOf(state), max);
  const categories = (sample?.categories ?? []).map((category) => ({ ...category, kind: "used" as const }));
  const free = { name: "free", tokens: Math.max(0, max - used), kind: "free" as const };
  const usage = { usedTokens: used, maxTokens: max, threshold: trigger, categories: [...categories, free], isLatest: state.economy };
  return (
    <div class="meter">
      <Window usage={usage} />
      {state.idle && state.view === undefined ? (
        <p class="acts idle">Nothing left at the last call: {state.idle}.</p>
      ) : (
        sooner && <p class="acts">Sooner: {sooner}.</p>
      )}

      <div class={`without ${overflowed ? "failed" : ""}`}>
        <div class="row">
          <span class="cc-label">Without compaction</span>
          <span class="number">{count(without)}</span>
        </div>
        <div class="bar thin">
          <i style={{ width: `${Math.min(100, (without / max) * 100)}%` }} />
        </div>
        <p>
          {overflowed
            ? `400 context_length_exceeded: the run would have ended at message ${overflow}.`
            : overflow === undefined
              ? "The same messages, sent as they are."
              : `The same messages, sent as they are: refused from message ${overflow} on.`}
        </p>
      </div>
    </div>
  );
}

/** The part of the package, which needs no framework. */
function Window({ usage }: { usage: MapUsage }) {
  const box = useRef<HTMLDivElement>(null);
  const map = useRef<ContextMap | undefined>(undefined);
  useLayoutEffect(() => {
    if (map.current) map.current.update(usage);
    else if (box.current) map.current = mountContextMap(box.current, usage);
  });
  return <div ref={box} />;
}
