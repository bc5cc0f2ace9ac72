import { soonerOf } from "../logic/presets.js";
import type { RunState, Sample } from "../run/types.js";
import { categoryColor, count, percent } from "./labels.js";

/** How full the window is, by category, next to the same history without compaction. */
export function Meter({ state, sample }: { state: RunState; sample: Sample | undefined }) {
  const max = state.contextWindow;
  const used = sample?.used ?? 0;
  const without = sample?.without ?? 0;
  const trigger = sample?.trigger ?? max;
  const acts = `compacts at ${count(trigger)}${state.economy ? " at the latest" : ""}`;
  const sooner = soonerOf(state);
  const overflowed = without > max;
  const categories = sample?.categories ?? [];
  return (
    <div class="meter">
      <div class="reading">
        <span class="label">Tokens in context</span>
        <strong>{count(used)}</strong>
        <span class="of">
          of {count(max)} · {percent(used / max)}
        </span>
      </div>

      <div
        class="bar"
        role="meter"
        aria-label="Context used"
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={used}
        aria-valuetext={`${count(used)} of ${count(max)} tokens, ${acts}`}
      >
        {categories.map(({ name, tokens }) => (
          <i
            key={name}
            title={`${name}: ${count(tokens)}`}
            style={{ width: `${(tokens / max) * 100}%`, background: categoryColor(name) }}
          />
        ))}
        <b class="trigger" style={{ left: `${(trigger / max) * 100}%` }} />
      </div>
      <p class="scale">
        <span style={{ left: `${(trigger / max) * 100}%` }}>{acts}</span>
      </p>
      {state.idle && state.view === undefined ? (
        <p class="acts idle">Nothing left at the last call: {state.idle}.</p>
      ) : (
        sooner && <p class="acts">Sooner: {sooner}.</p>
      )}

      <ul class="categories">
        {categories.map(({ name, tokens }) => (
          <li key={name} class={tokens === 0 ? "none" : ""}>
            <i style={{ background: categoryColor(name) }} />
            <span>{name}</span>
            <span class="number">{count(tokens)}</span>
          </li>
        ))}
        <li class="free">
          <i />
          <span>free</span>
          <span class="number">{count(Math.max(0, max - used))}</span>
        </li>
      </ul>

      <div class={`without ${overflowed ? "failed" : ""}`}>
        <div class="row">
          <span class="label">Without compaction</span>
          <span class="number">{count(without)}</span>
        </div>
        <div class="bar thin">
          <i style={{ width: `${Math.min(100, (without / max) * 100)}%` }} />
        </div>
        <p>
          {overflowed
            ? `400 context_length_exceeded: the run would have ended at message ${state.overflowAt ?? sample?.x ?? 0}.`
            : "The same messages, sent as they are."}
        </p>
      </div>
    </div>
  );
}
