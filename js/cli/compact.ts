/** `compact`: the history made shorter, in the format that it came in. */

import { writeFile } from "node:fs/promises";
import process from "node:process";
import { compact, importSession, type CompactionResult, type CompactOptions, type LedgerEntry, type Message } from "../entry/main.js";
import { validateHistory } from "../entry/history.js";
import { EXIT, wrongUsage } from "./exit.js";
import { readInput, type Input } from "./input.js";
import { aboutOf, firstLine, inspectionOf, reported } from "./inspect.js";
import { fixedOf, windowOf } from "./meter.js";
import { writeReport } from "./report.js";
import { shortened } from "./said.js";
import { number, percent, plural, type Terminal } from "./terminal.js";
import { meant, type Given } from "./usage.js";

/** The result, without a type for the messages. */
type Result = CompactionResult<Message>;

export async function compactFile(given: Given, terminal: Terminal): Promise<number> {
  const options = { ...(given.preset === undefined ? {} : { preset: given.preset }), ...summarizerOf(given) };
  terminal.progress("reading");
  const input = await readInput(given.file, given.format);
  const window = await windowOf(input, given);
  const fixed = fixedOf(input);
  const all: CompactOptions = {
    ...{ ...options, contextWindow: window.tokens, reserveTokens: fixed.system + fixed.tools, logger: () => {} },
    ...(window.model === undefined ? {} : { model: window.model }),
    onProgress: ({ stage, done, total }) => terminal.progress(`${stage} ${done} of ${total}`),
  };
  const { result, text } = input.kind === "context-compactor" ? await ofArchive(input, all) : await ofMessages(input, all);
  terminal.done();
  const { problems } = await validateHistory(result.messages, { format: input.format });
  if (given.output !== undefined) await writeFile(given.output, text);
  else if (!given.json) terminal.data(text);
  const { changed, fits, previousTokens, currentTokens, ledger, summary, llmCalls } = result;
  terminal.object("compact", {
    ...{ file: input.name, kind: input.kind, format: input.format, window: { tokens: window.tokens, assumed: window.assumed } },
    ...{ changed, fits, previousTokens, currentTokens, summary, llmCalls, fates: fatesOf(ledger), ledger, problems },
    ...(result.error ? { error: { code: result.error.code, message: result.error.message } } : {}),
    ...(given.output === undefined ? { output: text } : { output: given.output }),
  });
  print({ input, result, problems, window: window.tokens }, given, terminal);
  if (given.report !== undefined) {
    const { report, points } = await inspectionOf(input, given, terminal);
    const compacted = { previousTokens, currentTokens, window: window.tokens, fits, problems: problems.length };
    await writeReport(given.report, { file: input.name, about: aboutOf(input, window, report.calls), inspection: report, points, ledger, compacted }, given.redact);
    terminal.line(reported(given));
  }
  if (!fits) return EXIT.tooLarge;
  return result.success && problems.length === 0 ? EXIT.fine : EXIT.problems;
}

async function ofMessages(input: Input, options: CompactOptions): Promise<{ result: Result; text: string }> {
  const result: Result = await compact(input.messages, { ...options, format: input.format });
  return { result, text: written(input, result.messages) };
}

/** An archive stays one: with the compaction in it, and all that was there. */
async function ofArchive(input: Input, { onProgress, ...options }: CompactOptions): Promise<{ result: Result; text: string }> {
  const session = await importSession(input.source.bytes(), { ...options, ...(onProgress ? { onProgress } : {}), store: "memory", background: false });
  try {
    const result: Result = await session.compact();
    return { result, text: await new Response(session.archive.jsonl()).text() };
  } finally {
    await session.close({ delete: true });
  }
}

