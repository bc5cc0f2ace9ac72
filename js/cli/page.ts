/** The building blocks of a page: text, tables, charts. They need neither the network nor scripts. */

import { number } from "./terminal.js";

export const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign] ?? sign);

/** A cell: a number, a text, or HTML that is made already. */
export type Cell = number | string | { html: string };

/** A column: its name, and how it is set. */
interface Column {
  name: string;
  /** `text` may be long and wraps; `name` is short and does not. */
  as: "number" | "name" | "text";
}

/** `name:` numbers, `name` short texts, `name…` long ones. */
function columnOf(name: string): Column {
  const as = name.endsWith(":") ? "number" : name.endsWith("…") ? "text" : "name";
  return { name: as === "name" ? name : name.slice(0, -1), as };
}

/** A table. On a narrow screen a row is a few lines, in which each cell says what it is. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const columns = head.map(columnOf);
  const cells = (row: readonly Cell[]): string =>
    row
      .map((cell, at) => {
        const { name, as } = columns[at] as Column;
        const html = typeof cell === "object" ? cell.html : escaped(typeof cell === "number" ? number(cell) : cell);
        return html === "" ? `<td class="${as} none"></td>` : `<td class="${as}" data-of="${escaped(name)}">${html}</td>`;
      })
      .join("");
  const names = columns.map(({ name, as }) => `<th scope="col" class="${as}">${escaped(name)}</th>`).join("");
  return `<table><thead><tr>${names}</tr></thead><tbody>${rows.map((row) => `<tr>${cells(row)}</tr>`).join("")}</tbody></table>`;
}

/** A table of which the first rows are seen, and the others when they are asked for. */
export function longTable(head: readonly string[], rows: readonly (readonly Cell[])[], seen: number): string {
  const first = table(head, rows.slice(0, seen));
  return rows.length <= seen ? first : `${first}<details><summary>${number(rows.length - seen)} more</summary>${table(head, rows.slice(seen))}</details>`;
}

/** Figures side by side: what each is, its value, and what is said beneath. */
export const figures = (all: readonly (readonly [string, string, string?])[]): string =>
  `<dl class="figures">${all.map(([name, value, more = ""]) => `<div><dt>${escaped(name)}</dt><dd><b>${escaped(value)}</b>${more && `<span>${escaped(more)}</span>`}</dd></div>`).join("")}</dl>`;

const share = (part: number, whole: number): string => `${whole <= 0 ? 0 : Math.max(0, Math.min(100, (100 * part) / whole)).toFixed(2)}%`;

/** A bar of parts of a whole. */
export const bar = (parts: readonly (readonly [number, string])[], whole: number): Cell => ({
  html: `<span class="bar">${parts.map(([part, color]) => `<i style="width:${share(part, whole)};background:${color}"></i>`).join("")}</span>`,
});

/** A square in the color of what it stands before. */
export const colored = (text: string, color: string): Cell => ({ html: `<i class="key" style="background:${color}"></i>${escaped(text)}` });

export const code = (text: string): Cell => ({ html: text === "" ? "" : `<code>${escaped(text)}</code>` });

/** The most columns of a chart; more calls than that share them. */
const COLUMNS = 600;

/** Which of `count` values are drawn: of those that share a column the highest. */
export function drawn(count: number, heightOf: (at: number) => number): number[] {
  if (count <= COLUMNS) return Array.from({ length: count }, (_, at) => at);
  return Array.from({ length: COLUMNS }, (_, column) => {
    const [from, to] = [Math.floor((column * count) / COLUMNS), Math.floor(((column + 1) * count) / COLUMNS)];
    let best = from;
    for (let at = from; at < to; at++) if (heightOf(at) > heightOf(best)) best = at;
    return best;
  });
}

interface Chart {
  label: string;
  /** Its highest value, and how many calls there are. */
  top: number;
  calls: number;
  /** What is drawn, in units of a thousandth of the width and height. */
  shapes: (place: (call: number, tokens: number) => string) => string;
  /** The window, where it is to be seen. */
  window: number;
  /** Calls before which something happened, with a name. */
  marks?: readonly (readonly [number, string])[];
}

/** Tokens by call. Words are beside the drawing, so that they are as large on every screen. */
export function chart({ label, top, calls, shapes, window, marks = [] }: Chart): string {
  const step = stepOf(top);
  const ticks = Array.from({ length: Math.floor(top / step) }, (_, nth) => (nth + 1) * step);
  const height = (tokens: number): number => 1000 - (tokens / top) * 1000;
  const left = (call: number): number => (calls < 2 ? 0 : (call / (calls - 1)) * 1000);
  const place = (call: number, tokens: number): string => `${left(call).toFixed(1)},${height(tokens).toFixed(1)}`;
  const across = (tokens: number, name: string): string => `<line x1="0" x2="1000" y1="${height(tokens).toFixed(1)}" y2="${height(tokens).toFixed(1)}" class="${name}"/>`;
  const lines = [
    ...ticks.map((tokens) => across(tokens, "tick")),
    shapes(place),
    window <= top ? across(window, "window") : "",
    ...marks.map(([call]) => `<line x1="${left(call).toFixed(1)}" x2="${left(call).toFixed(1)}" y1="0" y2="1000" class="mark"/>`),
  ];
  const named = [
    ...ticks.map((tokens) => `<span class="y" style="top:${(height(tokens) / 10).toFixed(2)}%">${short(tokens)}</span>`),
    ...(window <= top ? [`<span class="limit" style="top:${(height(window) / 10).toFixed(2)}%">window</span>`] : []),
    ...marks.map(([call, name]) => (name === "" ? "" : `<span class="x" style="left:${(left(call) / 10).toFixed(2)}%">${escaped(name)}</span>`)),
  ];
  return `<figure><div class="chart"><svg viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img" aria-label="${escaped(label)}">${lines.join("")}</svg>${named.join("")}</div>
<figcaption><span>call 1</span><span>${escaped(label)}</span><span>call ${number(calls)}</span></figcaption></figure>`;
}

