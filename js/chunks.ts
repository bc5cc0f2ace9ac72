/** JSON lines as apps have them: a text, bytes, or a stream. */

import { invalidOption } from "./checks.js";
import { CompactionError } from "./errors.js";

/** JSON lines: a text, bytes, or a stream of bytes. */
export type Jsonl = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string> | Uint8Array | string;

/** Characters that are encoded at a time. */
const SLICE = 1 << 18;

/** The bytes of JSON lines, in pieces. Throws `invalid_option`. */
export async function* chunksOf(jsonl: unknown): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  if (jsonl instanceof Uint8Array) {
    yield jsonl;
    return;
  }
  // Streams of Node; those of the web have a reader, and not everywhere this.
  if (typeof (jsonl as { getReader?: unknown } | null)?.getReader !== "function" && isIterable(jsonl)) {
    for await (const chunk of jsonl) {
      if (!(chunk instanceof Uint8Array) && typeof chunk !== "string") throw invalidOption("jsonl", WRONG);
      yield typeof chunk === "string" ? encoder.encode(chunk) : chunk;
    }
    return;
  }
  if (typeof jsonl === "string") {
    checkJsonl(jsonl);
    for (let at = 0; at < jsonl.length; ) {
      // Not through a surrogate pair.
      const last = jsonl.charCodeAt(at + SLICE - 1);
      const end = at + SLICE - (last >= 0xd800 && last < 0xdc00 ? 1 : 0);
      yield encoder.encode(jsonl.slice(at, end));
      at = end;
    }
    return;
  }
  const reader = readerOf(jsonl);
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      isDone = done;
      if (done) return;
      if (!(value instanceof Uint8Array)) throw invalidOption("jsonl", WRONG);
      yield value;
    }
  } finally {
    if (!isDone) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}

const WRONG = "must be a text, bytes (Uint8Array) or a stream of bytes";

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof (value as { [Symbol.asyncIterator]?: unknown } | null)?.[Symbol.asyncIterator] === "function";
}

/** A path is no transcript: nothing is read from it. */
function checkJsonl(text: string): void {
  const line = text.trim();
  if (line === "" || /[\n{[]/.test(line)) return;
  const what = /[/\\]|\.\w{1,8}$/.test(line) ? "is a path: pass what the file holds, as in await readFile(path)" : "is no JSON lines";
  throw invalidOption("jsonl", `${what}; it ${WRONG}`);
}

function readerOf(jsonl: unknown): ReadableStreamDefaultReader<unknown> {
  try {
    return (jsonl as ReadableStream<unknown>).getReader();
  } catch (error) {
    throw CompactionError.isInstance(error) ? error : invalidOption("jsonl", WRONG, error);
  }
}
