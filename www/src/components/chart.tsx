import { categoryColor } from "context-compactor-ui";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { overflowOf, wholeOf } from "../logic/forecast.js";
import { linePath, stackedPaths, ticks } from "../logic/series.js";
import type { RunState, Sample } from "../run/types.js";
import { count, short } from "./labels.js";

const PAD = { left: 40, right: 12, top: 14, bottom: 22 };

interface Props {
  state: RunState;
  at: number;
  onSeek(x: number): void;
  onOpen(number: number): void;
}

/** Tokens per step, stacked by category, with the trigger, the window and the line without compaction. */
export function Chart({ state, at, onSeek, onOpen }: Props) {
  const [hover, setHover] = useState<number | undefined>();
  const box = useRef<HTMLDivElement>(null);
  const [width, height] = useSize(box);
  const { samples, contextWindow, compactions } = state;
  const length = Math.max(state.log.length + state.source.length - state.cursor, 1);
  const top = contextWindow * 1.28;
  const scaleX = (x: number) => PAD.left + (x / length) * (width - PAD.left - PAD.right);
  const scaleY = (y: number) =>
    height - PAD.bottom - (Math.min(y, top) / top) * (height - PAD.top - PAD.bottom);

  const layers = useMemo(() => {
    const names = [...new Set(samples.flatMap(({ categories }) => categories.map(({ name }) => name)))];
    const points = samples.map(({ x, categories }) => ({
      x,
      values: names.map((name) => categories.find((category) => category.name === name)?.tokens ?? 0),
    }));
    const paths = stackedPaths(points, scaleX, scaleY);
    return names.map((name, i) => ({ name, path: paths[i] ?? "" }));
  }, [samples, length, contextWindow, width, height]);

  const trigger = samples.at(-1)?.trigger ?? contextWindow;
  // Without compaction it is known beforehand.
  const whole = wholeOf(state);
  const bare = [0, ...whole].filter((tokens) => tokens <= top).map((y, x) => ({ x, y }));
  const overflow = overflowOf(whole, contextWindow);
  const shown: Sample | undefined = hover === undefined ? undefined : nearest(samples, hover);

  const locate = (event: MouseEvent & { currentTarget: SVGSVGElement }) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    return Math.round(Math.min(1, Math.max(0, (x - PAD.left) / (width - PAD.left - PAD.right))) * length);
  };

  return (
    <figure class="chart">
      <div class="plot" ref={box}>
        <svg
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={label(state, samples)}
          onPointerMove={(event) => setHover(locate(event))}
          onPointerLeave={() => setHover(undefined)}
          onClick={(event) => onSeek(Math.min(locate(event), state.log.length))}
        >
          {ticks(top, 4).map((value) => (
            <g key={value} class="tick">
              <line x1={PAD.left} x2={width - PAD.right} y1={scaleY(value)} y2={scaleY(value)} />
              <text x={PAD.left - 7} y={scaleY(value) + 3.5} text-anchor="end">
                {short(value)}
              </text>
            </g>
          ))}
          {ticks(length, width < 500 ? 3 : 6).map((value) => (
            <text key={value} class="axis" x={scaleX(value)} y={height - 6} text-anchor="middle">
              {value === 0 ? "message" : value}
            </text>
          ))}
          {layers.map(({ name, path }) => (
            <path key={name} d={path} fill={categoryColor(name)} class="layer" />
          ))}

          <line
            class="window"
            x1={PAD.left}
            x2={width - PAD.right}
            y1={scaleY(contextWindow)}
            y2={scaleY(contextWindow)}
          />
          <text class="window" x={PAD.left + 6} y={scaleY(contextWindow) - 5}>
            window {short(contextWindow)}
          </text>
          <line
            class="trigger"
            x1={PAD.left}
            x2={width - PAD.right}
            y1={scaleY(trigger)}
            y2={scaleY(trigger)}
          />
          <text class="trigger" x={PAD.left + 6} y={scaleY(trigger) - 5}>
            trigger {short(trigger)}
          </text>

          <path class="bare" d={linePath(bare, scaleX, scaleY)} />
          {overflow !== undefined && (
            <g class="overflow" transform={`translate(${scaleX(overflow)} ${scaleY(contextWindow)})`}>
              <circle r="6.5" />
              <path d="M-2.4 -2.4L2.4 2.4M2.4 -2.4L-2.4 2.4" />
              <text
                x={overflow > length * 0.7 ? -11 : 11}
                y="14"
                text-anchor={overflow > length * 0.7 ? "end" : "start"}
              >
                {width < 500 ? "over" : "without compaction: over"} at {overflow}
              </text>
            </g>
          )}

          {compactions.map(({ number, x, kind, why }) => (
            <g
              key={number}
              class={`marker ${kind}`}
              transform={`translate(${scaleX(x)} ${height - PAD.bottom})`}
              onClick={(event) => {
                event.stopPropagation();
                onOpen(number);
              }}
            >
              <title>{`Compaction ${number}, ${kind}: ${why}`}</title>
              <line y1="0" y2={-(height - PAD.top - PAD.bottom)} />
              <path d="M-4.5 1h9L0 -6z" />
            </g>
          ))}
          <line class="cursor" x1={scaleX(at)} x2={scaleX(at)} y1={PAD.top} y2={height - PAD.bottom} />
          {shown && <circle class="dot" cx={scaleX(shown.x)} cy={scaleY(shown.used)} r="3.5" />}
        </svg>
      </div>
      <figcaption aria-hidden="true">
        {shown
          ? `message ${shown.x}: ${count(shown.used)} in context, ${count(shown.without)} without compaction`
          : "tokens in context per message · ▲ compaction · dashed: without compaction"}
      </figcaption>
    </figure>
  );
}

/** The plot is drawn in real pixels, so that text and lines keep their size on every screen. */
export function useSize(box: { current: HTMLElement | null }): [width: number, height: number] {
  const [size, setSize] = useState<[number, number]>([760, 268]);
  useEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setSize([Math.round(entry.contentRect.width), Math.round(entry.contentRect.height)]);
    });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return size;
}

function nearest(samples: readonly Sample[], x: number): Sample | undefined {
  let best: Sample | undefined;
  for (const sample of samples) if (!best || Math.abs(sample.x - x) <= Math.abs(best.x - x)) best = sample;
  return best;
}

function label({ compactions, contextWindow }: RunState, samples: readonly Sample[]): string {
  const peak = Math.max(0, ...samples.map(({ used }) => used));
  const without = samples.at(-1)?.without ?? 0;
  return `Tokens in context over the run: at most ${count(peak)} of ${count(contextWindow)}, ${compactions.length} compactions. Without compaction: ${count(without)}.`;
}
