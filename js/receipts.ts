/** Receipts of compactions, made of an archive alone and checked by it alone: the rows of a log are chained by hashes, and the
 *  row of a change has the hash of what the context became. */

import { invalidOption } from "./checks.js";
import { chunksOf, type Jsonl } from "./chunks.js";
import { CompactionError } from "./errors.js";
import type { CompactionReceipt, ReceiptChange } from "./types/receipts.js";
import type { Verified } from "./types.js";

/** Steps by their names in what is stored, which do not change. */
const STEPS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(["admit", "clear", "offload", "compress", "age", "merge", "media", "rollover"].map((step) => [step, step])),
  summarise: "summarize",
};
/** Changes of the context that end no compaction. */
const BESIDE = ["pin", "reasoning"];

/**
 * Returns a receipt for each compaction of a session, oldest first, made of its archive (`session.archive.jsonl()`). Keep a
 * receipt outside of the store: with an archive of any later time, `verifyReceipt` proves that the messages are still what was
 * replaced, and the summary what replaced them. Rejects with `invalid_message` if rows of the archive are missing or changed.
 */
export async function compactionReceipts(archive: Jsonl): Promise<CompactionReceipt[]> {
  const { problems, steps } = await read(archive);
  if (problems[0] !== undefined) throw new CompactionError("invalid_message", `the archive is not what was exported: ${problems[0]}`);
  const last = steps.filter(({ compaction }, nth) => steps[nth + 1]?.compaction !== compaction);
  return Promise.all(last.map(({ receipt }) => sealed(receipt)));
}

/**
 * Checks a receipt against an archive of its session: the rows of the log are those that were written, and the compaction
 * replaced what the receipt says by what it says. Each problem names the message, the summary or the row. Rejects with
 * `invalid_option` for what is no receipt or no archive.
 */
export async function verifyReceipt(receipt: CompactionReceipt, archive: Jsonl): Promise<Verified> {
  const { sha256: _, ...given } = Object(receipt) as CompactionReceipt;
  if (given.version !== 1 || typeof Object(given.log).seq !== "number" || !Array.isArray(given.changes)) {
    throw invalidOption("receipt", "must be a receipt of compactionReceipts, as an object");
  }
  const { problems, steps, texts } = await read(archive);
  const made = steps.find(({ receipt: { log } }) => log.seq === given.log.seq)?.receipt;
  if (!made) problems.push(`row ${given.log.seq} of the log: the archive has no compaction there`);
  else if (canonical(given) !== canonical(made)) problems.push(...differences(given, made));
  for (const { ref } of given.changes.flatMap((change) => change?.texts ?? [])) {
    if (!texts.has(ref)) problems.push(`text ${ref}: the archive does not have it`);
  }
  if ((await sealed(given)).sha256 !== receipt.sha256) problems.push("the receipt is not what was made: its hash differs");
  return { ok: problems.length === 0, problems };
}

type Unsealed = Omit<CompactionReceipt, "sha256">;

async function sealed(receipt: Unsealed): Promise<CompactionReceipt> {
  return { ...receipt, sha256: await hashOf(canonical(receipt)) };
}

/** JSON text, the fields of each object by name. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, of: unknown) =>
    typeof of === "object" && of !== null && !Array.isArray(of) ? Object.fromEntries(Object.entries(of).sort(([a], [b]) => (a < b ? -1 : 1))) : of,
  );
}

const encoder = new TextEncoder();

async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", encoder.encode(text));
  return hex(new Uint8Array(digest));
}

const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** What a receipt says otherwise than the archive. */
function differences(given: Unsealed, made: Unsealed): string[] {
  const found: string[] = [];
  made.changes.forEach(({ messages, summaries = [], by, texts = [] }, nth) => {
    const own = (given.changes[nth] ?? {}) as Partial<ReceiptChange>;
    const has = (list: readonly object[] | undefined, entry: object) => list?.some((of) => canonical(of) === canonical(entry));
    for (const message of messages) if (!has(own.messages, message)) found.push(`message ${message.index}: it is not what was replaced`);
    for (const summary of summaries) if (!has(own.summaries, summary)) found.push(`summary ${summary.id}: it is not what was replaced`);
    for (const text of texts) if (!has(own.texts, text)) found.push(`text ${text.ref}: it is not what was stored`);
    if (canonical(own.by) !== canonical(by)) found.push(`${"summary" in by ? `summary ${by.summary}` : `message ${by.index}`}: it is not what replaced them`);
  });
  if (given.log.hash !== made.log.hash) found.push(`row ${made.log.seq} of the log: it, or a row before it, is not what was written`);
  return found.length > 0 ? found : ["the receipt says otherwise of the compaction than the archive"];
}

/** A line of an archive; `crates/core/src/session/transcript/line.rs` has what they are. */
interface Line {
  kind: string;
  v: number;
  seq: number;
  index: number;
  nth?: number;
  count?: number;
  id: string;
  timestamp: number;
  role?: string;
  prev: string;
  chain: string;
  hash: string;
  ref?: string;
  sha256?: string;
  text?: string;
}