/** About four steps, each a round number. */
function stepOf(top: number): number {
  const rough = Math.max(1, top / 4);
  const unit = 10 ** Math.floor(Math.log10(rough));
  return unit * ([1, 2, 5, 10].find((step) => step * unit >= rough * 0.8) ?? 10);
}

const short = (tokens: number): string => (tokens >= 1_000_000 ? `${Number((tokens / 1e6).toFixed(1))}M` : tokens >= 1_000 ? `${Number((tokens / 1e3).toFixed(1))}k` : String(tokens));

const STYLE = `:root{color-scheme:light dark;--ink:#1d1f23;--soft:#5b616b;--line:#d9dce1;--ground:#fff;--plate:#f4f5f7;--alarm:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e3e5e8;--soft:#a2a8b3;--line:#3a3f47;--ground:#15171a;--plate:#1f2227;--alarm:#ff8a80}}
*{box-sizing:border-box}body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:0 auto;padding:1.5rem 1rem 3rem;color:var(--ink);background:var(--ground);overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .25rem}h2{font-size:1.2rem;margin:2.2rem 0 .6rem}h3,h3+p{margin:0}h3{font-size:1rem}p{margin:.4rem 0}.soft,.share,footer{color:var(--soft)}.share{display:inline-block;min-width:3.2em}footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.8rem;font-size:.87rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.6rem;margin:1.2rem 0}.figures div{background:var(--plate);border-radius:8px;padding:.6rem .8rem}dt,.figures span{color:var(--soft);font-size:.87rem}dd{margin:0}.figures b{display:block;font-size:1.25rem;line-height:1.3}.figures span{display:block}
table{border-collapse:collapse;width:100%;margin:.5rem 0;font-variant-numeric:tabular-nums}th{font-weight:600;font-size:.87rem;color:var(--soft)}td,th{padding:.25rem .9rem .25rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}td:last-child,th:last-child{padding-right:0}.number{text-align:right}.number,.name{white-space:nowrap;width:1%}code{font:13px/1.5 ui-monospace,monospace}
.bar{display:flex;width:100%;min-width:5rem;height:.8em;margin-top:.35em;background:var(--plate);border-radius:2px;overflow:hidden}.bar i{height:100%}.key{display:inline-block;width:.75em;height:.75em;margin-right:.5em;border-radius:2px}
figure{margin:.8rem 0 0}.chart{position:relative;margin:1.4rem 0 0 2.8rem}svg{display:block;width:100%;height:15rem;background:var(--plate);overflow:visible}line,polyline{vector-effect:non-scaling-stroke}.tick{stroke:var(--line)}.mark{stroke:var(--ink);stroke-dasharray:2 3}.window{stroke:var(--alarm);stroke-dasharray:6 4}.chart span{position:absolute;font-size:.8rem;line-height:1;color:var(--soft)}.chart span{white-space:nowrap}.y{right:calc(100% + .4rem);transform:translateY(-50%)}.x{bottom:calc(100% + .25rem);transform:translateX(-50%)}.chart .limit{right:.3rem;margin-top:.25rem;padding:.1rem .25rem;border-radius:2px;background:var(--plate);color:var(--alarm)}figcaption{display:flex;justify-content:space-between;gap:1rem;margin:.3rem 0 .8rem 2.8rem;font-size:.8rem;color:var(--soft)}
details{margin:.8rem 0}summary{cursor:pointer}summary h3{display:inline}.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;padding:0;margin:.4rem 0}
@media(max-width:640px){thead{position:absolute;left:-9999px}tr{display:flex;flex-wrap:wrap;gap:0 .9rem;border-bottom:1px solid var(--line);padding:.4rem 0}td,td.number,td.name{border:0;padding:0;width:auto}td.text{flex-basis:100%}td.none{display:none}td.number::before{content:attr(data-of) " ";color:var(--soft);font-size:.87rem}}
@media print{details::details-content{content-visibility:visible}}`;

/** The whole page. */
export const page = (title: string, body: readonly string[]): string =>
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${escaped(title)} · context-compactor</title><style>${STYLE}</style></head>
<body>${body.filter(Boolean).join("\n")}</body></html>
`;
