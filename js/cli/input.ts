/** A file or stdin, and what kind of history is in it. */

import { Buffer } from "node:buffer";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import process from "node:process";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { CompactionError, importSession, type Format, type Message } from "../entry/main.js";
import { detectFormat } from "../entry/history.js";
import { changesOf, type Change } from "./changes.js";
import { notUnderstood } from "./exit.js";

export type Kind = "context-compactor" | "claude-code" | "codex" | "messages" | "request";

/** A history that was read. */
export interface Input {
  /** The path, or `-`. */
  name: string;
  kind: Kind;
  /** How it is written: JSON lines, an array, or an object that has the messages in a field. */
  shape: "lines" | "array" | "body";
  format: Format;
  messages: Message[];
  /** What was read, once more. */
  source: Pick<Source, "bytes">;
  /** The text of an array or a body. */
  text: string;
  /** Tokens of the system prompt and tools are counted from these. */
  system?: string;
  tools?: unknown;
  model?: string;
  /** Compactions that are recorded in it, oldest first. */
  changes: Change[];
  /** Lines that are no part of the conversation, by kind. */
  skipped: Record<string, number>;
  /** The largest prompt that the provider counted, where the transcript says. */
  counted?: number;
  /** The field of a body that has the messages. */
  field?: string;
}

/** Commands that take a folder for all files in it. */
const OF_FOLDERS = ["inspect", "validate", "count", "replay"];

export async function isFolder({ command, file }: { command: string; file: string }): Promise<boolean> {
  return OF_FOLDERS.includes(command) && file !== "-" && (await stat(file).catch(() => undefined))?.isDirectory() === true;
}

/** What is read: a file, again and again, or stdin, which is kept. */
class Source {
  readonly name: string;
  readonly #kept: Buffer[] | undefined;

  private constructor(name: string, kept?: Buffer[]) {
    [this.name, this.#kept] = [name, kept];
  }

  static async open(name: string): Promise<Source> {
    if (name !== "-") return new Source(name);
    const kept: Buffer[] = [];
    for await (const chunk of process.stdin) kept.push(Buffer.from(chunk as Uint8Array));
    return new Source(name, kept);
  }

  /** All of it, without a mark of byte order. */
  async *bytes(): AsyncGenerator<Buffer> {
    let isFirst = true;
    try {
      for await (const chunk of this.#kept ?? (createReadStream(this.name, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>)) {
        yield isFirst && chunk.subarray(0, 3).equals(MARK) ? chunk.subarray(3) : chunk;
        isFirst = false;
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const why = code === "ENOENT" ? "there is no such file" : code === "EISDIR" ? "this is a folder: name a file in it" : (error as Error).message;
      throw notUnderstood(this.name, why, error);
    }
  }

  async text(): Promise<string> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.bytes()) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  }

  /** The first line that is not blank; undefined if it is very long. */
  async firstLine(): Promise<string | undefined> {
    let text = "";
    for await (const chunk of this.bytes()) {
      text = (text + chunk.toString("latin1")).trimStart();
      const end = text.indexOf("\n");
      if (end >= 0) return Buffer.from(text.slice(0, end), "latin1").toString();
      if (text.length > LONGEST) return undefined;
    }
    return Buffer.from(text, "latin1").toString();
  }

  /** Every line, a bounded part of it in memory at a time. */
  lines(): AsyncIterable<string> {
    return createInterface({ input: Readable.from(this.bytes()), crlfDelay: Infinity });
  }
}

const MARK = Buffer.from([0xef, 0xbb, 0xbf]);
/** Lines that are longer are read as a whole text. */
const LONGEST = 1 << 24;

/** Reads a history and detects what it is. */
export async function readInput(name: string, format?: Format): Promise<Input> {
  const source = await Source.open(name);
  const first = await source.firstLine();
  if (first?.trim() === "") throw notUnderstood(name, "it is empty");
  // A transcript is read line by line: it may be longer than memory takes as one text.
  const isLines = first !== undefined && isLine(tried(first));
  const text = isLines ? "" : await source.text();
  const whole = isLines ? undefined : wholeOf(name, text);
  try {
    if (whole === undefined) return await ofLines(source, format);
    return Array.isArray(whole) ? await ofArray(source, text, whole as Message[], format) : await ofBody(source, text, whole as Fields, format);
  } catch (error) {
    if (!CompactionError.isInstance(error) || error.code === "aborted") throw error;
    throw notUnderstood(name, placed(error, whole === undefined), error);
  }
}

/** A line of a transcript or a message, and no request. */
const isLine = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value) && !FIELDS.some((field) => field in value);

type Fields = Record<string, unknown>;

/** Which field of a request has its messages. */
const FIELDS = ["messages", "input", "contents"];

