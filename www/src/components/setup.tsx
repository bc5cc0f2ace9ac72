import { hasEconomy, NAMES, PRESETS } from "../logic/presets.js";
import { WINDOWS } from "../run/initial.js";
import type { RunState, Setup as Choice, SourceName } from "../run/types.js";
import { count } from "./labels.js";

interface Props {
  state: RunState;
  onSource(name: SourceName): void;
  onSetup(change: Partial<Choice>): void;
}

/** What plays, into which window, by which preset. A choice begins anew. */
export function Setup({ state, onSource, onSetup }: Props) {
  return (
    <div class="setup">
      <label>
        <span>Run</span>
        <select
          value={state.sourceName}
          onChange={(event) => onSource(event.currentTarget.value as SourceName)}
        >
          <option value="invoicing-run">Invoice rounding · OpenAI chat format</option>
          <option value="queue-triage">Queue triage · Anthropic format</option>
          {state.sourceName === "own" && <option value="own">Your history</option>}
        </select>
      </label>
      <label>
        <span>Window in tokens</span>
        <select
          value={state.contextWindow}
          onChange={(event) => onSetup({ contextWindow: Number(event.currentTarget.value) })}
        >
          {WINDOWS.map((tokens) => (
            <option key={tokens} value={tokens}>
              {count(tokens)}
            </option>
          ))}
        </select>
      </label>
      <Policy state={state} onSetup={onSetup} />
    </div>
  );
}

/** The preset, and the option that goes with one of them. */
function Policy({ state: { preset, economy }, onSetup }: Omit<Props, "onSource">) {
  return (
    <>
      <label>
        <span>Preset</span>
        <select
          value={preset}
          aria-describedby="preset-does"
          onChange={(event) => {
            const chosen = NAMES[event.currentTarget.selectedIndex] ?? preset;
            onSetup({ preset: chosen, economy: economy && hasEconomy(chosen) });
          }}
        >
          {NAMES.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label class="switch">
        <span>Least bill</span>
        <span class="choice">
          <input
            type="checkbox"
            role="switch"
            checked={economy}
            disabled={!hasEconomy(preset)}
            aria-describedby="economy-does"
            onChange={(event) => onSetup({ economy: event.currentTarget.checked })}
          />
          <code>economy</code>
        </span>
      </label>
      <p class="does">
        <span id="preset-does">
          <code>{preset}</code>: {PRESETS[preset].does}.
        </span>{" "}
        <span id="economy-does">
          {hasEconomy(preset) ? (
            economy && "With economy that comes sooner, as soon as it is the least bill."
          ) : (
            <>
              <code>economy</code> goes with <code>balanced</code> only: the other presets act at their own numbers.
            </>
          )}
        </span>
      </p>
    </>
  );
}
