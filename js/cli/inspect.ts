/** `inspect`: what fills the context, and what the agent's own compactions lost. */

import { basename } from "node:path";
import type { Change } from "./changes.js";
import { EXIT } from "./exit.js";
import { readInput, type Input } from "./input.js";
import { lossesOf, type Loss, type Lost } from "./lost.js";
import { CATEGORIES, metersOf, peakOf, sizesOf, windowOf, type Meter, type Point, type Size, type Window } from "./meter.js";
import { writeReport } from "./report.js";
import { partsOf, shortened, targetOf, type Part } from "./said.js";
import { bar, number, percent, plural, type Terminal } from "./terminal.js";
import type { Given } from "./usage.js";

/** A result of a tool, and what it took. */
export interface LargeResult {
  index: number;
  tokens: number;
  tool: string;
  target: string;
  /** Calls of the model that were sent it. */
  calls: number;
}

/** A compaction that the agent made. */
export interface Compaction {
  /** Messages before it. */
  at: number;
  time?: string;
  /** Tokens of the context before and after. */
  before: number;
  after: number;
  summaryTokens: number;
  keptMessages: number;
  lost: Lost[];
  lookups: number;
  lookupTokens: number;
  repeatedTokens: number;
  /** Messages until the next one, or the end. */
  messagesAfter: number;
}

export interface Inspection {
  file: string;
  kind: Input["kind"];
  format: string;
  model?: string;
  messages: number;
  calls: number;
  skipped: Record<string, number>;
  window: { tokens: number; assumed: boolean };
  countedByProvider?: number;
  peak: { index: number; meter: Meter };
  end: Meter;
  largestResults: LargeResult[];
  compactions: Compaction[];
}

export async function inspect(given: Given, terminal: Terminal): Promise<number> {
  terminal.progress("reading");
  const input = await readInput(given.file, given.format);
  const found = await inspectionOf(input, given, terminal);
  terminal.done();
  const { report, points, window } = found;
  terminal.object("inspect", report);
  print(report, window, terminal);
  if (given.report !== undefined) {
    await writeReport(given.report, { file: input.name, about: aboutOf(input, window, report.calls), inspection: report, points }, given.redact);
    terminal.line();
    terminal.line(reported(given));
  }
  return EXIT.fine;
}

export async function inspectionOf(
  input: Input,
  given: Pick<Given, "window" | "model">,
  terminal: Terminal,
): Promise<{ report: Inspection; points: Point[]; window: Window }> {
  const window = await windowOf(input, given);
  terminal.progress("counting tokens");
  const sizes = sizesOf(input.messages, input, window.model);
  const { points, end } = metersOf(input, sizes);
  const losses = await lossesOf(input, (done, of) => terminal.progress(`compaction ${done + 1} of ${of}`));
  const peak = peakOf(points, end, input.messages.length);
  const report: Inspection = {
    ...{ file: input.name, kind: input.kind, format: input.format },
    ...(window.model ?? input.model ? { model: window.model ?? (input.model as string) } : {}),
    ...{ messages: input.messages.length, calls: points.length, skipped: input.skipped },
    window: { tokens: window.tokens, assumed: window.assumed },
    ...(input.counted === undefined ? {} : { countedByProvider: input.counted }),
    ...{ peak, end },
    largestResults: largestOf(input, sizes, points),
    compactions: compactionsOf(input, sizes, losses),
  };
  return { report, points, window };
}

const MOST = 10;

function largestOf(input: Input, sizes: readonly Size[], points: readonly Point[]): LargeResult[] {
  const order = sizes.map((_, index) => index).filter((index) => (sizes[index]?.results ?? 0) > 0);
  order.sort((a, b) => (sizes[b] as Size).results - (sizes[a] as Size).results || a - b);
  const largest = new Set(order.slice(0, MOST));
  const calls = new Map<string, { tool: string; target: string }>();
  for (const message of input.messages) {
    for (const part of partsOf(message)) if (part.kind === "call" && part.id) calls.set(part.id, { tool: part.name ?? "?", target: targetOf(part) });
  }
  return [...largest].map((index) => {
    const results = partsOf(input.messages[index] as object).filter(({ kind }) => kind === "result");
    const longest = results.reduce((most, one) => (one.text.length > most.text.length ? one : most), { kind: "result", role: "tool", text: "" } as Part);
    const { tool, target } = calls.get(longest.id ?? "") ?? { tool: longest.name ?? "?", target: shortened(longest.text, 80) };
    // It is sent until a compaction that does not keep it.
    const end = input.changes.find(({ at, kept }) => at > index && !kept.includes(index))?.at ?? Infinity;
    const sent = points.filter((point) => point.index > index && point.index < end).length;
    const more = results.length > 1 ? ` (+${results.length - 1} more)` : "";
    return { index, tokens: (sizes[index] as Size).results, tool, target: target + more, calls: sent };
  });
}