/** A view as it is stored; `crates/core/src/log/record/view.rs` has what it is. */
interface View {
  appended: unknown[];
  whole?: Stored[];
  splices?: { insert: Stored[] }[];
  cause: { rung: string; trigger: string; preset: string; tokensBefore: number; tokensAfter: number };
}

interface Stored {
  offloaded?: { index: number; body: unknown; offloads: (Offload | ShortOffload)[] };
  summary?: { checkpoint: string; body: unknown; covers: Range[] };
}

/** As releases up to schema 101 wrote it. */
interface Offload {
  nth: number;
  reference: string;
  sha256: string;
  how?: string;
}

/** `id` is the reference without `off_`, and `hash` is in base64url. */
type ShortOffload = [nth: number, id: string, hash: string, chars: number, how: string, basis: unknown];

interface Range {
  from: number;
  to: number;
}

/** A step of a compaction: the receipt up to it. */
interface Step {
  compaction: number;
  receipt: Unsealed;
}

async function read(archive: Jsonl): Promise<Archive> {
  const read = new Archive();
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of chunksOf(archive)) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) await read.line(line);
  }
  await read.line(rest + decoder.decode());
  return read;
}

class Archive {
  readonly problems: string[] = [];
  readonly steps: Step[] = [];
  /** References of the stored texts that it has. */
  readonly texts = new Set<string>();
  /** Where they are from, as the views have it. */
  readonly #places = new Map<string, { index: number; nth: number; sha256: string }>();
  #number = 0;
  #session: string | undefined;
  /** The row that must come next, and the hash of the one before. */
  #seq = 0;
  #head = "";
  /** Hashes of the messages by index. */
  readonly #messages: string[] = [];
  /** The summaries of the context, and the shortened messages, by what they are. */
  #context = new Map<string, { covers: Range[]; sha256: string }>();
  #compactions = 0;
  /** The compaction that a next step belongs to. */
  #open: Unsealed | undefined;

  async line(text: string): Promise<void> {
    this.#number++;
    if (text.trim() === "") return;
    const line = parsed(text) as Line | undefined;
    if (this.#session === undefined) {
      if (line?.kind !== "session") throw invalidOption("archive", "must be the lines of session.archive.jsonl()");
      this.#session = line.id;
      return;
    }
    if (!line) this.problems.push(`line ${this.#number}, after message ${this.#messages.length - 1}: it is not JSON`);
    else if (line.kind === "message" || line.kind === "view" || line.kind === "snapshot") await this.#row(line, text);
    else if (line.kind === "gap") this.#gap(line);
    else if (line.kind === "offload") await this.#text(line);
  }

