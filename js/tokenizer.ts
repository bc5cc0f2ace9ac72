/**
 * Exact tokens: a WebAssembly module, loaded when a tokenizer is first asked for, and a vocabulary, which is in a package of
 * its own. The functions `loadTokenizer` of `entry/` differ in how the module comes in.
 */

import { checkOptions } from "./checks.js";
import { checkHistory } from "./codec.js";
import { isTrap } from "./trap.js";
import { CompactionError } from "./errors.js";
import { givenFormat, readHistory, tokensOfMessage } from "./tokens/history.js";
import type { CustomFormat, Format, Message } from "./types.js";
import type { WasmModule } from "./types/platform.js";

/** An encoding of OpenAI's models: `o200k_base` since GPT-4o, `cl100k_base` before. */
export type Encoding = "o200k_base" | "cl100k_base";

/** A vocabulary, as a module of the package `context-compactor-vocabularies` exports it. */
export interface Vocabulary {
  readonly name: Encoding;
  readonly text: string;
}

/**
 * Counts and encodes tokens exactly as tiktoken does. Names of special tokens (`<|endoftext|>`) are ordinary text, so
 * untrusted text is safe. A lone surrogate counts as, and becomes, U+FFFD. Characters are those of Unicode 16, as in
 * tiktoken 1.0.22; later ones count as unassigned.
 */
export interface Tokenizer {
  /** The encoding. */
  readonly name: Encoding;
  /** Counts the tokens of a text. */
  count(text: string): number;
  /**
   * Counts the tokens of a history: its texts exactly; the framing of messages, calls and results, and media by the rules of
   * `estimateTokens`, because only the provider knows these. `format`: default detected.
   */
  countMessages(messages: readonly Message[], options?: { format?: Format | CustomFormat }): number;
  /** Encodes a text: the ids of its tokens. */
  encode(text: string): Uint32Array;
  /** Decodes ids to text. A character that is incomplete, because tokens can end within one, becomes U+FFFD. */
  decode(ids: Iterable<number>): string;
  /** Starts counting a text that arrives in parts, such as a streamed answer. The count is exact after each part. */
  counter(): TokenCounter;
}

/** A running count of a growing text. */
export interface TokenCounter {
  /** Adds a part of the text. */
  append(text: string): void;
  /** Tokens of all parts so far, joined. */
  readonly count: number;
}

/** What the module exports; see `crates/tokenizer/src/wasm.rs`. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  buffer(capacity: number): number;
  load(rules: number, length: number): number;
  count(length: number): number;
  count_tail(length: number): number;
  encode(length: number): number;
  settled(): number;
  settled_bytes(): number;
  ids(): number;
  decode(count: number): number;
  text(): number;
}

type Bytes = Uint8Array<ArrayBuffer>;

/** Longer texts are handed over in pieces of so many UTF-16 units: memory is never given back. */
const PIECE = 1 << 16;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

const PACKAGE = "context-compactor-vocabularies";
/** What the module has rules for, by their numbers in it. */
const ENCODINGS: readonly string[] = ["cl100k_base", "o200k_base"] satisfies Encoding[];

const loaded = new Map<Encoding, Promise<Tokenizer>>();

/** The tokenizer of a vocabulary, whose module `bring` gives. There is one of each; a later call tries again what failed. */
export async function load(vocabulary: Encoding | Vocabulary | Promise<Vocabulary>, bring: () => Promise<WasmModule>): Promise<Tokenizer> {
  const { name, text } = await given(vocabulary);
  let tokenizer = loaded.get(name);
  if (!tokenizer) {
    tokenizer = open(name, text, bring).catch((cause: unknown) => {
      loaded.delete(name);
      if (CompactionError.isInstance(cause)) throw cause;
      const message = `The tokenizer ${name} could not be loaded; estimateTokens does without it`;
      throw new CompactionError("not_found", message, { cause });
    });
    loaded.set(name, tokenizer);
  }
  return tokenizer;
}

/** What of Node finds a package; Deno and Bun have it, too. */
interface NodeProcess {
  getBuiltinModule?(name: "module"): { createRequire(from: string): (path: string) => unknown };
  cwd(): string;
}

/** The vocabulary of that name, where programs run as they are: an `import` of what is not installed would stop every bundler. */
function named(name: string): unknown {
  const { process } = globalThis as { process?: NodeProcess };
  const node = process?.getBuiltinModule?.("module");
  if (!process || !node) throw new Error("A name is found in Node, Deno and Bun alone");
  const find = (from: string) => node.createRequire(from)(`${PACKAGE}/${name}`);
  try {
    return find(`${process.cwd()}/`);
  } catch (cause) {
    // The scripts for CommonJS have no address.
    if (!import.meta.url) throw cause;
    return find(import.meta.url);
  }
}

