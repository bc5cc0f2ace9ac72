/** Sessions: their options, what is told of them, and their calls. */

import type { CompactionError } from "../errors.js";
import type { Format, Message, NewMessageAmong, Usage } from "./messages.js";
import type { CompactOptions, Progress } from "./options.js";
import type {
  CompactionResult,
  ContextUsage,
  LedgerEntry,
  PinProposal,
  Plan,
  Prepared,
  ReactStats,
  Trajectory,
} from "./results.js";
import type {
  ActiveContext,
  CheckpointRecord,
  Goal,
  SessionMetadata,
  SnapshotInfo,
  Validation,
} from "./state.js";
import type { Store, Watermark } from "./store.js";
import type { RecallTools } from "./tools.js";

export interface SessionOptions extends CompactOptions {
  /** The app's own name for the session; default a new one. */
  id?: string;
  /** Default `indexeddb` in browsers; by that name, one that may store nothing (site data forbidden) gives a session in
   *  memory, which says so: `session.durable` is `none`, and there is a `warning`. Elsewhere there is no default for a session
   *  with an `id`: `fileStore`, `durableObjectStore`, a `Store` of your own, or `memory`, where sessions of one id are one as
   *  long as the process lives, until `delete`. Without an `id` the default is memory there. A store that you pass never falls
   *  back: `indexedDbStore()` rejects with `store_unavailable`. */
  store?: Store | "memory" | "indexeddb";
  systemPrompt?: string | (() => string);
  /** `prepare` does not wait for a summary that is due while there is still room: it is made while the agent goes on, and
   *  one commit puts it in the place of what it stands for, with every message that came meanwhile behind it. The first
   *  `prepare` after that has it, with its `result`. Without room `prepare` waits. Default false. */
  background?: boolean;
  /** Id of the session that a new one is begun from, empty: a sub-agent with a context of its own (`S3.10`). */
  parent?: string;
  /** Where how far the session is, is kept outside of its store: so a database that the platform removed, or gave back as
   *  it was earlier, is noticed (event `dataloss`). One for each store. Default: `localStorage` where there is one, for a
   *  store in IndexedDB; else none. What fails here fails no call: it is a `warning`, once. */
  watermark?: Watermark;
  /** Where the session that was stored under `id` is not in the store any more: begin it anew. Without this, that is an
   *  error with the code `data_loss`, so that nothing begins empty without the app's word. Default false. */
  acceptDataLoss?: boolean;
  /** The app knows that there is a session called `id`: where the store has none, `openSession` throws `data_loss` and begins
   *  nothing. Without it, a session that went with all that the browser kept for the site looks like a new one. With
   *  `acceptDataLoss` a session that is known to be lost is begun anew all the same. Default false. */
  mustExist?: boolean;
  /** What a call may take at most. */
  limits?: {
    /** How long one call of the store may take, in ms; a whole number from 1, default 30,000. A call that is not answered in
     *  time fails: with `store_unavailable` where nothing was written, with `indeterminate` where that is not known. What
     *  the store answers later is ignored, and the next call reads what is stored. `indexedDbStore` gives up after 10 s
     *  by itself. */
    storeTimeoutMs?: number;
  };
}

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