function compactionsOf(input: Input, sizes: readonly Size[], losses: ReadonlyMap<Change, Loss>): Compaction[] {
  const changes = [...losses.keys()];
  return changes.map((change, nth) => {
    const loss = losses.get(change) as Loss;
    const until = (at: number, which: Change[]): number => metersOf({ ...input, messages: input.messages.slice(0, at), changes: which }, sizes.slice(0, at)).end.total;
    const place = input.changes.indexOf(change);
    return {
      ...{ at: change.at, ...(change.time > 0 ? { time: new Date(change.time).toISOString() } : {}) },
      before: until(change.at, input.changes.slice(0, place)),
      after: until(change.at, input.changes.slice(0, place + 1)),
      summaryTokens: sizesOf(change.summaries, input).reduce((sum, { tokens }) => sum + tokens, 0),
      keptMessages: change.kept.length,
      ...loss,
      messagesAfter: (changes[nth + 1]?.at ?? input.messages.length) - change.at,
    };
  });
}

const KINDS: Record<Input["kind"], string> = {
  "context-compactor": "archive of context-compactor",
  "claude-code": "Claude Code transcript",
  codex: "Codex transcript",
  messages: "messages",
  request: "request body",
};

/** What was read, in a line. */
export const describe = ({ kind, format }: { kind: Input["kind"]; format: string }): string =>
  kind === "messages" || kind === "request" ? `${KINDS[kind]} (${format})` : KINDS[kind];

/** What was read, with its name. */
export const firstLine = (input: Input): string => `${input.name === "-" ? "stdin" : input.name}: ${describe(input)}, ${plural(input.messages.length, "message")}`;

/** What was read and assumed, for a page. */
export function aboutOf(input: Input, { tokens, assumed, model = input.model }: Window, calls?: number): string[] {
  const counts = [plural(input.messages.length, "message"), ...(calls === undefined ? [] : [plural(calls, "call")])];
  return [
    ...(input.name === basename(input.name) ? [] : [input.name]),
    `${describe(input)}, ${counts.join(", ")}${model === undefined ? "" : `, ${model}`}; window ${number(tokens)}${assumed ? ", assumed: --window or --model says it" : ""}`,
  ];
}

/** Where the page is. */
export const reported = ({ report, redact }: Pick<Given, "report" | "redact">): string => `Report: ${report}${redact ? " (secrets redacted)" : ""}`;

/** Why there is no compaction to look at. */
export function noneRecorded({ kind, skipped }: Pick<Inspection, "kind" | "skipped">): string {
  const unread = skipped["compacted"] ?? 0;
  if (unread > 0) return `${plural(unread, "compaction")}, which only the provider can read: what they lost is not known.`;
  return kind === "messages" || kind === "request" ? "None is recorded: a list of messages does not say what was there before." : "The agent made none.";
}

/** The width of a bar beside figures. */
const barOf = ({ columns }: Terminal): number => Math.max(0, Math.min(30, columns - 38));

function print(report: Inspection, window: Window, terminal: Terminal): void {
  const { messages, calls, peak, end, compactions, skipped } = report;
  terminal.line(`${report.file === "-" ? "stdin" : report.file}: ${describe(report)}, ${plural(messages, "message")}, ${plural(calls, "call")}${report.model ? `, ${report.model}` : ""}`);
  const left = Object.entries(skipped).map(([what, count]) => `${what || "other"} ${number(count)}`);
  if (left.length > 0) terminal.line(terminal.paint("dim", `Lines that are no part of the conversation: ${left.join(", ")}`));
  const of = `of ${number(window.tokens)}${window.assumed ? ", assumed: give --window or --model" : ""}`;
  if (peak.index < messages) printMeter(`Context at its peak, before message ${peak.index} (${of})`, peak.meter, window, terminal);
  printMeter(`Context at the end (${of})`, end, window, terminal);
  if (report.countedByProvider !== undefined) {
    const more = report.countedByProvider - peak.meter.total;
    const why = more > 2_000 ? `; about ${number(more)} of it is not in the transcript: system prompt, tools and reasoning` : "";
    terminal.line(terminal.paint("dim", `  The provider counted ${number(report.countedByProvider)} tokens in the largest prompt${why}.`));
  }
  if (report.largestResults.length > 0) {
    terminal.heading(`Largest results`);
    const rows = report.largestResults.map(({ index, tokens, tool, target, calls: sent }) => [number(tokens), `#${index}`, `sent ${number(sent)}×`, calledFor(tool, target)]);
    terminal.table(rows, ["right", "right", "right"]);
  }
  printCompactions(compactions, report, terminal);
}