/** The value, when the text is one; undefined for JSON lines. */
function wholeOf(name: string, text: string): unknown {
  const start = text.trimStart();
  const first = start.split("\n", 1)[0] ?? "";
  if (start.startsWith("{")) {
    const line = tried(first) as Fields | undefined;
    if (line && isLine(line)) return undefined;
    // A log of requests: each has the history so far, so the last one has most.
    const rest = start.slice(first.length).trim();
    if (line && rest !== "") return parse(name, text, rest.split("\n").at(-1) ?? "", text.split("\n").length);
    if (!line && /\n\s*\{/.test(start) && /^\{\s*"/.test(first) && first.length > 2 && !/[,{[]\s*$/.test(first)) return undefined;
  } else if (!start.startsWith("[")) {
    if (start.startsWith("\u001f")) throw notUnderstood(name, "it is compressed: gunzip it first");
    throw notUnderstood(name, "line 1: this is no JSON; give a transcript (JSON lines), an array of messages or a request body");
  }
  return parse(name, text, text, 1);
}

function tried(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function parse(name: string, whole: string, text: string, line: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = (error as Error).message;
    const at = /position (\d+)/.exec(why)?.[1];
    const before = at === undefined ? text.trimEnd() : text.slice(0, Number(at));
    const isEnd = at === undefined || Number(at) >= text.trimEnd().length;
    const what = isEnd ? "it ends inside a value: the file was cut off" : why.replace(/ in JSON at position.*| at position.*/, "");
    const offset = before.split("\n").length - 1;
    throw notUnderstood(name, `line ${whole === text ? offset + 1 : line + offset}: ${what}`, error);
  }
}

/** What is wrong, with its line or message first. */
function placed(error: CompactionError, isLines: boolean): string {
  const { field, index } = error as CompactionError & { field?: string; index?: number };
  // The rest is for who calls the library.
  const message = error.message.replace(/: append its messages instead$/, "").replace(/: remove it and import what is left.*$/, ": remove that line");
  if (!isLines || /line \d+/.test(message)) return message;
  if (field !== undefined && /^line \d+/.test(field)) return `${field}: ${message}`;
  return index === undefined ? `line 1: ${message}` : message;
}

async function ofArray(source: Source, text: string, messages: Message[], given?: Format): Promise<Input> {
  const { name } = source;
  if (messages.length === 0) throw notUnderstood(name, "line 1: an empty array has no messages");
  const format = given ?? (await detectFormat(messages));
  return { name, kind: "messages", shape: "array", format, messages, source, text, changes: [], skipped: {} };
}

async function ofBody(source: Source, text: string, body: Fields, given?: Format): Promise<Input> {
  const { name } = source;
  const field = FIELDS.find((one) => Array.isArray(body[one]) || (one === "input" && typeof body[one] === "string"));
  if (field === undefined) throw notUnderstood(name, `line 1: no field ${FIELDS.join(", ")} with an array of messages`);
  const value = body[field];
  const messages = (typeof value === "string" ? [{ role: "user", content: value }] : value) as Message[];
  if (messages.length === 0) throw notUnderstood(name, `line 1: ${field} has no messages`);
  // Messages of plain roles and texts are the same in several formats: the body says more.
  const isAnthropic = field === "messages" && ("anthropic_version" in body || body["system"] !== undefined || (body["tools"] as Fields[] | undefined)?.[0]?.["input_schema"] !== undefined);
  const byField = field === "contents" ? "gemini" : field === "input" ? "openai-responses" : undefined;
  const input: Input = {
    ...{ name, kind: "request", shape: "body", messages, source, text, changes: [], skipped: {}, field },
    format: given ?? byField ?? (await formatOf(messages, isAnthropic)),
  };
  const system = body["system"] ?? body["instructions"] ?? body["systemInstruction"] ?? body["system_instruction"];
  if (system !== undefined) input.system = typeof system === "string" ? system : JSON.stringify(system);
  if (body["tools"] !== undefined) input.tools = body["tools"];
  if (typeof body["model"] === "string") input.model = body["model"];
  return input;
}

async function formatOf(messages: Message[], isAnthropic: boolean): Promise<Format> {
  const format = await detectFormat(messages);
  return isAnthropic && format === "openai-chat" ? "anthropic" : format;
}

async function ofLines(source: Source, format?: Format): Promise<Input> {
  let report: { kind: Exclude<Kind, "request">; skipped: Record<string, number> } | undefined;
  const session = await importSession(source.bytes(), {
    store: "memory",
    logger: () => {},
    ...(format ? { format } : {}),
    onImport: (found) => (report = found),
  });
  try {
    const messages: Message[] = [];
    for await (const message of session.archive.history({ onGap: () => {} })) messages.push(message);
    const { kind = "messages", skipped = {} } = report ?? {};
    const changes = kind === "context-compactor" || session.archive.metadata().compressionCount > 0 ? await changesOf(session, kind, messages) : [];
    const input: Input = { name: source.name, kind, shape: "lines", format: session.context.format, messages, source, text: "", changes, skipped };
    return { ...input, ...(await noted(kind, source)) };
  } finally {
    await session.close({ delete: true });
  }
}

/** The model, and the largest prompt by the provider's count, where the agent wrote them down. */
async function noted(kind: Kind, source: Source): Promise<{ model?: string; counted?: number }> {
  if (kind !== "claude-code" && kind !== "codex") return {};
  const found: { model?: string; counted?: number } = {};
  for await (const line of source.lines()) {
    if (!/"usage"|"preTokens"|"model"|token_count/.test(line)) continue;
    const { type, message, payload, compactMetadata, isSidechain } = Object(tried(line)) as Record<string, Fields | undefined>;
    if (isSidechain) continue;
    const usage = Object(message?.["usage"] ?? (Object(payload?.["info"]) as Fields)["last_token_usage"]) as Record<string, number | undefined>;
    const { input_tokens = 0, cache_read_input_tokens = 0, cache_creation_input_tokens = 0 } = usage;
    const sum = Math.max(input_tokens + cache_read_input_tokens + cache_creation_input_tokens, Number(compactMetadata?.["preTokens"] ?? 0));
    // Less than a system prompt is no prompt: part of a streamed answer.
    if (sum > (found.counted ?? 1_000)) found.counted = sum;
    const model = message?.["model"] ?? ((type as unknown) === "turn_context" ? payload?.["model"] : undefined);
    if (typeof model === "string" && !model.startsWith("<")) found.model = model;
  }
  return found;
}
