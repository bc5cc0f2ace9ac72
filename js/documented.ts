/** A session under the names of the five original systems: no logic. */

import { coreOf } from "./nouns/core.js";
import type { DocumentedEvents, DocumentedResult, DocumentedSession } from "./types/documented.js";
import type { CompactionResult, Message, Session } from "./types.js";

// S1.10, S1.14, S4.4, S5.1 to S5.3, S5.5, S5.12
/** How the document of preset `checkpoint` answers when there is nothing to do. */
const NOTHING = "No messages to compress";

/**
 * Returns an object with the calls, results and events of a session under the names of the five original systems:
 * `getContextUsage`, `removeMessages`, `sessionLog`, `deletedFiles` and others. It calls `session`, which can be used at
 * the same time.
 */
export function withDocumentedNames<M extends Message>(session: Session<M>): DocumentedSession<M> {
  coreOf(session);
  const { context, snapshots, archive } = session;
  return {
    id: session.id,
    append: (...messages) => session.append(...messages),
    sync: (messages) => session.sync(messages),
    async prepare(options) {
      const { result, ...prepared } = await session.prepare(options);
      return { ...prepared, ...(result && { result: documented(result) }) };
    },
    compact: async (options) => documented(await session.compact(options)),
    on(event, listener) {
      if (event !== "compact" || typeof listener !== "function") return session.on(event, listener as never);
      return session.on("compact", ({ retiredRefCount, ...told }) =>
        (listener as (data: DocumentedEvents["compact"]) => void)({ ...told, deletedFileCount: retiredRefCount }),
      );
    },
    close: (options) => session.close(options),
    getContextUsage: () => context.usage(),
    getState: () => context.parts(),
    getAvailableTokens: () => context.availableTokens(),
    validate: () => context.validate(),
    removeMessages: (ids) => context.remove(ids),
    snapshot: (purpose) => snapshots.take(purpose),
    snapshots: () => snapshots.list(),
    restore: (id) => snapshots.restore(id),
    sessionLog: () => archive.compactionLog(),
    exportMarkdown: () => archive.markdown(),
  };
}

function documented<M>({ retiredRefs, ...result }: CompactionResult<M>): DocumentedResult<M> {
  return { ...result, deletedFiles: retiredRefs, success: result.success && result.reason !== NOTHING };
}
