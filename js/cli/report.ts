/** `--report`: one page that needs nothing else, neither the network nor scripts. */

import { writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { buildSummaryPrompt } from "../entry/history.js";
import type { LedgerEntry } from "../entry/main.js";
import { fatesOf, groupsOf, runsOf } from "./compact.js";
import { HEAD, hindsightRows, METHOD, type Hindsight } from "./hindsight.js";
import { noneRecorded, timeOf, type Compaction, type Inspection } from "./inspect.js";
import { CATEGORIES, type Category, type Point } from "./meter.js";
import { bar, chart, code, colored, drawn, escaped, figures, longTable, page, table, type Cell } from "./page.js";
import { NO_CALL, type Outcome } from "./replay.js";
import { changeOf, dollars, number, percent, plural } from "./terminal.js";

/** What a page shows: whatever the command found. */
export interface Findings {
  /** The path, or `-`. */
  file: string;
  /** What was read and assumed, in a line each. */
  about: readonly string[];
  inspection?: Inspection;
  points?: readonly Point[];
  ledger?: readonly LedgerEntry[];
  compacted?: { previousTokens: number; currentTokens: number; window: number; fits: boolean; problems: number };
  outcomes?: readonly Outcome[];
  /** Of each policy, the tokens of its prompts. */
  prompts?: Readonly<Record<string, readonly number[]>>;
  window?: number;
  hindsight?: Hindsight;
}

/** Writes the page; `redact`: without secrets. */
export async function writeReport(path: string, findings: Findings, redact: boolean): Promise<void> {
  await writeFile(path, report(redact ? await redacted(findings) : findings, redact));
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
const LINES = ["#8a8f98", "#d2574a", "#2fa37c", "#3f8fd2", "#b28ae0", "#e0a03a", "#7b6fd0"];
const FATES: Record<string, string> = { verbatim: "#2fa37c", reduced: "#e0a03a", offloaded: "#3f8fd2", summarized: "#d2574a", dropped: "#8a8f98" };

const lineOf = (nth: number): string => LINES[nth % LINES.length] ?? "#8a8f98";

/** The context at each call, a band for each category; a line where it was compacted. */
function meterChart(points: readonly Point[], { window, compactions, peak }: Inspection): string {
  if (points.length < 2) return "";
  const isNear = window.tokens < 3 * peak.meter.total;
  const top = Math.max(1, peak.meter.total * 1.08, isNear ? window.tokens * 1.02 : 0);
  const shown = drawn(points.length, (at) => points[at]?.meter.total ?? 0);
  const used = CATEGORIES.filter((name) => shown.some((at) => (points[at]?.meter[name] ?? 0) > 0));
  const shapes = (place: (call: number, tokens: number) => string): string => {
    const below = new Map<number, number>();
    const bands = used.map((name) => {
      const lower = shown.map((at) => place(at, below.get(at) ?? 0)).reverse();
      for (const at of shown) below.set(at, (below.get(at) ?? 0) + (points[at]?.meter[name] ?? 0));
      return `<polygon fill="${COLORS[name]}" points="${[...shown.map((at) => place(at, below.get(at) ?? 0)), ...lower].join(" ")}"/>`;
    });
    return bands.join("");
  };
  const marks = compactions.map(({ at }, nth): [number, string] => {
    const call = points.findIndex(({ index }) => index >= at);
    return [call < 0 ? points.length - 1 : call, compactions.length <= 20 ? String(nth + 1) : ""];
  });
  const label = `tokens of the context${marks.length > 0 ? "; dotted: a compaction" : ""}`;
  return chart({ label, top, calls: points.length, shapes, window: window.tokens, marks });
}

function meterTable({ peak, end, window, messages }: Inspection): string {
  const withPeak = peak.index < messages;
  const cell = (tokens: number): Cell => ({ html: `${number(tokens)} <span class="share">${percent(tokens, window.tokens)}</span>` });
  const names = CATEGORIES.filter((name) => peak.meter[name] > 0 || end[name] > 0);
  const rows = [...names, "total" as const].map((name): Cell[] => [
    name === "total" ? name : colored(name, COLORS[name]),
    ...(withPeak ? [cell(peak.meter[name])] : []),
    cell(end[name]),
    bar((name === "total" ? names : [name]).map((one) => [(withPeak ? peak.meter : end)[one], COLORS[one]]), window.tokens),
  ]);
  const head = ["", ...(withPeak ? ["at its peak:"] : []), "at the end:", withPeak ? "peak, of the window…" : "of the window…"];
  return table(head, rows);
}

const BACK = { result: "read again", user: "said again", none: "from elsewhere" };

function compactionPart(one: Compaction, nth: number, isOpen: boolean): string {
  const { at, before, after, summaryTokens, keptMessages, messagesAfter, lost, lookups, lookupTokens, repeatedTokens } = one;
  const kept = keptMessages > 0 ? ` and ${plural(keptMessages, "message")}` : "";
  const used = messagesAfter === 0 ? "Nothing came after it." : lost.length === 0 ? `Nothing that it lost was used in the ${plural(messagesAfter, "message")} after it.` : "";
  const again = lookups > 0 ? ` Looked up again: ${number(lookupTokens)} tokens of ${plural(lookups, "call")} with their results${repeatedTokens > 0 ? `, ${number(repeatedTokens)} of them in lines that it had read before` : ""}.` : "";
  const rows = lost.map(({ kind, text, uses, back, index, by }): Cell[] => [kind, code(text), uses, BACK[back], `#${index}`, code(by ?? "")]);
  const said = used || `Lost and used again in the next ${plural(messagesAfter, "message")}: <b>${number(lost.length)}</b>.${again}`;
  return `<details${isOpen ? " open" : ""}><summary><h3>${nth + 1}. Before message ${at}: ${number(before)} → ${number(after)} tokens</h3> <span class="soft">lost ${number(lost.length)}${timeOf(one) && `, ${escaped(timeOf(one))}`}</span></summary>
<p>It left a summary of ${number(summaryTokens)} tokens${kept}. ${said}</p>${rows.length > 0 ? longTable(["kind", "lost…", "uses:", "came back", "at", "by…"], rows, 10) : ""}</details>`;
}

/** So many compactions are shown unfolded. */
const OPEN = 5;

function inspectionPart(report: Inspection, points: readonly Point[]): string[] {
  const { compactions, largestResults, peak, end, window, messages, countedByProvider } = report;
  const sum = (of: (one: Compaction) => number): number => compactions.reduce((total, one) => total + of(one), 0);
  const lost = sum((one) => one.lost.length);
  const all: [string, string, string?][] = [
    ...(peak.index < messages ? [["Context at its peak", number(peak.meter.total), `tokens, ${percent(peak.meter.total, window.tokens)} of the window`] as [string, string, string]] : []),
    ["Context at the end", number(end.total), `tokens, ${percent(end.total, window.tokens)} of the window`],
    ...(countedByProvider === undefined ? [] : [["Largest prompt", number(countedByProvider), "tokens, counted by the provider"] as [string, string, string]]),
    ["Compactions", number(compactions.length), "recorded"],
    ...(compactions.length === 0 ? [] : [["Lost and used again", number(lost), `${number(sum((one) => one.lookupTokens))} tokens to look things up again`] as [string, string, string]]),
  ];
  const results = largestResults.map(({ tokens, index, calls, tool, target }): Cell[] => [tokens, `#${index}`, calls, tool, code(target)]);
  return [
    figures(all),
    `<h2>Context</h2>${meterChart(points, report)}${meterTable(report)}`,
    `<h2>Largest results</h2>${results.length === 0 ? "<p>No tool was called.</p>" : table(["tokens:", "message", "prompts with it:", "tool", "for…"], results)}`,
    `<h2>What the agent's compactions lost</h2>${compactions.map((one, nth) => compactionPart(one, nth, compactions.length <= OPEN)).join("") || `<p>${escaped(noneRecorded(report))}</p>`}`,
  ];
}

function fatesPart(ledger: readonly LedgerEntry[], { previousTokens, currentTokens, window, fits, problems }: NonNullable<Findings["compacted"]>): string[] {
  const fates = Object.entries(fatesOf(ledger)).filter(([, count]) => count > 0);
  const strip = bar(runsOf(ledger).map(({ from, to, fate }) => [to - from + 1, FATES[fate] ?? "#8a8f98"]), ledger.length) as { html: string };
  const groups = groupsOf(ledger).map(({ count, fate, reason = "", first, last }): Cell[] => [count, colored(fate, FATES[fate] ?? "#8a8f98"), first === last ? `#${first}` : `#${first}–#${last}`, reason]);
  const runs = runsOf(ledger).map(({ from, to, fate, reason = "" }): Cell[] => [from === to ? `#${from}` : `#${from}–#${to}`, fate, reason]);
  return [
    figures([
      ["Before", number(previousTokens), `tokens, ${percent(previousTokens, window)} of the window`],
      ["After", number(currentTokens), `tokens, ${percent(currentTokens, window)} of the window`],
      ["Fits", fits ? "yes" : "no", fits ? "" : "it is longer than the window"],
      ["Rules of the provider", problems === 0 ? "kept" : `${number(problems)} broken`],
    ]),
    `<h2>What became of each message</h2>${strip.html.replace('class="bar"', 'class="bar" style="height:1.6rem"')}<ul class="legend">${fates.map(([fate, count]) => `<li>${(colored(`${fate} ${number(count)}`, FATES[fate] ?? "") as { html: string }).html}</li>`).join("")}</ul>`,
    table(["messages:", "fate", "between", "why…"], groups),
    `<details><summary>One after the other</summary>${table(["messages", "fate", "why…"], runs)}</details>`,
  ];
}

function hindsightPart(hindsight: Hindsight): string {
  const head = HEAD.map((name, at) => (at === 0 ? name : `${name}:`));
  return `<h2>Published thresholds and the optimum</h2>${table(head, hindsightRows(hindsight))}<p class="soft">${METHOD}</p>`;
}

function costPart({ outcomes = [], prompts = {}, window = 0, hindsight }: Findings): string[] {
  const most = Math.max(...outcomes.map(({ usd }) => usd));
  const first = outcomes[0]?.usd ?? 0;
  const rows = outcomes.map((one, nth): Cell[] => [
    ...[colored(one.policy, lineOf(nth)), { html: dollars(one.usd) }, nth === 0 ? "" : changeOf(one.usd, first)],
    ...[one.calls, one.cacheMisses, one.compactions, one.largestPrompt, one.refused, bar([[one.usd, lineOf(nth)]], most)],
  ]);
  const stopped = outcomes.flatMap(({ policy, stopped: why }) => (why === undefined ? [] : [`<p>${escaped(policy)} stopped: ${escaped(why)}</p>`]));
  const all = Object.entries(prompts);
  const highest = Math.max(1, ...all.map(([, tokens]) => tokens.reduce((one, other) => Math.max(one, other), 0)));
  const calls = Math.max(...all.map(([, tokens]) => tokens.length), 0);
  const lines = (place: (call: number, tokens: number) => string): string =>
    all.map(([, tokens], nth) => `<polyline fill="none" stroke-width="2" stroke="${lineOf(nth)}" points="${drawn(tokens.length, (at) => tokens[at] ?? 0).map((at) => place(at, tokens[at] ?? 0)).join(" ")}"/>`).join("");
  const isNear = window < 3 * highest;
  return [
    `<h2>Cost of policies</h2>${table(["policy", "cost:", ":", "calls:", "cache misses:", "compactions:", "largest prompt:", "refused:", "cost…"], rows)}${stopped.join("")}`,
    calls < 2 ? (calls === 0 ? `<p>${NO_CALL}</p>` : "") : `<h2>Prompts</h2>${chart({ label: "tokens of each prompt", top: Math.max(highest * 1.08, isNear ? window * 1.02 : 0), calls, shapes: lines, window })}<ul class="legend">${all.map(([name], nth) => `<li>${(colored(name, lineOf(nth)) as { html: string }).html}</li>`).join("")}</ul>`,
    `<p class="soft">The prompts are those of the engine. Summaries are its own, without a model, and cost nothing; answers are those of the history. Refused: calls whose prompt is longer than the window. What a policy lacks later is not in the cost.</p>`,
    hindsight ? hindsightPart(hindsight) : "",
  ];
}

function report(findings: Findings, isRedacted: boolean): string {
  const { file, about, inspection, points, ledger, compacted, outcomes } = findings;
  const name = file === "-" ? "stdin" : basename(file);
  return page(name, [
    `<h1>${escaped(name)}</h1>${about.map((line) => `<p class="soft">${escaped(line)}</p>`).join("")}`,
    ...(ledger && compacted ? fatesPart(ledger, compacted) : []),
    ...(inspection ? [ledger ? "<h2>Before the compaction</h2>" : "", ...inspectionPart(inspection, points ?? [])] : []),
    ...(outcomes ? costPart(findings) : []),
    `<footer>Made by context-compactor. Tokens are estimates, and messages count from 0. ${isRedacted ? "Secrets that were recognized are replaced by placeholders." : "Secrets are not redacted."}</footer>`,
  ]);
}