  async #text({ ref = "", index, nth, sha256, text }: Line): Promise<void> {
    this.texts.add(ref);
    const known = this.#places.get(ref);
    const isIt = typeof text === "string" && (await hashOf(text)) === sha256;
    if (isIt && (!known || (known.sha256 === sha256 && known.index === index && known.nth === nth))) return;
    this.problems.push(`text ${ref} of message ${known?.index ?? index}: it is not what was stored`);
  }

  #gap({ seq, index, count = 1, ref }: Line): void {
    if (seq === undefined) this.problems.push(`text ${ref}: the store had lost it`);
    else this.problems.push(`row ${seq} of the log, before message ${index}: the store had lost ${count} rows`);
    this.#seq = Math.max(this.#seq, (seq ?? 0) + count);
  }

  async #row(line: Line, text: string): Promise<void> {
    const { body, view } = partsOf(line, text);
    const { v, id, kind, timestamp, prev, chain, hash } = line;
    const row = `{"v":${v},"seq":${line.seq},"n":${line.index},"id":${JSON.stringify(id)},"kind":"${kind}","at":${timestamp},"prev":"${prev}","chain":"${chain}","body":${body}}`;
    const isIt = body !== undefined && (await hashOf(row)) === hash;
    // What was changed does not say which it is.
    const [seq, index] = isIt ? [line.seq, line.index] : [this.#seq, this.#messages.length];
    const name = kind === "message" ? `message ${index} (row ${seq} of the log)` : `row ${seq} of the log`;
    if (!isIt) this.problems.push(`${name}: it is not what was written`);
    else if (seq !== this.#seq) this.problems.push(`${name}: the rows before it, from ${this.#seq} on, are missing`);
    else if (prev !== this.#head) this.problems.push(`${name}: the row before it is not what was written`);
    this.#seq = seq + 1;
    this.#head = hash;
    if (kind === "message") this.#messages[index] = await hashOf(body ?? "");
    if (kind !== "view" || !isIt) return;
    // The first releases did not note it.
    const { sha256 } = Object(parsed(body)) as { sha256?: string };
    const made = parsed(view);
    if (view === undefined || !made || (sha256 !== undefined && (await hashOf(view)) !== sha256)) {
      this.problems.push(`${name}: the context that it made is not what is in the archive`);
    } else {
      await this.#view(line, made as View);
    }
  }

  async #view(line: Line, view: View): Promise<void> {
    const { rung, trigger, preset, tokensBefore, tokensAfter } = view.cause;
    const step = STEPS[rung];
    const isJoined = this.#open !== undefined && view.appended.length === 0;
    if (!isJoined || (step === undefined && !BESIDE.includes(rung))) this.#open = undefined;
    const before = this.#context;
    const changes = await this.#changes(view);
    if (step === undefined) return;
    if (!this.#open) this.#compactions++;
    const earlier = this.#open;
    this.#open = {
      version: 1,
      session: this.#session ?? "",
      at: line.timestamp,
      preset,
      trigger: earlier?.trigger ?? trigger,
      steps: [...(earlier?.steps ?? []), step],
      previousTokens: earlier?.previousTokens ?? tokensBefore,
      currentTokens: tokensAfter,
      log: { seq: line.seq, hash: line.hash },
      changes: [...(earlier?.changes ?? []), ...changes.filter(({ key }) => !before.has(key)).map(({ change }) => change)],
    };
    this.steps.push({ compaction: this.#compactions, receipt: this.#open });
  }

  /** What of a view is no message of the app, and what it replaced. The context is what it is after that. */
  async #changes(view: View): Promise<{ key: string; change: ReceiptChange }[]> {
    const before = this.#context;
    const items = view.whole ?? (view.splices ?? []).flatMap(({ insert }) => insert);
    this.#context = new Map(view.whole ? [] : before);
    const found: { key: string; change: ReceiptChange }[] = [];
    for (const { offloaded, summary } of items) {
      const sha256 = await hashOf(canonical((offloaded ?? summary)?.body ?? null));
      if (offloaded) {
        const { index } = offloaded;
        // Images and documents are in their messages alone.
        const offloads = offloaded.offloads.map(offloadOf).filter(({ how }) => how !== "media");
        const key = `${index} ${sha256}`;
        for (const { reference, sha256, nth } of offloads) this.#places.set(reference, { index, nth, sha256 });
        const texts = offloads.map(({ reference: ref, sha256 }) => ({ ref, sha256 }));
        this.#context.set(key, { covers: [], sha256 });
        found.push({ key, change: { messages: this.#of([{ from: index, to: index + 1 }], []), by: { index, sha256 }, ...(texts.length > 0 && { texts }) } });
      } else if (summary) {
        const { checkpoint: id, covers } = summary;
        const within = [...before].filter(([other, { covers: of }]) => other !== id && of.length > 0 && of.every((range) => isIn(range, covers)));
        const summaries = within.map(([id, { sha256 }]) => ({ id, sha256 }));
        const gone = within.flatMap(([, { covers }]) => covers);
        this.#context.set(id, { covers, sha256 });
        found.push({ key: id, change: { messages: this.#of(covers, gone), ...(summaries.length > 0 && { summaries }), by: { summary: id, sha256 } } });
      }
    }
    return found;
  }

  /** The messages of these ranges, but those of the others. */
  #of(ranges: readonly Range[], others: readonly Range[]): ReceiptChange["messages"] {
    const found: ReceiptChange["messages"] = [];
    for (const { from, to } of ranges) {
      for (let index = from; index < to; index++) {
        const sha256 = this.#messages[index];
        if (sha256 !== undefined && !isIn({ from: index, to: index + 1 }, others)) found.push({ index, sha256 });
      }
    }
    return found;
  }
}

function isIn({ from, to }: Range, ranges: readonly Range[]): boolean {
  return ranges.some((range) => range.from <= from && to <= range.to);
}

function parsed(text: string | undefined): unknown {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The body of a row and its view, as they stand in the line: their hashes are of these characters. */
function partsOf(line: Line, text: string): { body?: string; view?: string } {
  const { v, kind, seq, index, id, timestamp, role, prev, chain, hash } = line;
  const fields = (of: object) => JSON.stringify(of).slice(1, -1);
  const begin = `{${fields({ v, kind, seq, index, id, timestamp, role })},"body":`;
  const end = `,${fields({ prev, chain, hash })}`;
  const at = text.indexOf(end);
  if (!text.startsWith(begin) || at < begin.length) return {};
  const rest = text.slice(at + end.length);
  const view = /^,"view":([^]*)\}$/.exec(rest)?.[1];
  return { body: text.slice(begin.length, at), ...(view !== undefined && { view }) };
}

function offloadOf(stored: Offload | ShortOffload): Offload {
  if (!Array.isArray(stored)) return stored;
  const [nth, id, hash, , how] = stored;
  return { nth, reference: `off_${id}`, sha256: hexOf(hash), how };
}

/** A hash in hex; anything else stays as it is. */
function hexOf(hash: string): string {
  if (!/^[\w-]{43}$/.test(hash)) return hash;
  const bytes = atob(hash.replaceAll("-", "+").replaceAll("_", "/"));
  return hex(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
}
