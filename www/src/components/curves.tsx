import { useRef, useState } from "preact/hooks";
import { dollarTicks, dollars, pointsOf, rowsAt, type Curve, type Row } from "../logic/cost.js";
import { linePath, ticks } from "../logic/series.js";
import { useSize } from "./chart.js";
import { count, percent } from "./labels.js";

const PAD = { left: 44, right: 8, top: 10, bottom: 20 };

interface Props {
  curves: readonly Curve[] | undefined;
  /** The one that is playing. */
  chosen: Curve["id"];
  contextWindow: number;
}

/** Money paid and needs lost so far by call, side by side; the table has the figures at the call that is pointed at. */
export function Curves({ curves, chosen, contextWindow }: Props) {
  const [pointed, setPointed] = useState<number | undefined>();
  const calls = Math.max(0, ...(curves ?? []).map((curve) => curve.calls.length));
  const shown = Math.min(pointed ?? calls, calls);
  const rows = rowsAt(curves ?? [], shown);
  const ended = rowsAt(curves ?? [], calls);
  const amount = dollars(Math.max(0, ...ended.map(({ cost }) => cost)));
  if (curves && calls === 0) return <p class="none">This transcript has no call of a model.</p>;
  const plot = { curves: curves ?? [], calls, shown: pointed === undefined ? undefined : shown, onPoint: setPointed };
  return (
    <>
      <div class="plots">
        <Plot {...plot} title="Paid, USD" figure="cost" write={amount} ticksOf={(top) => dollarTicks(top, 4)} />
        <Plot
          {...plot}
          title="Calls that lost a need"
          figure="lost"
          write={count}
          ticksOf={(top) => ticks(top, 4).map((value) => ({ value, text: count(value) }))}
        />
      </div>
      <label class="call">
        <span>
          After call <b class="number">{count(shown)}</b> of <span class="number">{count(calls)}</span>
        </span>
        <input
          type="range"
          min={0}
          max={calls}
          value={shown}
          disabled={calls === 0}
          onInput={(event) => setPointed(Number(event.currentTarget.value))}
        />
      </label>
      <Figures rows={rows} chosen={chosen} amount={amount} contextWindow={contextWindow} />
      {curves?.map(({ id, name, calls: made, error }) => (
        error && (
          <p key={id} class="error">
            {name} ended at call {count(made.length + 1)}: {error}
          </p>
        )
      ))}
    </>
  );
}

interface PlotProps {
  curves: readonly Curve[];
  calls: number;
  shown: number | undefined;
  onPoint(call: number | undefined): void;
  title: string;
  figure: "cost" | "lost";
  write(value: number): string;
  ticksOf(top: number): { value: number; text: string }[];
}

function Plot({ curves, calls, shown, onPoint, title, figure, write, ticksOf }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const [width, height] = useSize(box);
  const lines = curves.map((curve) => ({ ...curve, points: pointsOf(curve, figure) }));
  const most = Math.max(0, ...lines.map(({ points }) => points.at(-1)?.y ?? 0));
  const top = most > 0 ? most * 1.06 : 1;
  const scaleX = (x: number) => PAD.left + (x / Math.max(1, calls)) * (width - PAD.left - PAD.right);
  const scaleY = (y: number) => height - PAD.bottom - (y / top) * (height - PAD.top - PAD.bottom);
  const locate = (event: MouseEvent & { currentTarget: SVGSVGElement }) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    return Math.round(Math.min(1, Math.max(0, (x - PAD.left) / (width - PAD.left - PAD.right))) * calls);
  };
  const ends = lines.map(({ name, points }) => `${name}: ${write(points.at(-1)?.y ?? 0)}`);
  return (
    <figure class="chart cost-chart">
      <figcaption>{title}</figcaption>
      <div class="plot" ref={box}>
        <svg
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={`${title}, after ${count(calls)} calls. ${ends.join(". ")}.`}
          onPointerMove={(event) => calls > 0 && onPoint(locate(event))}
          onPointerLeave={() => onPoint(undefined)}
        >
          {ticksOf(top).map(({ value, text }) => (
            <g key={value} class="tick">
              <line x1={PAD.left} x2={width - PAD.right} y1={scaleY(value)} y2={scaleY(value)} />
              <text x={PAD.left - 7} y={scaleY(value) + 3.5} text-anchor="end">
                {text}
              </text>
            </g>
          ))}
          {calls > 0 &&
            ticks(calls, 3).map((value) => (
              <text key={value} class="axis" x={scaleX(value)} y={height - 5} text-anchor="middle">
                {value === 0 ? "call" : value}
              </text>
            ))}
          {lines.map(({ id, points }) => (
            <path key={id} class={`line curve-${id}`} d={linePath(points, scaleX, scaleY)} />
          ))}
          {shown !== undefined && (
            <line class="cursor" x1={scaleX(shown)} x2={scaleX(shown)} y1={PAD.top} y2={height - PAD.bottom} />
          )}
        </svg>
      </div>
    </figure>
  );
}

interface FiguresProps {
  rows: readonly Row[];
  chosen: Curve["id"];
  amount(usd: number): string;
  contextWindow: number;
}

const OVER = "does not fit into the window";

function Figures({ rows, chosen, amount, contextWindow }: FiguresProps) {
  return (
    <div class="scroll" role="region" aria-label="Figures by policy" tabIndex={0}>
      <table class="costs">
        <caption class="hidden">Cost and needs lost by policy</caption>
        <thead>
          <tr>
            <th scope="col">Session</th>
            <th scope="col">Paid</th>
            <th scope="col">Share</th>
            <th scope="col">Needs lost</th>
            <th scope="col">Compac&shy;tions</th>
            <th scope="col">Largest prompt</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, name, isEnded, cost, share, calls, lost, compactions, largest }) => (
            <tr key={id} class={id === chosen ? "chosen" : ""}>
              <th scope="row">
                <svg viewBox="0 0 22 8" width="22" height="8" aria-hidden="true">
                  <path class={`line curve-${id}`} d="M1 4H21" />
                </svg>{" "}
                {name}
                {id === chosen && <span class="hidden">, playing</span>}
              </th>
              <td>{amount(cost)}</td>
              <td>{share === undefined ? "–" : percent(share)}</td>
              <td class={isEnded ? "over" : ""}>
                {count(lost)} of {count(calls)}
              </td>
              <td>{count(compactions)}</td>
              <td class={largest > contextWindow ? "over" : ""} title={largest > contextWindow ? OVER : undefined}>
                {count(largest)}
                {largest > contextWindow && <span class="hidden">, {OVER}</span>}
              </td>
            </tr>
          ))}
          {rows.length === 0 && (
            <tr>
              <td colSpan={6}>…</td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}
