/** Sessions: their calls, events, and facts about stored ones. */

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
import type { Progress, SessionOptions } from "./options.js";
import type { CompactionResult, ContextUsage, PinProposal, Prepared } from "./results.js";

/** A stored session, as `listSessions` and `archive.children()` list it. */
export interface SessionInfo {
  /** For `openSession({ id })` and `deleteSession(id)`. */
  id: string;
  /** The format of its messages; absent while the session is empty. */
  format?: Format;
  /** Messages ever appended. */
  messages: number;
  /** In ms since 1970. */
  createdAt: number;
  /** When something was last written, in ms since 1970. */
  updatedAt: number;
  /** The session that it was begun from, which may be deleted by now; `seq`: how many rows that session's log had then. */
  parent?: { id: string; seq: number };
}

/** Options of `importSession`. `id` is by default that of the exported session, or a new one for another agent's
 *  transcript; the store must not have a session of that name (`conflict`). */
export interface ImportOptions extends SessionOptions {
  /** `context` (default): the session as it was exported, with summaries, references and snapshots. `transcript`: its
   *  messages alone, all of them in the context but those that a restore or a rewind removed, and no snapshots. */
  from?: "context" | "transcript";
  /** Called once, when the session has been imported. */
  onImport?: (report: ImportReport) => void;
}

/** Report of `importSession` on the lines it was given. */
export interface ImportReport {
  /** Whose lines they are. Transcripts of `claude-code` are read in format `anthropic`, of `codex` in `openai-responses`;
   *  `messages`, one in a line, in their own format. */
  kind: "context-compactor" | "claude-code" | "codex" | "messages";
  /** Lines that are not empty. */
  lines: number;
  /** Messages that were imported. */
  messages: number;
  /** How many lines were left out because they are no part of the conversation, by kind. Of abandoned branches, messages are
   *  counted. `gap`: messages that the store had lost when the session was exported. */
  skipped: Record<string, number>;
}

/** The events of a session, for `session.on`, and what a listener receives. */
export interface SessionEvents {
  /** `count` old results were stored, or images left out, with references in their place; that freed `freedTokens` tokens. */
  offload: { count: number; freedTokens: number };
  /** A summary replaced messages. Tokens of the context before and after, their difference, and how many references to stored
   *  texts left the context. */
  compact: { previousTokens: number; currentTokens: number; freedTokens: number; retiredRefCount: number };
  /** A call of this session changed what its context takes up: as `context.usage()`. For pages that show it. */
  usage: ContextUsage;
  /** A long operation advanced. */
  progress: Progress;
  /** A message of the user states constraints: answer with `pins.add(index)` or `pins.reject(index)`, or leave it. */
  pin: PinProposal;
  /** Another handle on the session, in another tab, in another process or here, wrote to it, and this one now has what was
   *  written. `messages`: how many messages the session has. `generation`: how often its context has changed. Emitted at once
   *  between tabs with IndexedDB; with other stores at the next `prepare`, `compact` or `append`. */
  change: { messages: number; generation: number };
  /** `sync` was given a history that differs from the session's, which continues as a branch. `index`: the first message of
   *  the log that the branch leaves out, as `context.explain()` counts. `given`: index of the first given message that was
   *  appended. `reason`: what differs, as in `part 0 text differs`; it contains no text of the conversation. */
  branch: { index: number; given: number; reason: string };
  /** Stored data of the session was lost or repaired. Losses found before the first listener are delivered to it. A final
   *  loss is reported at every opening until something is appended. */
  "data-loss": DataLoss;
  /** Something went wrong and the session continues. `code` is an error code or a name such as `not_persisted`. `durable:
   *  "none"`: the session cannot be stored and is in memory. Warnings of the opening are delivered to later listeners,
   *  too. Without a listener and the option `logger`, a warning goes to `console.warn`, once for each code. */
  warning: { code: string; message: string; durable?: "none" };
}

/** A loss of stored data, or a repair. */
export interface DataLoss {
  /** `platform`: the platform reports that it deleted data of the store. `session`: the whole session is gone. `records`:
   *  stored messages are gone, or cannot be read. `context`: the context is an earlier one; all messages are still there.
   *  `repaired`: damaged rows were restored; no message is lost. */
  kind: "platform" | "session" | "records" | "context" | "repaired";
  /** Lost rows of the log, if their number is known. */
  lostRecords?: number;
  /** Position in the log of the first lost row, of a gap that a history, an export, a search or a fork passed over. Each
   *  gap is reported once. */
  seq?: number;
  /** Index of the first missing message of that gap, as `context.explain()` counts. */
  index?: number;
  /** What happened, for people. It contains no text of the conversation. */
  reason: string;
}

