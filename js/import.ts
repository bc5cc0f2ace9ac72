/** Sessions from transcripts: bytes in; the engine says what they are. */

import { checkFunction, invalidOption } from "./checks.js";
import { chunksOf, type Jsonl } from "./chunks.js";
import { drive } from "./driver.js";
import { checkAborted, type Host } from "./effects.js";
import { call, isPoisoned } from "./engine.js";
import { quietly } from "./quietly.js";
import { HERE } from "./here.js";
import type { Opened } from "./seat.js";
import { startSession } from "./session.js";
import type { ImportOptions, ImportReport, Message, Session } from "./types.js";
import type { Importer } from "./wasm/core.js";

/**
 * Creates a session from the JSON lines of `archive.jsonl()`, with messages, context and stored texts as they were; or
 * from a transcript of Claude Code or Codex, or from messages, one in a line. All or nothing: rejects with
 * `invalid_message`, whose message names the line, and with `conflict` if the store has a session of that id.
 */
export async function importSession<M extends Message = Message>(
  jsonl: Jsonl,
  options: ImportOptions = {},
): Promise<Session<M>> {
  const { from = "context", onImport, ...rest } = Object(options) as ImportOptions;
  checkFunction("onImport", onImport);
  if (from !== "context" && from !== "transcript") throw invalidOption("from", 'must be "context" or "transcript"');
  const chunks = chunksOf(jsonl);
  let report: ImportReport | undefined;
  try {
    const session = await startSession<M>(HERE, "importSession", rest, async (given, id, host, maxBatchOps) => {
      const importer = await drive<Importer>((engine) => engine.Importer.open(given, id, from, maxBatchOps), host);
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
      await drive(() => importer.feed(bytes), host);
    }
    return await drive<Opened & { report: ImportReport }>(() => importer.finish(), host);
  } catch (error) {
    // What cannot be removed now is rows that no session has; the reason why there is none matters more.
    await drive(() => importer.abandon(), { ...host, signal: undefined }).catch(() => undefined);
    throw error;
  }
}