/** What a chat shows when a command has ended (`S1.13`): lines of text for a fixed-width font. */
export interface CommandAnswer {
  /** `idle`: there was nothing to do. */
  tone: "ok" | "idle" | "error";
  text: string;
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
  compact: { previousTokens: number; currentTokens: number; freedTokens: number; deletedFileCount: number };
  progress: Progress;
  /** A message of the user states constraints (`S4.3`); `accepted` when it is pinned already. */
  pin: PinProposal & { accepted: boolean };
  /** What another handle on the session wrote, in another tab, process or here, is part of this one from now on: `messages`
   *  is how many the session has, `generation` counts the changes of its context. In IndexedDB tabs tell each other at
   *  once; with other stores it is noticed at the next `prepare`, `compact` or `append`. */
  change: { messages: number; generation: number };
  /** The platform took something from the session, or something was mended when it was opened. What was found while it
   *  was opened is kept for the first listener; what was lost for good is told at every opening until something is
   *  appended. */
  dataloss: DataLoss;
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
  /** JSON lines for `importSession`, as those of `session.exportJsonl()`: read while the store is open, once. `undefined`
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
  /** Index of the first message that is missing, as `explain()` counts. */
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

export interface Session<M = Message> extends AsyncDisposable {
  readonly id: string;
  /** What an `append` that resolved survives: `synced` a power cut, `process` a crash, `none` nothing, not even the end of
   *  the page. It is the store's word: a private window, which no page can tell from another, forgets all the same. */
  readonly durable: Store["caps"]["durable"];
  /** Whether the browser keeps what is stored when space runs out: false where it may remove all of the site's data, and
   *  then there is a `warning` (`not_persisted`) after the first `append`. As of the last look: at opening, and after the
   *  first `append`, when `indexedDbStore` asks the browser (`persist`). `undefined` until the browser answers, and with stores
   *  that no platform removes. Source: `navigator.storage.persisted()`. */
  readonly persisted: boolean | undefined;
  /** The format that the messages are read as. Plain ones, and none, are read as `openai-chat` until one comes that
   *  only another format has, unless the options say it. */
  readonly format: Format;
  /** Durable when it resolves. Do not change a message after that: append it when it is complete. The log keeps it as it was,
   *  and what was added later is lost when the session is opened again; where `prepare` sees that one of the newest was
   *  changed, it warns. Calls that are not awaited one by one are written in one transaction: a message that is
   *  refused rejects its own call alone, what the store refuses rejects all of them. */
  append(...messages: M[]): Promise<void>;
  /** Hand over the whole history instead: known messages are recognised, whatever the order of their fields, the rest
   *  appended. A changed past is the error `diverged`, with the index where it differs and the way to go on from there;
   *  nothing is appended. So is a message that was changed after it was handed over, as long as it stands in the context:
   *  do not change a message, hand it over when it is complete. Not for what `prepare` gave, which is no whole history. */
  sync(messages: readonly M[]): Promise<{ appended: number }>;
  /** The messages to send now, made to fit as the preset says. */
  prepare(options?: { signal?: AbortSignal; tools?: unknown; trigger?: "auto" | "overflow" }): Promise<Prepared<M>>;
  /** `/compact` (`S1.13`). */
  compact(options?: { instructions?: string; signal?: AbortSignal }): Promise<CompactionResult<M | NewMessageAmong<M>>>;
  /** Makes the context what it was just before message `index` was appended, to edit that message or have it written
   *  again: the view of that time, so a summary that was made later is undone. `index` counts every message of the log, as
   *  `explain` does, and must not part an exchange. `append` and `sync` go on from there, `sync` with the history as it is
   *  then. What was said since stays in the log, and rewinding to an index behind it brings it back; the goal stays as it
   *  is. Throws `invalid_option`, naming an index that works. */
  rewind(index: number): Promise<void>;
  /** Reads all that is stored of the session, at most 4 MiB at a time, and checks what must hold: hashes of records,
   *  chains, references, views, snapshots, one fate for every message. Other calls go on meanwhile. `progress` has the
   *  stage `verify`. What is wrong with what is stored is no error. */
  verify(options?: { signal?: AbortSignal }): Promise<Verified>;
  /** Removes what message `index` said, for good: a leaked secret, a request to delete. `index` counts all messages from 0, as
   *  `explain` does; `reason` says why, and stays. An empty message ("[erased]") takes its place in the log, in the context,
   *  in `history` and in exports, so that calls and results still pair; its fate is `dropped`, with the reason and the hash
   *  of what it was. Its offloads go, and so do sentences of summaries, snapshots and the goal that have a word or four words
   *  in a row that no other message has. `restore`, `rewind` and `read` cannot bring it back.
   *
   *  The call writes all that stays of the session anew and resolves when the old rows are gone; `progress` has the stage
   *  `erase`. Stopped at any point, the message is whole or erased. Other handles on the session go on with the new rows.
   *  `fileStore` writes its journal anew at once and removes journals that it kept for `salvage`; a browser's database and a
   *  Durable Object overwrite the freed space in their own time. Out of reach are exports, backups, forks
   *  (erase it there, too), and objects that the app holds. `sync` recognizes a history that still has the message.
   *
   *  Throws `invalid_option` for an index of no message, `store_corrupt` where the message cannot be read, and what the store
   *  throws: the message is whole then, but after `indeterminate`, when only a new call tells. */
  erase(index: number, options: { reason: string; signal?: AbortSignal }): Promise<void>;
  /** Begins a session with the context of this one, for a sub-agent: the same messages, settings and goal, and a log of
   *  its own with the messages that stand in this context; what a summary stands for stays here. Its offloads are copies:
   *  neither session changes the other from then on, nor does deleting one. Throws `conflict` when there is a session
   *  called `id` (`S3.10`). */
  fork(options?: { id?: string }): Promise<Session<M>>;
  /** The sessions that were begun from this one, oldest first. */
  children(): Promise<SessionInfo[]>;
  /** What `prepare` would do now. */
  plan(): Plan;
  /** `/context` (`S1.13`). */
  getContextUsage(): ContextUsage;
  /** Tells what the provider counted for the prompt of the last `prepare` (or, of a session that is never prepared, for the
   *  context without the answer): from then on the estimate of the whole prompt, which the trigger and `getContextUsage` go
   *  by, goes on from it. `usage` is a `Usage`, or the object that the provider or the AI SDK answered: tokens from the cache
   *  are told apart or included as each of them has it. `model` names one that is not the options'. What was learned is
   *  stored with the next change of the session and by `close`, and holds after reopening, `rewind` and compactions.
   *  `correction` in `getContextUsage()` explains it. A `tokenCounter` of the app is never corrected. Throws
   *  `invalid_option` when the usage does not say how long the prompt was; one that cannot be of that prompt is passed over
   *  with a `warning`. */
  recordUsage(usage: Usage | object, options?: { model?: string }): void;
  /** What the session is for. */
  readonly goal: Goal | undefined;
  /** Durable when it resolves. */
  setGoal(goal: Goal): Promise<void>;
  /** Takes over what the markers in a model's output say about the goal: `[CHECKPOINT] … - COMPLETED`,
   *  `[DECISION] …`, `[ARTIFACT] Created …`, at the start of a line (`S5.13`). */
  applyMarkers(modelOutput: string): Promise<Goal>;
  /** How far the context can be trusted after its compressions by a model of this size (`S5.11`). */
  reliability(): { score: number; warn: boolean };
  /** Pins the message with this index: word for word for ever (`S4.3`), also one that was summarised already. Durable
   *  when it resolves. */
  pin(index: number): Promise<void>;
  /** Rejects the pin that is proposed for the message with this index: what its constraints say holds no more, and from
   *  the next compaction on no summary holds it (`S4.3`). Durable when it resolves. */
  rejectPin(index: number): Promise<void>;
  /** The pins that are proposed and not answered, in the order of their messages (`S4.3`). */
  pinProposals(): PinProposal[];
  /** What every summary saved, with the use of the window before and after, as Markdown (`S4.4`); times are UTC. Empty
   *  when there is none yet. Never sent to a model. */
  sessionLog(): string;
  /** Whether the context fits as it is (`S5.12`). */
  validate(): Validation;
  /** The context by its parts, as it is now (`S5.1`). */
  getState(): ActiveContext<M>;
  /** Tokens that the next messages may take: what the window leaves after the answer's share; never below 0. */
  getAvailableTokens(): number;
  /** Takes messages out of the context, given by their `index` in `explain()`; the transcript keeps them, and so do
   *  `search` and `sync`. A call goes with its results: the indices of all that went are returned. Refused with
   *  `invalid_option` where a message is pinned, stands in a checkpoint, or the rest would break a rule of its provider
   *  (`S5.1`). */
  removeMessages(ids: readonly number[]): Promise<number[]>;
  /** Takes a snapshot of messages, checkpoints and goal: its id (`S5.2`). Durable when it resolves, small whatever the
   *  session's size, and never sent to a model. Default `recovery`. The newest 5 are kept. */
  snapshot(purpose?: "recovery" | "rollback"): Promise<string>;
  /** The snapshots that can be restored, oldest first. */
  snapshots(): Promise<SnapshotInfo[]>;
  /** Goes back to a snapshot: the context and the goal are exactly what they were. What was said since is in the context
   *  no more and `sync` expects it no more; transcript and `explain()` keep it, and a snapshot of it brings it back.
   *  Throws `not_found` for one that there is not, or not any more. */
  restore(id: string): Promise<void>;
  /** The summaries that stand in the context, oldest first (`S5.3`). */
  checkpoints(): CheckpointRecord[];
  /** Every checkpoint that was ever made, also those that another one stands for by now (`S5.3`). */
  checkpointRecords(): Promise<CheckpointRecord[]>;
  /** The session in numbers. */
  metadata(): SessionMetadata;
  /** Every message in order, as it was appended, whatever was compacted since: the same objects where the process holds
   *  them and they still are what was appended. As in `explain()`, those that a restore or a rewind left behind are among
   *  them. Read a page at a time; what is appended meanwhile is not part of it (`S5.3`). What the store lost is left out:
   *  `onGap` is told where, or else whoever listens to `dataloss`. */
  history(options?: { onGap?: (gap: Gap) => void }): AsyncIterable<M>;
  /** The session as an archive of JSON lines, for `importSession`: a line of metadata, then each message with its
   *  position, id, time and role, each change of the context, the snapshots, the checkpoints, the offloads. Read as fast
   *  as it is taken. It has all that the session has: keep it as you keep the conversation (`S3.9`). Where rows cannot be
   *  read it has a line of the kind `gap`, which `importSession` takes: the copy then has the same gap. */
  exportJsonl(): ReadableStream<Uint8Array>;
  /** The conversation to read: texts as they are, tools in fences, media named. No text in it can pose as a heading of
   *  the document (`S5.3`). Where the store lost a message, it says `[message 40 cannot be read]`. */
  exportMarkdown(): Promise<string>;
  /** Appends a turn of a trajectory, and compresses results when the whole has become too large (`S2.4`). */
  addTurn(turn: { thought: string; action: object; result: string }): Promise<void>;
  /** How full the context is, in characters (`S2.9`). */
  stats(): ReactStats;
  /** The context as a trajectory, whatever its format (`S2.9`). */
  exportTrajectory(): Trajectory;
  /** The fate of every message of the session. */
  explain(): LedgerEntry[];
  /** The text of an offload, or of what `search` found: characters `offset .. offset + limit`. A half of a surrogate pair
   *  that stands alone is none of Unicode's characters: it counts as one, and is U+FFFD here, as a provider would have it;
   *  `history` has the message as it was. */
  read(ref: string, range?: { offset?: number; limit?: number }): Promise<string>;
  /** The passages of the whole conversation that match best, best first: also of what was offloaded or summarised. `limit`
   *  is 10 by default. */
  search(query: string, options?: { limit?: number }): Promise<SearchHit[]>;
  /** Tools with which the model does both itself, in `format`, else in the session's own (name it while the session is
   *  empty). Their results are never offloaded. */
  tools<F extends Format = Format>(format?: F): RecallTools<F>;
  on<E extends keyof SessionEvents>(event: E, listener: (data: SessionEvents[E]) => void): () => void;
  /** Waits for what is under way, then releases the engine's memory. */
  close(): Promise<void>;
  /** Removes everything that the session stored. */
  delete(): Promise<void>;
}