/** A session that `salvage` read from a damaged store. */
export interface Salvaged {
  /** The session's id, or `salvaged-…` if the id is lost. */
  id: string;
  /** JSON lines for `importSession`, as from `session.archive.jsonl()`. Read it once, while the store is open. `undefined` if
   *  nothing of the session could be read; the `error` in `gaps` says why. */
  archive: ReadableStream<Uint8Array> | undefined;
  /** Gaps in the archive; empty if the session is whole. First, what the opening found. Then, of kind `records` and with a
   *  `seq`, one entry for each gap of the archive. The same loss may be in both. */
  gaps: SalvageGap[];
}

/** Something that `salvage` could not read, or restored from other rows. */
export interface SalvageGap extends DataLoss {
  /** Why there is no archive, when there is none. */
  error?: CompactionError;
}

/** Consecutive rows of a session's log that cannot be read. */
export interface Gap {
  /** Position in the log of the first such row. */
  seq: number;
  /** Number of rows. */
  count: number;
  /** Index of the first missing message, as `context.explain()` counts. */
  index: number;
  /** Number of missing messages. */
  messages: number;
  /** Why they cannot be read, for people. */
  reason: string;
}

/** Result of `archive.verify()`. */
export interface Verified {
  /** No problem was found. */
  ok: boolean;
  /** Each names an invariant and a row, as in `I1: log row 7 is missing`. They contain no text of the conversation. */
  problems: string[];
}

/** A message that `recall.search` found, with its best passages. */
export interface SearchHit {
  /** Reference for `recall.read`: of the stored text that has the passage, or of the whole message (`m104k`). Of another session
   *  it has that session's mark before it (`7k2mq4xb/m104k`). */
  ref: string;
  /** `id` of the session that the message is of, if that is another one of the store (option `recall.scope`). `seq` and `index`
   *  are positions there. */
  session?: string;
  /** Position of the message in the session's log, from 0: messages, compactions and snapshots count. */
  seq: number;
  /** Index of the message, from 0. */
  index: number;
  /** Who says it; `tool` for the result of a call. */
  role: "system" | "user" | "assistant" | "tool";
  /** The tool that is called, or whose result it is. */
  tool?: string;
  /** What that call is about, in one line of at most 100 characters: its file, command, address or query. */
  target?: string;
  /** Where the model has the text: verbatim in the context, replaced by a reference, or covered by a summary; `elsewhere` for
   *  a message of another session. */
  place: "context" | "offloaded" | "summarized" | "elsewhere";
  /** The passages, line by line; `…` is what was left out. About 500 characters, and 250 more where a second one has words of
   *  the query that the first lacks. */
  snippet: string;
}

/** What `recall.expand` leads to: a checkpoint, or a message. */
export type RecallPart =
  | {
      kind: "checkpoint";
      /** Its id, for `recall.expand`. */
      id: string;
      /** Indices of the messages that it replaces: the first, and the one after the last. */
      messageRange: [number, number];
      /** What it says. */
      text: string;
    }
  | {
      kind: "message";
      /** Index of the message, from 0. */
      index: number;
      /** Reference of the whole message, for `recall.read`. */
      ref: string;
      /** Who says it; `tool` for a message of results. */
      role: SearchHit["role"];
      /** The tool that is called, or whose result it is. */
      tool?: string;
      /** What that call is about, in one line of at most 100 characters: its file, command, address or query. */
      target?: string;
      /** Where the model has the text: verbatim in the context, replaced by a reference, or covered by a summary. */
      place: Exclude<SearchHit["place"], "elsewhere">;
      /** How it begins, line by line: about 250 characters. */
      snippet: string;
    };

/** Result of `session.sync`. */
export interface SyncResult {
  /** Number of given messages that were appended. */
  appended: number;
  /** Number of given messages that the session had; all but the appended ones. */
  recognized: number;
  /** 1 when an appended message is a new version of the session's last one. */
  replaced?: number;
  /** The history differed: index of the first message of the log that the branch leaves out, as `context.explain()` counts. */
  branchedAt?: number;
  /** The history began later than the session's: index of the message of the log with which it begins. */
  alignedAt?: number;
}

/** Options of `session.prepare`. */
export interface PrepareOptions<M = Message> {
  /** Messages to append first, as `append(...messages)` does, in one call with it: a store is written to once and not asked again. A message
   *  that is refused rejects the call, and nothing is stored or prepared. If the call fails after that, the messages are stored, and
   *  its error has `appended: true`. Default: none. */
  append?: readonly M[];
  /** Definitions of the tools of the request, as the provider is sent them: they are counted. */
  tools?: unknown;
  /** Aborts the compaction. Messages of `append` are stored all the same. */
  signal?: AbortSignal;
  /** Compacts below the threshold too, after the provider refused the prompt as too long. Default: false. */
  force?: boolean;
  /** A text about the state of things now, such as running jobs and open files, for the end of this prompt alone: it is fenced,
   *  counted (category `live`), never stored or summarized, and `sync` does not append it. At most a tenth of the window less
   *  the answer (`too_large`); in format `react` there is no place for it (`invalid_option`). Default: none. */
  live?: string;
}