/** Messages in the shape of the file that they came from. */
function written({ shape, text, field }: Input, messages: readonly Message[]): string {
  if (shape === "lines") return messages.map((message) => `${JSON.stringify(message)}\n`).join("");
  const indent = /^[{[]\s*\n\s/.test(text.trimStart()) ? 2 : undefined;
  if (shape === "array") return `${JSON.stringify(messages, undefined, indent)}\n`;
  const lines = text.trim().split("\n");
  const body = JSON.parse(indent === undefined ? (lines.at(-1) ?? "") : text) as Record<string, unknown>;
  return `${JSON.stringify({ ...body, [field ?? "messages"]: messages }, undefined, indent)}\n`;
}

/** Where each provider's key is, and how it is sent. */
const KEYS: Record<string, { variable?: string; headers: (key: string) => Record<string, string> }> = {
  openai: { variable: "OPENAI_API_KEY", headers: (key) => ({ authorization: `Bearer ${key}` }) },
  anthropic: { variable: "ANTHROPIC_API_KEY", headers: (key) => ({ "x-api-key": key }) },
  gemini: { variable: "GEMINI_API_KEY", headers: (key) => ({ "x-goog-api-key": key }) },
  ollama: { headers: () => ({}) },
};

function summarizerOf({ provider, url }: Given): Pick<CompactOptions, "summarize"> {
  if (provider === undefined) {
    if (url !== undefined) throw wrongUsage("--url needs --provider KIND:MODEL");
    return { summarize: "extractive" };
  }
  const [, kind = "", model = ""] = /^(\w+):(.+)$/.exec(provider) ?? [];
  const known = KEYS[kind];
  if (!known) throw wrongUsage(`--provider ${provider}: write KIND:MODEL, as in anthropic:claude-sonnet-4-5${meant(kind, Object.keys(KEYS))}; kinds are ${Object.keys(KEYS).join(", ")}`);
  const key = known.variable === undefined ? "" : process.env[known.variable];
  // A server of one's own may need none.
  if (key === undefined && url === undefined) throw wrongUsage(`--provider ${provider} needs its key in the environment variable ${known.variable}`);
  const kindOf = kind as "openai" | "anthropic" | "gemini" | "ollama";
  return { summarize: { provider: { kind: kindOf, model, ...(url === undefined ? {} : { url }), headers: key === undefined ? {} : known.headers(key) } } };
}

const FATES = ["verbatim", "reduced", "offloaded", "summarized", "dropped"] as const;

export function fatesOf(ledger: readonly LedgerEntry[]): Record<string, number> {
  return Object.fromEntries(FATES.map((fate) => [fate, ledger.filter((entry) => entry.fate === fate).length]));
}

/** Messages of one fate that follow each other. */
export function runsOf(ledger: readonly LedgerEntry[]): { from: number; to: number; fate: string; reason?: string }[] {
  const runs: { from: number; to: number; fate: string; reason?: string }[] = [];
  for (const { index, fate, quoted, reason: why } of ledger) {
    const reason = why ?? (quoted ? "quoted after the summary" : undefined);
    const last = runs.at(-1);
    if (last && last.fate === fate && last.reason === reason && last.to === index - 1) last.to = index;
    else runs.push({ from: index, to: index, fate, ...(reason === undefined ? {} : { reason }) });
  }
  return runs;
}

interface Group {
  count: number;
  fate: string;
  reason?: string;
  first: number;
  last: number;
}

/** Messages of one fate for one reason, wherever they are. */
export function groupsOf(ledger: readonly LedgerEntry[]): Group[] {
  const groups = new Map<string, Group>();
  for (const { from, to, fate, reason } of runsOf(ledger)) {
    const key = `${fate} ${reason ?? ""}`;
    const group = groups.get(key) ?? { count: 0, fate, first: from, last: to, ...(reason === undefined ? {} : { reason }) };
    groups.set(key, { ...group, count: group.count + to - from + 1, last: to });
  }
  return [...groups.values()];
}

interface Done {
  input: Input;
  result: Result;
  problems: readonly { rule: string; index: number; message: string }[];
  window: number;
}

function print({ input, result, problems, window }: Done, given: Given, terminal: Terminal): void {
  const { previousTokens, currentTokens, ledger, fits, changed } = result;
  terminal.line(firstLine(input));
  terminal.line(`  before  ${number(previousTokens)} tokens, ${percent(previousTokens, window)} of ${number(window)}`);
  terminal.line(`  after   ${number(currentTokens)} tokens, ${percent(currentTokens, window)}; ${plural(result.messages.length, "message")}${changed ? "" : ", unchanged"}`);
  const rows = groupsOf(ledger).map(({ count, fate, reason = "", first, last }) => [number(count), fate, first === last ? `#${first}` : `#${first}–#${last}`, shortened(reason, 90)]);
  terminal.table(rows, ["right"], "    ");
  if (result.error) terminal.line(terminal.paint("red", `  ${result.error.message}`));
  else if (result.reason !== undefined) terminal.line(`  ${result.reason}`);
  if (problems.length === 0) terminal.line(terminal.paint("green", "  valid   no rule of the provider is broken"));
  for (const { rule, index, message } of problems) terminal.line(terminal.paint("red", `  ${rule} #${index} ${message}`));
  if (!fits) terminal.line(terminal.paint("red", "  It does not fit the window."));
  if (input.kind === "claude-code" || input.kind === "codex") terminal.line("  Written as messages, one in a line: not as a transcript that the agent could go on from.");
  if (given.output !== undefined) terminal.line(`  written to ${given.output}`);
}
