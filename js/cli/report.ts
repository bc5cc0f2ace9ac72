/** `--report`: one page that needs nothing else, neither the network nor scripts. */

import { writeFile } from "node:fs/promises";
import { buildSummaryPrompt } from "../entry/history-inline.js";
import type { LedgerEntry } from "../entry/inline.js";
import { runsOf } from "./compact.js";
import type { Inspection } from "./inspect.js";
import { CATEGORIES, type Category, type Meter, type Point } from "./meter.js";
import type { Outcome } from "./replay.js";
import { dollars, number, percent } from "./terminal.js";

/** What a page shows: whatever the command found. */
export interface Findings {
  inspection?: Inspection;
  points?: readonly Point[];
  ledger?: readonly LedgerEntry[];
  compacted?: { previousTokens: number; currentTokens: number };
  outcomes?: readonly Outcome[];
  /** Of each policy, the tokens of its prompts. */
  prompts?: Readonly<Record<string, readonly number[]>>;
  window?: number;
  file?: string;
}

/** Writes the page; `redact`: without secrets. */
export async function writeReport(path: string, findings: Findings, redact: boolean): Promise<void> {
  const shown = redact ? await redacted(findings) : findings;
  await writeFile(path, page(shown));
}

/** The same findings with placeholders for the secrets in their texts: what the summarizer would not be shown either. */
async function redacted(findings: Findings): Promise<Findings> {
  const texts = new Set<string>();
  const visit = (value: unknown, to: (text: string) => unknown): unknown => {
    if (typeof value === "string") return to(value);
    if (Array.isArray(value)) return value.map((one) => visit(one, to));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, visit(one, to)]));
  };
  visit(findings, (text) => texts.add(text.replace(/\s+/g, " ")));
  const lines = [...texts];
  const content = lines.map((text, at) => `${MARK}${at}: ${text}`).join("\n");
  const { messages } = await buildSummaryPrompt([{ role: "user", content }], { format: "openai-chat", redact: { secrets: true } });
  const prompt = messages.map((message) => String(message.content)).join("\n");
  const found = new Map<string, string>();
  for (const [, at, text = ""] of prompt.matchAll(new RegExp(`^${MARK}(\\d+): (.*)$`, "gm"))) found.set(lines[Number(at)] ?? "", text);
  // A text that did not come back may have held one.
  return visit(findings, (text) => found.get(text.replace(/\s+/g, " ")) ?? "[redacted]") as Findings;
}

const MARK = "text-";

const COLORS: Record<Category, string> = { system: "#7b6fd0", tools: "#b28ae0", user: "#3f8fd2", assistant: "#2fa37c", "tool results": "#e0a03a", summary: "#d2574a" };
const LINES = ["#888", "#d2574a", "#2fa37c", "#3f8fd2", "#b28ae0", "#e0a03a", "#7b6fd0"];

const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign] ?? sign);

type Cell = string | number;

const table = (head: readonly string[], rows: readonly (readonly Cell[])[]): string =>
  `<table><tr>${head.map((one) => `<th>${escaped(one)}</th>`).join("")}</tr>${rows
    .map((row) => `<tr>${row.map((cell) => (typeof cell === "number" ? `<td class="n">${number(cell)}</td>` : `<td>${escaped(cell)}</td>`)).join("")}</tr>`)
    .join("")}</table>`;

const WIDTH = 900;
const HEIGHT = 240;

/** The context at each call, a band for each category; a line where it was compacted. */
function meterChart(points: readonly Point[], { window, compactions, peak }: Inspection): string {
  const top = Math.max(peak.meter.total, Math.min(window.tokens, peak.meter.total * 1.5)) || 1;
  const x = (at: number): number => (points.length < 2 ? 0 : (at / (points.length - 1)) * WIDTH);
  const y = (tokens: number): number => HEIGHT - (tokens / top) * HEIGHT;
  const place = (one: number): string => one.toFixed(1);
  const below = points.map(() => 0);
  const bands = CATEGORIES.map((name) => {
    const lower = points.map((_, at) => `${place(x(at))},${place(y(below[at] ?? 0))}`).reverse();
    points.forEach(({ meter }, at) => (below[at] = (below[at] ?? 0) + meter[name]));
    const upper = points.map((_, at) => `${place(x(at))},${place(y(below[at] ?? 0))}`);
    return `<polygon fill="${COLORS[name]}" points="${[...upper, ...lower].join(" ")}"/>`;
  });
  const marks = compactions.map(({ at }) => {
    const call = points.findIndex(({ index }) => index >= at);
    const left = place(x(call < 0 ? points.length - 1 : call));
    return `<line x1="${left}" x2="${left}" y1="0" y2="${HEIGHT}" class="mark"/>`;
  });
  const legend = CATEGORIES.map((name) => `<span><i style="background:${COLORS[name]}"></i>${name}</span>`).join(" ");
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Tokens of the context at each call">${bands.join("")}${marks.join("")}</svg>
<p class="legend">${legend} · highest ${number(peak.meter.total)} tokens · dashed: compactions · ${number(points.length)} calls</p>`;
}

function promptsChart(prompts: Readonly<Record<string, readonly number[]>>, window: number): string {
  const all = Object.entries(prompts);
  const top = Math.max(1, ...all.map(([, tokens]) => tokens.reduce((most, one) => Math.max(most, one), 0)));
  const calls = Math.max(2, ...all.map(([, tokens]) => tokens.length));
  const lines = all.map(([, tokens], nth) => {
    const points = tokens.map((one, at) => `${((at / (calls - 1)) * WIDTH).toFixed(1)},${(HEIGHT - (one / top) * HEIGHT).toFixed(1)}`);
    return `<polyline fill="none" stroke-width="2" stroke="${LINES[nth % LINES.length]}" points="${points.join(" ")}"/>`;
  });
  const limit = HEIGHT - (window / top) * HEIGHT;
  const mark = limit > 0 ? `<line x1="0" x2="${WIDTH}" y1="${limit.toFixed(1)}" y2="${limit.toFixed(1)}" class="mark"/>` : "";
  const legend = all.map(([name], nth) => `<span><i style="background:${LINES[nth % LINES.length]}"></i>${escaped(name)}</span>`).join(" ");
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Tokens of the prompts">${lines.join("")}${mark}</svg><p class="legend">${legend} · highest ${number(top)} tokens${mark ? " · dashed: the window" : ""}</p>`;
}

