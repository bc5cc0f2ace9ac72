/** `export` and `import`: stored sessions. */

import { createWriteStream } from "node:fs";
import { finished } from "node:stream/promises";
import process from "node:process";
import { once } from "node:events";
import { CompactionError, importSession, listSessions, openSession, type ImportReport, type Store } from "../entry/main.js";
import { EXIT, Exit, notUnderstood } from "./exit.js";
import { readInput } from "./input.js";
import { describe } from "./inspect.js";
import { existingFolderOf, folderOf, withStore } from "./stored.js";
import { number, plural, type Terminal } from "./terminal.js";
import { meant, type Given } from "./usage.js";

export async function exportSession(given: Given, terminal: Terminal): Promise<number> {
  const folder = existingFolderOf(given);
  return withStore(folder, async (store) => {
    const sessions = await listSessions(store);
    const ids = sessions.map(({ id }) => id);
    if (!ids.includes(given.file)) {
      const there = ids.length === 0 ? "it has none" : `it has ${ids.slice(0, 10).join(", ")}${ids.length > 10 ? " …" : ""}`;
      throw new Exit(EXIT.input, `${folder} has no session called ${given.file}${meant(given.file, ids)}; ${there}`);
    }
    const session = await openSession({ id: given.file, store, mustExist: true, logger: () => {} });
    try {
      const { totalMessages, totalTokens, compressionCount } = session.archive.metadata();
      const facts = { id: given.file, messages: totalMessages, tokens: totalTokens, compactions: compressionCount };
      const stream = session.archive.jsonl();
      if (given.json && given.output === undefined) terminal.object("export", { ...facts, archive: await new Response(stream).text() });
      else {
        await written(stream, given.output);
        terminal.object("export", { ...facts, output: given.output });
      }
      terminal.line(`${given.file}: ${plural(totalMessages, "message")}, ${number(totalTokens)} tokens, ${plural(compressionCount, "compaction")}`);
      terminal.line("The archive holds the whole conversation: protect it likewise.");
      return EXIT.fine;
    } finally {
      await session.close();
    }
  });
}

async function written(stream: ReadableStream<Uint8Array>, path: string | undefined): Promise<void> {
  const out = path === undefined ? process.stdout : createWriteStream(path);
  for await (const bytes of stream) if (!out.write(bytes)) await once(out, "drain");
  if (path === undefined) return;
  out.end();
  await finished(out);
}

export async function importFile(given: Given, terminal: Terminal): Promise<number> {
  const folder = folderOf(given);
  const input = await readInput(given.file, given.format);
  return withStore(folder, async (store) => {
    const common = { store, logger: () => {}, format: input.format, ...(given.id === undefined ? {} : { id: given.id }) };
    let report: ImportReport | undefined;
    const session = await (input.shape === "lines"
      ? importSession(input.source.bytes(), { ...common, onImport: (found) => (report = found) })
      : opened(input.name, given.id, common)
    ).catch((error: unknown) => {
      if (CompactionError.isInstance(error) && (error.code === "conflict" || /session called/.test(error.message))) {
        throw new Exit(EXIT.problems, `${folder} has a session of that name already: give another with --id`, { cause: error });
      }
      throw error;
    });
    try {
      if (!report) await session.append(...input.messages);
      const facts = { id: session.id, kind: input.kind, format: input.format, messages: session.archive.metadata().totalMessages, skipped: report?.skipped ?? {} };
      terminal.object("import", { ...facts, store: folder });
      terminal.line(`${session.id}: ${plural(facts.messages, "message")} of ${describe(input)}`);
      const left = Object.entries(facts.skipped).map(([what, count]) => `${what || "other"} ${number(count)}`);
      if (left.length > 0) terminal.line(`Left out, as no part of the conversation: ${left.join(", ")}`);
      return EXIT.fine;
    } finally {
      await session.close();
    }
  });
}

/** A new session for messages; one that is there already stays as it is. */
async function opened(name: string, id: string | undefined, options: { store: Store }): ReturnType<typeof openSession> {
  const session = await openSession(options);
  if (session.archive.metadata().totalMessages === 0) return session;
  await session.close();
  throw notUnderstood(name, `there is a session called ${id} already: give another with --id`);
}