/** A call in a line; how many more results its message has stays in it. */
function calledFor(tool: string, target: string): string {
  const [, what = target, more = ""] = /^(.*?)( \(\+\d+ more\))?$/.exec(target) ?? [];
  return shortened(`${tool} ${what}`, 80 - more.length) + more;
}

function printMeter(title: string, meter: Meter, window: Window, terminal: Terminal): void {
  terminal.heading(title);
  const row = (name: keyof Meter): string[] => [name, number(meter[name]), percent(meter[name], window.tokens).padStart(5), bar(meter[name], window.tokens, barOf(terminal))];
  terminal.table([...CATEGORIES.filter((name) => meter[name] > 0), "total" as const].map(row), ["left", "right"]);
}

/** Of more compactions than these, those that lost most are shown with what they lost. */
const FEW = 5;
const WORST = 3;

function printCompactions(compactions: readonly Compaction[], report: Inspection, terminal: Terminal): void {
  if (compactions.length === 0) {
    terminal.heading("Compactions");
    terminal.line(`  ${noneRecorded(report)}`);
    return;
  }
  const isMany = compactions.length > FEW;
  if (isMany) {
    terminal.heading(`Compactions`);
    const rows = compactions.map((one, nth) => [`${nth + 1}`, `#${one.at}`, timeOf(one), number(one.before), `→ ${number(one.after)}`, number(one.lost.length), number(one.lookupTokens)]);
    terminal.table([["", "at", "time", "tokens", "", "lost", "looked up"], ...rows], ["right", "right", "left", "right", "left", "right", "right"]);
  }
  const worst = [...compactions].sort((a, b) => b.lost.length - a.lost.length || a.at - b.at).slice(0, WORST);
  for (const [nth, one] of compactions.entries()) {
    if (isMany && !worst.includes(one)) continue;
    const time = timeOf(one);
    terminal.heading(`Compaction ${nth + 1} of ${compactions.length}, before message ${one.at}${time && `, ${time}`}: ${number(one.before)} → ${number(one.after)} tokens`);
    printLoss(one, terminal);
  }
  if (isMany) terminal.line(terminal.paint("dim", `  These ${WORST} lost most; --json and --report have what the others lost.`));
  if (compactions.length > 1) {
    const sum = (of: (one: Compaction) => number): number => compactions.reduce((total, one) => total + of(one), 0);
    terminal.line();
    terminal.line(terminal.paint("bold", `${plural(compactions.length, "compaction")} lost ${plural(sum((one) => one.lost.length), "thing")} that ${sum((one) => one.lost.length) === 1 ? "was" : "were"} used again; ${number(sum((one) => one.lookupTokens))} tokens to look them up.`));
  }
  if (report.kind === "context-compactor") terminal.line(terminal.paint("dim", "The archive has all of it, and session.recall reads it."));
}

/** When it was, to the minute. */
export const timeOf = ({ time }: Compaction): string => (time === undefined ? "" : `${time.slice(0, 16).replace("T", " ")} UTC`);

const BACK = { result: "read again", user: "said again", none: "from elsewhere" };

function printLoss({ lost, lookups, lookupTokens, repeatedTokens, messagesAfter, summaryTokens, keptMessages }: Compaction, terminal: Terminal): void {
  terminal.line(`  Left: a summary of ${number(summaryTokens)} tokens${keptMessages > 0 ? ` and ${plural(keptMessages, "message")}` : ""}.`);
  if (messagesAfter === 0) return terminal.line("  Nothing came after it.");
  if (lost.length === 0) return terminal.line(terminal.paint("green", `  Nothing that it lost was used in the ${plural(messagesAfter, "message")} after it.`));
  const count = (back: Lost["back"]): number => lost.filter((one) => one.back === back).length;
  const ways = [
    count("result") > 0 ? `${number(count("result"))} read again` : "",
    count("user") > 0 ? `${number(count("user"))} said again by the user` : "",
    count("none") > 0 ? `${number(count("none"))} from elsewhere` : "",
  ].filter(Boolean);
  terminal.line(terminal.paint("red", `  Lost and used again in the next ${plural(messagesAfter, "message")}: ${number(lost.length)}`) + ` (${ways.join(", ")})`);
  if (lookups > 0) terminal.line(`  Looked up again: ${number(lookupTokens)} tokens of ${plural(lookups, "call")} with their results${repeatedTokens > 0 ? `, ${number(repeatedTokens)} of them in lines that it had read before` : ""}`);
  const rows = lost.slice(0, MOST).map((one) => [one.kind, shortened(one.text, 52), `${number(one.uses)}×`, BACK[one.back], `#${one.index}`, shortened(one.by ?? "", 50)]);
  terminal.table(rows, ["left", "left", "right", "left", "right"], "    ");
  if (lost.length > MOST) terminal.line(terminal.paint("dim", `    … ${number(lost.length - MOST)} more with --json`));
}