const meterTable = (meter: Meter, window: number): string =>
  table(["", "tokens", "of the window"], [...CATEGORIES.filter((name) => meter[name] > 0), "total" as const].map((name) => [name, meter[name], percent(meter[name], window)]));

const BACK = { result: "read again", user: "said again", none: "from elsewhere" };

function inspectionPart(report: Inspection, points: readonly Point[]): string {
  const compactions = report.compactions.map((one, nth) => {
    const title = `<h3>Compaction ${nth + 1}, before message ${one.at}: ${number(one.before)} → ${number(one.after)} tokens</h3>`;
    const said = `<p>Lost and used again: <b>${number(one.lost.length)}</b>. Looked up again: ${number(one.lookupTokens)} tokens of ${number(one.lookups)} calls with their results.</p>`;
    return title + said + (one.lost.length > 0 ? table(["", "", "uses", "came back", "at", "by"], one.lost.slice(0, 50).map(({ kind, text, uses, back, index, by }) => [kind, text, uses, BACK[back], `#${index}`, by ?? ""])) : "");
  });
  return `<h2>Context</h2>${meterChart(points, report)}
<h3>At its peak</h3>${meterTable(report.peak.meter, report.window.tokens)}
<h3>At the end</h3>${meterTable(report.end, report.window.tokens)}
<h2>Largest results</h2>${table(["tokens", "message", "sent to calls", "tool", "for"], report.largestResults.map(({ tokens, index, calls, tool, target }) => [tokens, `#${index}`, calls, tool, target]))}
<h2>Compactions of the agent</h2>${compactions.join("") || "<p>None is recorded.</p>"}`;
}

function fatesPart(ledger: readonly LedgerEntry[], { previousTokens, currentTokens }: { previousTokens: number; currentTokens: number }): string {
  const rows = runsOf(ledger).map(({ from, to, fate, reason }) => [from === to ? `#${from}` : `#${from}–#${to}`, fate, reason ?? ""]);
  return `<h2>Compacted: ${number(previousTokens)} → ${number(currentTokens)} tokens</h2>${table(["messages", "fate", "why"], rows)}`;
}

function costPart({ outcomes = [], prompts = {}, window = 0 }: Findings): string {
  const rows = outcomes.map((one) => [one.policy, one.calls, dollars(one.usd), one.cacheMisses, one.compactions, one.largestPrompt, one.refused]);
  return `<h2>Cost of policies</h2>${table(["policy", "calls", "USD", "cache misses", "compactions", "largest prompt", "refused"], rows)}${promptsChart(prompts, window)}`;
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}.n{text-align:right;font-variant-numeric:tabular-nums}
svg{width:100%;height:auto;background:#8881}.mark{stroke:#d2574a;stroke-dasharray:4 3}.legend i{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 .8em}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}}`;

function page(findings: Findings): string {
  const { inspection, points, ledger, compacted, outcomes } = findings;
  const name = inspection?.file ?? findings.file ?? "";
  const title = `context-compactor: ${escaped(name === "-" ? "stdin" : name)}`;
  const parts = [
    inspection ? `<p>${escaped(inspection.kind)}, ${escaped(inspection.format)}, ${number(inspection.messages)} messages${inspection.model ? `, ${escaped(inspection.model)}` : ""}; window ${number(inspection.window.tokens)}${inspection.window.assumed ? " (assumed)" : ""}</p>` : "",
    ledger && compacted ? fatesPart(ledger, compacted) : "",
    inspection ? inspectionPart(inspection, points ?? []) : "",
    outcomes ? costPart(findings) : "",
  ];
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${STYLE}</style><h1>${title}</h1>${parts.join("\n")}</html>\n`;
}