/** What the app passed, promised or named. */
async function given(vocabulary: unknown): Promise<Vocabulary> {
  const isName = typeof vocabulary === "string" && ENCODINGS.includes(vocabulary);
  let found: unknown;
  try {
    found = isName ? named(vocabulary) : await vocabulary;
  } catch (cause) {
    const bundled = isName ? `, and in a bundle pass it: loadTokenizer(import("${PACKAGE}/${vocabulary}"))` : "";
    throw new CompactionError("not_found", `The vocabulary could not be loaded: npm install ${PACKAGE}${bundled}. \`cause\` says why`, { cause });
  }
  const { name, text } = (found ?? {}) as Partial<Vocabulary>;
  if (name && ENCODINGS.includes(name) && typeof text === "string") return { name, text };
  const wanted = encodingOf(found);
  const message = wanted
    ? `vocabulary: npm install ${PACKAGE}, and pass the vocabulary: loadTokenizer(import("${PACKAGE}/${wanted}"))`
    : "vocabulary: those of OpenAI's models alone are public; models of other makers are estimated: estimateTokens(input, { model })";
  throw new CompactionError("invalid_option", message, { field: "vocabulary" });
}

/** The encoding that somebody means who names it, or a model of OpenAI. */
function encodingOf(name: unknown): Encoding | undefined {
  if (typeof name !== "string") return "o200k_base";
  if (ENCODINGS.includes(name)) return name as Encoding;
  if (/^(gpt-3\.5|gpt-35|gpt-4(-|$)|text-embedding)/i.test(name)) return "cl100k_base";
  return /^(gpt-|chatgpt|o\d)/i.test(name) ? "o200k_base" : undefined;
}

async function open(name: Encoding, text: string, bring: () => Promise<WasmModule>): Promise<Tokenizer> {
  const module = await bring();
  const { exports } = await WebAssembly.instantiate(module);
  const instance = new Instance(name, exports as unknown as Exports);
  instance.load(text);
  return {
    name,
    count: (text) => instance.count(text),
    countMessages: (messages, options) => instance.countMessages(messages, options),
    encode: (text) => instance.encode(text),
    decode: (ids) => instance.decode(ids),
    counter: () => new Counter(instance),
  };
}

/** What is known of a text that may go on: see `Tail` of the crate. */
interface Tail {
  tokens: number;
  settled: number;
  /** What is to be counted again with what is appended. */
  rest: Bytes;
}

/** A running module. */
class Instance {
  readonly #name: Encoding;
  readonly #exports: Exports;
  /** The buffer that texts are written into; empty when the memory has moved. */
  #view: Bytes;
  #trap: { cause: unknown } | undefined;

  constructor(name: Encoding, exports: Exports) {
    this.#name = name;
    this.#exports = exports;
    this.#view = new Uint8Array(0);
  }

  /** Reads a vocabulary, a character of which is a byte. */
  load(table: string): void {
    encoder.encodeInto(table, this.#room(table.length));
    const tokens = this.#exports.load(ENCODINGS.indexOf(this.#name), table.length);
    this.#view = new Uint8Array(0);
    if (tokens === 0) throw new Error(`the vocabulary of ${this.#name} is damaged`);
  }

  count(text: string): number {
    checkText(text);
    if (text.length === 0) return 0;
    if (text.length > PIECE) return this.#countLong(text);
    // A UTF-16 unit takes three bytes at most.
    const view = this.#room(text.length * 3);
    return this.#call((exports) => exports.count(encoder.encodeInto(text, view).written));
  }

  #countLong(text: string): number {
    const counter = new Counter(this);
    for (let at = 0, size; at < text.length; at += size) {
      // As much as has to be counted again, so that a text without any boundary is not counted over and over.
      size = Math.max(PIECE, counter.unsettled);
      counter.append(text.slice(at, at + size));
      counter.flush();
    }
    return counter.count;
  }

  countMessages(messages: readonly Message[], options: { format?: Format | CustomFormat } = {}): number {
    checkHistory(messages);
    checkOptions(options, ["format"]);
    const read = readHistory(messages, givenFormat(options.format));
    return read.reduce((sum, message) => sum + tokensOfMessage(message, "o200k", (text) => this.count(text)), 0);
  }

