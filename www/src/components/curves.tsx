import { useRef, useState } from "preact/hooks";
import { dollarTicks, dollars, type Line } from "../logic/cost.js";
import { linePath, ticks } from "../logic/series.js";
import { useSize } from "./chart.js";
import { count } from "./labels.js";

const PAD = { left: 52, right: 12, top: 14, bottom: 22 };

interface Props {
  lines: readonly Line[];
  /** Of the whole run. */
  optimum: number | undefined;
}

/** Money paid so far by call, a line for each policy. The legend has the amounts at the call that is pointed at. */
export function CostChart({ lines, optimum }: Props) {
  const [hover, setHover] = useState<number | undefined>();
  const box = useRef<HTMLDivElement>(null);
  const [width, height] = useSize(box);
  const calls = Math.max(0, ...lines.map(({ points }) => points.length - 1));
  const most = Math.max(0, ...lines.map(({ points }) => points.at(-1)?.y ?? 0));
  const top = most > 0 ? most * 1.06 : 1;
  const scaleX = (x: number) => PAD.left + (x / Math.max(1, calls)) * (width - PAD.left - PAD.right);
  const scaleY = (y: number) => height - PAD.bottom - (y / top) * (height - PAD.top - PAD.bottom);
  const amount = dollars(most);
  const shown = Math.min(hover ?? calls, calls);

  const locate = (event: MouseEvent & { currentTarget: SVGSVGElement }) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    return Math.round(Math.min(1, Math.max(0, (x - PAD.left) / (width - PAD.left - PAD.right))) * calls);
  };

  return (
    <figure class="chart cost-chart">
      <div class="plot" ref={box}>
        <svg
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={label(lines, optimum, calls, amount)}
          onPointerMove={(event) => setHover(locate(event))}
          onPointerLeave={() => setHover(undefined)}
        >
          {dollarTicks(top, 6).map(({ value, text }) => (
            <g key={value} class="tick">
              <line x1={PAD.left} x2={width - PAD.right} y1={scaleY(value)} y2={scaleY(value)} />
              <text x={PAD.left - 7} y={scaleY(value) + 3.5} text-anchor="end">
                {text}
              </text>
            </g>
          ))}
          {calls > 0 &&
            ticks(calls, width < 500 ? 3 : 6).map((value) => (
              <text key={value} class="axis" x={scaleX(value)} y={height - 6} text-anchor="middle">
                {value === 0 ? "call" : value}
              </text>
            ))}
          {optimum !== undefined && (
            <line
              class="optimum"
              x1={PAD.left}
              x2={width - PAD.right}
              y1={scaleY(optimum)}
              y2={scaleY(optimum)}
            />
          )}
          {lines.map(({ id, points }) => (
            <path key={id} class={`line policy-${id}`} d={linePath(points, scaleX, scaleY)} />
          ))}
          {hover !== undefined && (
            <line class="cursor" x1={scaleX(shown)} x2={scaleX(shown)} y1={PAD.top} y2={height - PAD.bottom} />
          )}
        </svg>
      </div>
      <figcaption>
        <ul>
          {lines.map(({ id, name, points }) => (
            <li key={id}>
              <Swatch id={id} />
              <span>{name}</span>
              <span class="number">{calls > 0 && amount(points[shown]?.y ?? 0)}</span>
            </li>
          ))}
          <li>
            <Swatch id="optimum" />
            <span>Optimum, in the end</span>
            <span class="number">{optimum !== undefined && amount(optimum)}</span>
          </li>
        </ul>
        <p aria-hidden="true">
          {calls === 0 ? "\u00a0" : `USD paid after ${count(shown)} of ${count(calls)} calls`}
        </p>
      </figcaption>
    </figure>
  );
}

function Swatch({ id }: { id: string }) {
  return (
    <svg viewBox="0 0 22 8" width="22" height="8" aria-hidden="true">
      <path class={id === "optimum" ? "optimum" : `line policy-${id}`} d="M1 4H21" />
    </svg>
  );
}

function label(
  lines: readonly Line[],
  optimum: number | undefined,
  calls: number,
  amount: (usd: number) => string,
): string {
  if (calls === 0) return "USD paid so far by call: nothing yet.";
  const ends = lines.map(({ name, points }) => `${name}: ${amount(points.at(-1)?.y ?? 0)}`);
  if (optimum !== undefined) ends.push(`Optimum: ${amount(optimum)}`);
  return `USD paid after ${count(calls)} calls. ${ends.join(". ")}.`;
}
