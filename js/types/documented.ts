/** Types of `withDocumentedNames`. */

import type { CompactionError } from "../errors.js";
import type { Message, NewMessageAmong } from "./messages.js";
import type { CompactionReport, ContextUsage, Prepared } from "./results.js";
import type { Session, SessionEvents } from "./session.js";
import type { ContextParts, SnapshotInfo, Validation } from "./state.js";

/** A compaction as the documents report it. */
export interface DocumentedResult<M = Message> extends Omit<CompactionReport<M>, "retiredRefs"> {
  /** False also where preset `checkpoint` finds no messages to compress, as its document says; there is no `error` then. */
  success: boolean;
  changed: boolean;
  reason?: string;
  error?: CompactionError | undefined;
  fellBack?: CompactionError | undefined;
  /** References of offloads that nothing in the context refers to any more. Their texts stay in the archive. */
  deletedFiles: string[];
}

/** Events with the documents' fields. */
export interface DocumentedEvents extends Omit<SessionEvents, "compact"> {
  compact: Omit<SessionEvents["compact"], "retiredRefCount"> & { deletedFileCount: number };
}

/** A session by the names of the documents; `append`, `sync` and `close` are the session's own. */
export interface DocumentedSession<M = Message> extends Pick<Session<M>, "id" | "append" | "sync" | "close"> {
  /** The messages to send now; see `Session.prepare`. */
  prepare(
    options?: Parameters<Session["prepare"]>[0],
  ): Promise<Omit<Prepared<M>, "result"> & { result?: DocumentedResult<M | NewMessageAmong<M>> }>;
  /** Compacts now; see `Session.compact`. */
  compact(options?: Parameters<Session["compact"]>[0]): Promise<DocumentedResult<M | NewMessageAmong<M>>>;
  /** Calls `listener` at each such event, until the function that is returned is called. */
  on<E extends keyof DocumentedEvents>(event: E, listener: (data: DocumentedEvents[E]) => void): () => void;
  /** `context.usage()`: tokens by category, the window and the threshold. */
  getContextUsage(): ContextUsage;
  /** `context.parts()`: system prompt, checkpoints, recent messages. */
  getState(): Promise<ContextParts<M>>;
  /** `context.availableTokens()`: what the next messages may take. */
  getAvailableTokens(): number;
  /** `context.validate()`: whether the context fits the window as it is. */
  validate(): Promise<Validation>;
  /** `context.remove(indices)`: takes messages out of the context. The ids are their indices, as in `context.explain()`. */
  removeMessages(ids: readonly number[]): Promise<number[]>;
  /** `snapshots.take(purpose)`: takes a snapshot and resolves to its id. */
  snapshot(purpose?: "recovery" | "rollback"): Promise<string>;
  /** `snapshots.list()`: the snapshots that can be restored, oldest first. */
  snapshots(): Promise<SnapshotInfo[]>;
  /** `snapshots.restore(id)`: goes back to a snapshot. */
  restore(id: string): Promise<void>;
  /** `archive.compactionLog()`: what every summary saved, as Markdown. */
  sessionLog(): string;
  /** `archive.markdown()`: the conversation for people. */
  exportMarkdown(): Promise<string>;
}
