import { FATES } from "context-compactor-ui";
import { SPEEDS } from "../run/initial.js";
import type { Fate, RunState } from "../run/types.js";
import { Icon } from "./icon.js";
import { count } from "./labels.js";

interface Props {
  state: RunState;
  at: number;
  fates: readonly Fate[];
  onPlay(): void;
  onPause(): void;
  onSeek(x: number): void;
  onSpeed(speed: number): void;
}

/** Play, step, speed, and the run as one strip: a column per message, as high as it is long, colored by its fate. */
export function Transport({ state, at, fates, onPlay, onPause, onSeek, onSpeed }: Props) {
  const { phase, log, weights, playing, source, cursor, speed, view } = state;
  const length = log.length + source.length - cursor;
  const ended = cursor >= source.length;
  return (
    <div class="transport">
      <div class="controls">
        <button
          type="button"
          class="button icon-only"
          aria-label="Previous message"
          disabled={at === 0}
          onClick={() => onSeek(at - 1)}
        >
          <Icon name="previous" />
        </button>
        <button
          type="button"
          class={`button play ${playing || ended ? "" : "primary"}`}
          disabled={phase !== "ready" || (ended && view === undefined)}
          onClick={playing ? onPause : onPlay}
          aria-keyshortcuts="Space"
        >
          <Icon name={playing ? "pause" : "play"} /> {playing ? "Pause" : ended ? "Ended" : "Play"}
        </button>
        <button
          type="button"
          class="button icon-only"
          aria-label="Next message"
          disabled={at >= length}
          onClick={() => onSeek(at + 1)}
        >
          <Icon name="next" />
        </button>
        <fieldset class="speeds">
          <legend class="hidden">Speed</legend>
          {SPEEDS.map((value) => (
            <label key={value} class={value === speed ? "on" : ""}>
              <input
                type="radio"
                name="speed"
                class="hidden"
                checked={value === speed}
                onChange={() => onSpeed(value)}
              />
              {value}×
            </label>
          ))}
        </fieldset>
        <p class="position">
          message <b>{count(at)}</b> of {count(length)}
          {view !== undefined && (
            <button type="button" class="link" onClick={() => onSeek(log.length)}>
              back to {count(log.length)}
            </button>
          )}
        </p>
        <ul class="legend" aria-label="Fates">
          {FATES.filter((fate) => fate === "verbatim" || fates.includes(fate)).map((fate) => (
            <li key={fate} class={`cc-fate-${fate}`}>
              <i /> {fate} <span class="number">{fates.filter((other) => other === fate).length}</span>
            </li>
          ))}
        </ul>
      </div>
      <div class="strip">
        <Columns fates={fates} weights={weights} length={length} />
        <input
          type="range"
          min={0}
          max={length}
          value={at}
          step={1}
          aria-label="Position in the run"
          aria-valuetext={`message ${at} of ${length}`}
          onInput={(event) => onSeek(Number(event.currentTarget.value))}
        />
        <span class="needle" style={{ left: `${(at / Math.max(1, length)) * 100}%` }} />
      </div>
    </div>
  );
}

function Columns({
  fates,
  weights,
  length,
}: {
  fates: readonly Fate[];
  weights: readonly number[];
  length: number;
}) {
  const height = (tokens: number) => 5 + 31 * Math.min(1, Math.sqrt(tokens / 6_000));
  return (
    <svg viewBox={`0 0 ${Math.max(1, length)} 36`} preserveAspectRatio="none" aria-hidden="true">
      {Array.from({ length }, (_, i) => {
        const fate = fates[i];
        const tall = fate === undefined ? 3 : height(weights[i] ?? 0);
        return (
          <rect
            key={i}
            class={fate === undefined ? "ahead" : `cc-fate-${fate}`}
            x={i + 0.12}
            y={36 - tall}
            width={0.76}
            height={tall}
          />
        );
      })}
    </svg>
  );
}
