/** Types of `withDocumentedNames`. */

import type { CompactionError } from "../errors.js";
import type { Message, NewMessageAmong } from "./messages.js";
import type { CompactionReport, ContextUsage, Prepared } from "./results.js";
import type { Session, SessionEvents } from "./session.js";
import type { ContextParts, SnapshotInfo, Validation } from "./state.js";

/** Result of a compaction, with the fields of the original systems. */
export interface DocumentedResult<M = Message> extends Omit<CompactionReport<M>, "retiredRefs"> {
  /** No step failed, and the context fits. In preset `checkpoint` also false, without `error`, when there was nothing to
   *  compress. */
  success: boolean;
  /** The context was edited. */
  changed: boolean;
  /** Why nothing changed, or what failed; for people. */
  reason?: string;
  /** Why `success` is false. */
  error?: CompactionError | undefined;
  /** The error of your summarizer, when the built-in one wrote the summary in its place. */
  fellBack?: CompactionError | undefined;
  /** References to stored texts that left the context. Nothing is deleted: the texts stay in the archive. */
  deletedFiles: string[];
}

/** The events of a session, with the fields of the original systems. */
export interface DocumentedEvents extends Omit<SessionEvents, "compact"> {
  /** A summary replaced messages; `deletedFileCount` references to stored texts left the context. */
  compact: Omit<SessionEvents["compact"], "retiredRefCount"> & { deletedFileCount: number };
}

/** A session under the names of the original systems; `append`, `sync` and `close` are those of `Session`. */
export interface DocumentedSession<M = Message> extends Pick<Session<M>, "id" | "append" | "sync" | "close"> {
  /** The messages to send now; see `Session.prepare`. */
  prepare(
    options?: Parameters<Session<M>["prepare"]>[0],
  ): Promise<Omit<Prepared<M>, "result"> & { result?: DocumentedResult<M | NewMessageAmong<M>> }>;
  /** Compacts now; see `Session.compact`. */
  compact(options?: Parameters<Session["compact"]>[0]): Promise<DocumentedResult<M | NewMessageAmong<M>>>;
  /** Calls `listener` at every such event. Returns the function that ends this. */
  on<E extends keyof DocumentedEvents>(event: E, listener: (data: DocumentedEvents[E]) => void): () => void;
  /** `context.usage()`: tokens by category, the window and the threshold. */
  getContextUsage(): ContextUsage;
  /** `context.parts()`: system prompt, checkpoints, recent messages. */
  getState(): Promise<ContextParts<M>>;
  /** `context.availableTokens()`: tokens that the next messages may take. */
  getAvailableTokens(): number;
  /** `context.validate()`: whether the context fits the window as it is. */
  validate(): Promise<Validation>;
  /** `context.remove(indices)`: removes messages from the context. The ids are their indices, as in `context.explain()`. */
  removeMessages(ids: readonly number[]): Promise<number[]>;
  /** `snapshots.take(purpose)`: takes a snapshot and resolves to its id. */
  snapshot(purpose?: "recovery" | "rollback"): Promise<string>;
  /** `snapshots.list()`: the snapshots that can be restored, oldest first. */
  snapshots(): Promise<SnapshotInfo[]>;
  /** `snapshots.restore(id)`: goes back to a snapshot. */
  restore(id: string): Promise<void>;
  /** `archive.compactionLog()`: the tokens that each summary saved, as Markdown. */
  sessionLog(): string;
  /** `archive.markdown()`: the conversation as Markdown, for people. */
  exportMarkdown(): Promise<string>;
}