/** Options of `session.step`. */
export interface StepOptions extends Omit<PrepareOptions, "append"> {
  /** Token counts of the answer before, as the provider returned them. Default: none are recorded. */
  usage?: object;
  /** The model that answered, where it is not the session's. */
  model?: string;
  /** Aborts the compaction. The messages are stored all the same. */
  signal?: AbortSignal;
}

/** A conversation that is kept within the context window and stored whole. An agent's loop calls `append` and `prepare`.
 *  Every call rejects with `closed` after `close`, and with the errors of the store. */
export interface Session<M = Message, N = NewMessageAmong<M>> extends AsyncDisposable {
  /** The session's name in its store. */
  readonly id: string;
  /** Appends messages, in the app's own format; durable when it resolves. Append a message when it is complete and do not
   *  change it later: the archive keeps it as it was appended, a change is lost when the session is opened again, and
   *  `prepare` emits a `warning` when it notices one. Calls that are not awaited one by one share one transaction: a
   *  refused message (`invalid_message`, `unsupported_value`, `too_large`) rejects its own call, an error of the store all
   *  of them. */
  append(...messages: M[]): Promise<void>;
  /** Hands over the whole history, as SDKs and apps with their own `messages` hold it: what the session has is recognized,
   *  the rest is appended and durable when it resolves. The call for loops that do not append message by message.
   *
   *  A message is recognized as the same object or by what it says: the order of fields, ids, `metadata`, marks of caches, a
   *  text that became a block, and arguments in another spelling are no differences. The newest object is handed out.
   *  Messages that `prepare` returned are recognized, too, and so is a window of the newest messages. A last message that
   *  grew and has the same id replaces itself, and a leading system message may change.
   *
   *  A history that differs continues as a branch, or rejects with `diverged` (option `onDiverged`). Rejects with `diverged`
   *  if it has no message in common with the session, and with `invalid_message` if it is empty and the session is not. */
  sync(messages: readonly M[]): Promise<SyncResult>;
  /** Returns the messages to send now, compacted first if the preset's threshold is reached. Rejects with `context_overflow` when the context cannot be made to fit (`cause`: the error of a failed
   *  summary, if that is why), `limit_reached` where `limits.onExceed` is `throw`, `invalid_message` when no message could be sent, and `aborted` after `signal`. */
  prepare(options?: PrepareOptions<M>): Promise<Prepared<M, N>>;
  /** One step of a loop that holds the whole history, as adapters of SDKs do: `context.recordUsage(usage)`, `sync(messages)`
   *  and `prepare({ tools, signal, force, live })`, in this order. Rejects with the errors of each. */
  step(messages: readonly M[], options?: StepOptions): Promise<Prepared<M, N>>;
  /** Compacts now, whatever the threshold. `instructions` are added to the summary prompt. A failed summary is not thrown:
   *  the result has `success: false` and the `error`. Rejects with `aborted` after `signal`. */
  compact(options?: { instructions?: string; signal?: AbortSignal }): Promise<CompactionResult<M | N>>;
  /** Creates a session with the context of this one, for a sub-agent: the same messages, settings and goal. Its archive
   *  begins with the messages of this context; messages that a summary replaced stay in this session's. Stored texts are
   *  copied, so neither session depends on the other. `id`: default a new one. Rejects with `conflict` if the store has a
   *  session of that id. */
  fork(options?: { id?: string }): Promise<Session<M, N>>;
  /** Calls `listener` at every such event. Returns the function that ends this. A listener's exception becomes an uncaught
   *  one and fails no call. */
  on<E extends keyof SessionEvents>(event: E, listener: (data: SessionEvents[E]) => void): () => void;
  /** Waits for pending calls, then frees memory; later calls reject with `closed`. The store stays open. `delete`: also
   *  delete everything that the session stored. */
  close(options?: { delete?: boolean }): Promise<void>;
  /** The context: the messages that the model sees now. */
  readonly context: SessionContext<M, N>;
  /** Reading and searching messages that are no longer in the context. */
  readonly recall: SessionRecall;
  /** Messages that are kept verbatim forever. */
  readonly pins: SessionPins;
  /** States of the session to go back to. */
  readonly snapshots: SessionSnapshots;
  /** The goal of the session. */
  readonly goal: SessionGoal;
  /** The archive: every message ever appended. */
  readonly archive: SessionArchive<M>;
}
