/** `session.archive`: everything that was ever said. */

import { asRecord } from "../boundaries.js";
import { checkFunction, checkOptions, checkWhole, invalidOption } from "../checks.js";
import type { Persistence } from "../persistence.js";
import { byAge } from "../ages.js";
import { historyOf, streamOf, textOf, type Logged } from "../transcript.js";
import type { Checkpoint, Gap, Message, SessionArchive, SessionInfo, SessionMetadata } from "../types.js";
import type { Core } from "./core.js";

export function archiveOf<M extends Message>(core: Core<M>, persistence: Persistence): SessionArchive<M> {
  const { store, turns, cache, codec, drive, paged, look, notify } = core;
  return {
    get durability() {
      return store.caps.durable;
    },
    get persisted() {
      return persistence.value;
    },

    erase: (index, options) =>
      turns.exclusive(options, ["signal", "reason"], async (host) => {
        checkWhole("index", index, 0);
        const { reason } = options;
        if (typeof reason !== "string" || reason === "") throw invalidOption("reason", "must be a text that says why");
        await drive((handle) => handle.erase(index, reason), host);
        cache.forget(index);
        await store.purge?.();
      }),

    verify: (options = {}) => turns.beside(options, (host) => drive((handle) => handle.verify(), host)),

    async children() {
      return byAge(await turns.queued(() => drive<SessionInfo[]>((handle) => handle.children())));
    },

    history(options = {}) {
      turns.checkOpen();
      checkOptions(options, ["onGap"]);
      const { onGap } = options;
      checkFunction("onGap", onGap);
      const tell = ({ seq, index, count, reason }: Gap) =>
        notify({ event: "data-loss", kind: "records", lostRecords: count, seq, index, reason });
      const messages = historyOf<M>(
        (cursor) => paged<{ messages: Logged[]; gaps: Gap[] }>((handle) => handle.history(cursor)),
        (message) => cache.unchanged(message) ?? codec.decode(message.body),
        onGap ?? tell,
      );
      return asRecord("history", messages);
    },

    jsonl() {
      turns.checkOpen();
      return asRecord("history", streamOf((cursor) => paged((handle) => handle.exportPage(cursor))));
    },

    markdown: () => textOf((cursor) => paged((handle) => handle.markdown(cursor))),
    metadata: () => asRecord("history", look<SessionMetadata>((handle) => handle.metadata())),
    compactionLog: () => look((handle) => handle.sessionLog()),

    async checkpoints() {
      const found = await paged<Checkpoint[]>((handle) => handle.checkpointRecords());
      return found.map((record) => asRecord("history", record));
    },
  };
}
