/** Sessions: their options, what is told of them, and their calls. */

import type { CompactionError } from "../errors.js";
import type { Format, Message, NewMessageAmong } from "./messages.js";
import type {
  SessionArchive,
  SessionContext,
  SessionGoal,
  SessionPins,
  SessionRecall,
  SessionSnapshots,
} from "./nouns.js";
import type { SessionOptions } from "../generated/options.js";
import type { Progress } from "./options.js";
import type { CompactionResult, PinProposal, Prepared } from "./results.js";

/** What is told of a session of a store. */
export interface SessionInfo {
  id: string;
  format?: Format;
  /** Messages in its log. */
  messages: number;
  createdAt: number;
  updatedAt: number;
  /** The session that it was begun from, which may be deleted by now, and the rows of its log at that time (`S3.10`). */
  parent?: { id: string; seq: number };
}

/** What `importSession` takes beside the options of a session. `id` is the one that the session had, by default, or, of
 *  another agent's, a new one; there must be none of that name in the store. */
export interface ImportOptions extends SessionOptions {
  /** What the session is restored from: its `context`, summaries and references as they are (default), or its
   *  `transcript`, so that every message stands in the context but those that a restore or a rewind left behind, and
   *  there are no snapshots (`S3.9`). */
  from?: "context" | "transcript";
  /** Told what was found, once the session is there. */
  onImport?: (report: ImportReport) => void;
}

export interface ImportReport {
  /** Transcripts of Claude Code are read as `anthropic`, of Codex as `openai-responses`, lines that are `messages` in
   *  their own format. */
  kind: "context-compactor" | "claude-code" | "codex" | "messages";
  /** Lines with something in them. */
  lines: number;
  messages: number;
  /** How many lines (of branches that were left: messages) are no part of the conversation, by what they are; `gap`: what
   *  the store had lost when the session was exported. */
  skipped: Record<string, number>;
}

export interface SessionEvents {
  /** `S1.14`. */
  offload: { count: number; freedTokens: number };
  /** `S1.14`. */
  compact: { previousTokens: number; currentTokens: number; freedTokens: number; retiredRefCount: number };
  progress: Progress;
  /** A message of the user states constraints (`S4.3`). */
  pin: PinProposal;
  /** What another handle on the session wrote, in another tab, process or here, is part of this one from now on: `messages`
   *  is how many the session has, `generation` counts the changes of its context. In IndexedDB tabs tell each other at
   *  once; with other stores it is noticed at the next `prepare`, `compact` or `append`. */
  change: { messages: number; generation: number };
  /** The platform took something from the session, or something was mended when it was opened. What was found while it
   *  was opened is kept for the first listener; what was lost for good is told at every opening until something is
   *  appended. */
  "data-loss": DataLoss;
  /** `durable: "none"`: the session could not be stored and is kept in memory (`store_unavailable`). That, and what else was
   *  found while the session was opened, is told to whoever listens later, too. Where nobody listens and there is no
   *  `logger`, a warning goes to `console.warn`, once for each code. */
  warning: { code: string; message: string; durable?: "none" };
}

/** What was lost, or mended. */
export interface DataLoss {
  /** `platform`: the platform says that it removed data of the store. `session`: the session that was there is not there
   *  any more. `records`: messages that were acknowledged are gone, or cannot be read. `context`: the context is an
   *  earlier one, and every message is still there. `repaired`: rows were mended, and nothing that was said is lost. */
  kind: "platform" | "session" | "records" | "context" | "repaired";
  /** Rows of the log, where their number is known. */
  lostRecords?: number;
  /** Position in the log of the first of them, and index of the first message that is missing: of a gap that history, an
   *  export, a search or a fork went on over. Each is told once. */
  seq?: number;
  index?: number;
  /** For people; nothing that was said is in it. */
  reason: string;
}

