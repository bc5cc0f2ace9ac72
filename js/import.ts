/** Sessions from transcripts: bytes in; the engine says what they are. */

import { checkFunction, invalidOption } from "./checks.js";
import { checkAborted, drive, run, type Host } from "./driver.js";
import { call, isPoisoned } from "./engine.js";
import { CompactionError } from "./errors.js";
import { quietly } from "./quietly.js";
import { startSession, type Opened } from "./session.js";
import type { ImportOptions, ImportReport, Message, Session } from "./types.js";
import type { Importer } from "./wasm/core.js";

/**
 * Creates a session from the JSON lines of `archive.jsonl()`, with messages, context and stored texts as they were; or
 * from a transcript of Claude Code or Codex, or from messages, one in a line. All or nothing: rejects with
 * `invalid_message`, whose message names the line, and with `conflict` if the store has a session of that id.
 */
export async function importSession<M extends Message = Message>(
  jsonl: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string> | Uint8Array | string,
  options: ImportOptions = {},
): Promise<Session<M>> {
  const { from = "context", onImport, ...rest } = Object(options) as ImportOptions;
  checkFunction("onImport", onImport);
  if (from !== "context" && from !== "transcript") throw invalidOption("from", 'must be "context" or "transcript"');
  const chunks = chunksOf(jsonl);
  let report: ImportReport | undefined;
  try {
    const session = await startSession<M>("importSession", rest, async (given, id, host, maxBatchOps) => {
      const importer = await drive<Importer>(
        run((engine) => engine.Importer.open(given, id, from, maxBatchOps)),
        host,
      );
      try {
        const opened = await restored(importer, chunks, host);
        report = opened.report;
        return opened;
      } finally {
        if (!isPoisoned()) call(() => importer.free());
      }
    });
    quietly(() => report && onImport?.(report));
    return session;
  } finally {
    await chunks.return(undefined);
  }
}

async function restored(
  importer: Importer,
  chunks: AsyncIterable<Uint8Array>,
  host: Host,
): Promise<Opened & { report: ImportReport }> {
  try {
    for await (const bytes of chunks) {
      checkAborted(host.signal);
      await drive(
        run(() => importer.feed(bytes)),
        host,
      );
    }
    return await drive<Opened & { report: ImportReport }>(
      run(() => importer.finish()),
      host,
    );
  } catch (error) {
    // What cannot be removed now is rows that no session has; the reason why there is none matters more.
    await Promise.resolve()
      .then(() =>
        drive(
          run(() => importer.abandon()),
          { ...host, signal: undefined },
        ),
      )
      .catch(() => undefined);
    throw error;
  }
}

/** Characters that are encoded at a time. */
const SLICE = 1 << 18;

async function* chunksOf(jsonl: unknown): AsyncGenerator<Uint8Array> {
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