  /** Counts `rest` followed by `text`. */
  tail(rest: Bytes, text: string): Tail {
    const length = this.#append(rest, text);
    const tokens = this.#call((exports) => exports.count_tail(length));
    return { tokens, settled: this.#exports.settled(), rest: this.#rest(length) };
  }

  encode(text: string): Uint32Array {
    checkText(text);
    const parts: Uint32Array[] = [];
    let [rest, total, at]: [Bytes, number, number] = [new Uint8Array(0), 0, 0];
    while (at < text.length) {
      const limit = at + Math.max(PIECE, rest.length);
      const end = limit < text.length ? whole(text, limit) : text.length;
      const length = this.#append(rest, text.slice(at, end));
      const tokens = this.#call((exports) => exports.encode(length));
      const { memory, ids, settled } = this.#exports;
      const part = new Uint32Array(memory.buffer, ids(), end < text.length ? settled() : tokens).slice();
      rest = this.#rest(length);
      parts.push(part);
      total += part.length;
      at = end;
    }
    const [first] = parts;
    if (parts.length === 1 && first) return first;
    const ids = new Uint32Array(total);
    let filled = 0;
    for (const part of parts) {
      ids.set(part, filled);
      filled += part.length;
    }
    return ids;
  }

  decode(ids: Iterable<number>): string {
    const numbers = Array.from(ids);
    const wrong = (nth: number) =>
      new CompactionError("invalid_option", `ids[${nth}]: ${numbers[nth]} is no token of ${this.#name}`, {
        field: `ids[${nth}]`,
      });
    const bad = numbers.findIndex((id) => !Number.isInteger(id) || id < 0 || id > 0xffffffff);
    if (bad >= 0) throw wrong(bad);
    const bytes = new Uint8Array(Uint32Array.from(numbers).buffer);
    this.#room(bytes.length).set(bytes);
    const length = this.#call((exports) => exports.decode(numbers.length));
    if (length < 0) throw wrong(-1 - length);
    return decoder.decode(new Uint8Array(this.#exports.memory.buffer, this.#exports.text(), length));
  }

  /** Writes `rest` followed by `text`; their length. */
  #append(rest: Bytes, text: string): number {
    const view = this.#room(rest.length + text.length * 3);
    view.set(rest);
    return rest.length + encoder.encodeInto(text, view.subarray(rest.length)).written;
  }

  /** A view of the buffer with room for `size` bytes. */
  #room(size: number): Bytes {
    if (this.#view.length < size || this.#view.length === 0) {
      const capacity = Math.max(size, 3 * PIECE);
      const address = this.#call((exports) => exports.buffer(capacity));
      this.#view = new Uint8Array(this.#exports.memory.buffer as ArrayBuffer, address, capacity);
    }
    return this.#view;
  }

  /** What of the first `length` bytes is not settled. */
  #rest(length: number): Bytes {
    return this.#room(length).slice(this.#exports.settled_bytes(), length);
  }

  /** A trap ends the tokenizer: it leaves its memory half changed. */
  #call<T>(run: (exports: Exports) => T): T {
    if (this.#trap) throw this.#poisoned(this.#trap);
    try {
      return run(this.#exports);
    } catch (error) {
      if (!isTrap(error)) throw error;
      this.#trap = { cause: error };
      loaded.delete(this.#name);
      throw this.#poisoned(this.#trap);
    }
  }

  #poisoned(details: { cause: unknown }): CompactionError {
    const message = "The tokenizer failed and cannot be trusted any more: load it again. `cause` has the failure.";
    return new CompactionError("poisoned", message, details);
  }
}

class Counter implements TokenCounter {
  readonly #instance: Instance;
  /** Tokens that stay. */
  #settled = 0;
  /** Tokens of `rest`, which may become others. */
  #open = 0;
  #rest: Bytes = new Uint8Array(0);
  /** What was appended and not counted yet. */
  #pending = "";

  constructor(instance: Instance) {
    this.#instance = instance;
  }

  append(text: string): void {
    checkText(text);
    this.#pending += text;
    if (this.#pending.length > PIECE) this.flush();
  }

  get count(): number {
    this.flush();
    if (this.#pending === "") return this.#settled + this.#open;
    // Half of a pair: alone it is U+FFFD, and what comes next may complete it.
    return this.#settled + this.#instance.tail(this.#rest, this.#pending).tokens;
  }

  /** Bytes that are counted again with what is appended. */
  get unsettled(): number {
    return this.#rest.length;
  }

  /** Counts what was appended, but for half of a pair at its end. */
  flush(): void {
    const end = whole(this.#pending, this.#pending.length);
    if (end === 0) return;
    const { tokens, settled, rest } = this.#instance.tail(this.#rest, this.#pending.slice(0, end));
    this.#settled += settled;
    this.#open = tokens - settled;
    this.#rest = rest;
    this.#pending = this.#pending.slice(end);
  }
}

function checkText(text: unknown): asserts text is string {
  if (typeof text !== "string") throw new CompactionError("invalid_option", "text: must be a string", { field: "text" });
}

/** `end`, or one less where the first half of a pair would be the last before it. */
function whole(text: string, end: number): number {
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}