/** A session that `salvage` took out of a damaged store. */
export interface Salvaged {
  /** The session's own id, or `salvaged-…` where that is not known. */
  id: string;
  /** JSON lines for `importSession`, as those of `session.archive.jsonl()`: read while the store is open, once. `undefined`
   *  where nothing could be made of the session; `gaps` says why. */
  archive: ReadableStream<Uint8Array> | undefined;
  /** What could not be read; empty where the session is whole. Of kind `records` and with a `seq`: messages that are
   *  missing in the archive, one entry for each gap. What was found when the session was opened stands before those, and
   *  may speak of the same messages. */
  gaps: SalvageGap[];
}

/** What `salvage` could not read, or made again from other rows. */
export interface SalvageGap extends DataLoss {
  /** Why there is no archive. */
  error?: CompactionError;
}

/** Rows of the log, one behind the other, that cannot be read. */
export interface Gap {
  /** Position in the log of the first. */
  seq: number;
  /** How many. */
  count: number;
  /** Index of the first message that is missing, as `context.explain()` counts. */
  index: number;
  /** How many messages. */
  messages: number;
  reason: string;
}

/** What came of `verify`. */
export interface Verified {
  ok: boolean;
  /** Each names an invariant and a row, as in `I1: log row 7 is missing`; content is never in it. */
  problems: string[];
}

/** A passage that `search` found. */
export interface SearchHit {
  /** For `read`: of the offload, or of the whole message. */
  ref: string;
  /** Position of the message in the session's log. */
  seq: number;
  /** In one line. */
  snippet: string;
}

/** A conversation that is kept inside the context window and never lost. An agent's loop calls `append` and `prepare`. */
export interface Session<M = Message> extends AsyncDisposable {
  readonly id: string;
  /** Appends messages; durable when it resolves. Do not change a message after that: append it when it is complete. The
   *  archive keeps it as it was appended, and a later change is lost when the session is opened again; `prepare` warns when
   *  it sees that one of the newest messages was changed. Calls that are not awaited one by one are written in one
   *  transaction: a message that is refused rejects its own call alone, an error of the store rejects all of them. */
  append(...messages: M[]): Promise<void>;
  /** Hands over the whole history instead of the new messages: known messages are recognized, whatever the order of their
   *  fields, and the rest is appended. A changed past is the error `diverged`, with the index where it differs and the call
   *  that continues from there; then nothing is appended. Do not pass what `prepare` returned: that is no whole history. */
  sync(messages: readonly M[]): Promise<{ appended: number }>;
  /** The messages to send now, compacted as the preset says when they must be. `tools` are the definitions that the request
   *  has beside the messages: they are counted. `force` compacts although the threshold is not reached: after the provider
   *  refused the prompt as too long. */
  prepare(options?: { signal?: AbortSignal; tools?: unknown; force?: boolean }): Promise<Prepared<M>>;
  /** Compacts now. `instructions` are added to the summary prompt. */
  compact(options?: { instructions?: string; signal?: AbortSignal }): Promise<CompactionResult<M | NewMessageAmong<M>>>;
  /** Begins a session with the context of this one, for a sub-agent: the same messages, settings and goal, and an archive of
   *  its own with the messages of this context; what a summary stands for stays here. Offloads are copied, so neither session
   *  depends on the other. `id` is new by default. Throws `conflict` when there is a session with this id. */
  fork(options?: { id?: string }): Promise<Session<M>>;
  /** Calls `listener` at each such event, until the function that is returned is called. */
  on<E extends keyof SessionEvents>(event: E, listener: (data: SessionEvents[E]) => void): () => void;
  /** Waits for calls under way, then frees the engine's memory. `delete` removes all that the session stored. */
  close(options?: { delete?: boolean }): Promise<void>;
  /** What the model sees now. */
  readonly context: SessionContext<M>;
  /** What is no longer in the context. */
  readonly recall: SessionRecall;
  /** Messages that are kept verbatim forever. */
  readonly pins: SessionPins;
  /** States of the session to go back to. */
  readonly snapshots: SessionSnapshots;
  /** What the session is for. */
  readonly goal: SessionGoal;
  /** Everything ever said in the session. */
  readonly archive: SessionArchive<M>;
}
