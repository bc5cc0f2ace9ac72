/** The parts of a session: `session.context`, `.recall`, `.pins`, `.snapshots`, `.goal`, `.archive`. */

import type { CustomFormat } from "./formats.js";
import type { Format, NewMessageAmong, Usage } from "./messages.js";
import type { CompactionPreview, ContextUsage, LedgerEntry, PinProposal, Plan } from "./results.js";
import type { Gap, RecallPart, SearchHit, SessionInfo, Verified } from "./session.js";
import type { Checkpoint, ContextParts, Goal, SessionMetadata, SnapshotInfo, Validation } from "./state.js";
import type { Store } from "./store.js";
import type { RecallTools } from "./tools.js";

/** The context: the messages that the model sees now, and how much of the window they take. */
export interface SessionContext<M, N = NewMessageAmong<M>> {
  /** The format of the session's messages; of a format of your own, its `base`. Until messages decide it, the option `format`,
   *  by default `openai-chat`. */
  readonly format: Format;
  /** The context by its parts: system prompt, checkpoints, recent messages. */
  parts(): Promise<ContextParts<M, N>>;
  /** Tokens by category, the window and the threshold. Synchronous: as of the last call that read the store. */
  usage(): ContextUsage;
  /** Tokens that the next messages may take: the window less the context and the reserve for the answer; never below 0. */
  availableTokens(): number;
  /** Reports what the provider counted for the prompt of the last `prepare` (without `prepare`: for the context). From then
   *  on the estimate of the whole prompt starts from that count; the threshold and `usage()` follow it. `usage` is a
   *  `Usage`, or the usage object of the provider or the AI SDK. `options.model` names a model other than that of the
   *  session's options. The correction is stored with the next change of the session and by `close`; `usage().correction`
   *  explains it. With the option `tokenCounter` nothing is corrected. Each call adds what it cost to what `limits.usd` counts. Throws `invalid_option` when the object does not say
   *  how long the prompt was. Counts that cannot be of that prompt are ignored, with the event `warning`. */
  recordUsage(usage: Usage | object, options?: { model?: string }): void;
  /** Where every message of the session is now, by index: verbatim, summarized, offloaded, reduced or dropped. */
  explain(): Promise<LedgerEntry[]>;
  /** Previews the next `prepare`: its steps, the tokens they would free, its model calls and their cost. Calls no model
   *  and changes nothing. */
  plan(): Promise<Plan>;
  /** The summaries in the context, oldest first. */
  checkpoints(): Checkpoint[];
  /** Checks whether the context fits the window as it is, and suggests what would help if it does not. Changes nothing. */
  validate(): Promise<Validation>;
  /** Estimates how reliable the context is after its summaries. `score`, 0..1, falls with every summary, and is lower for
   *  smaller models; `warn`: a new session would be better. The size is read from the name of the summarizer's model
   *  (`llama3:7b`), else 7 billion. */
  reliability(): { score: number; warn: boolean };
  /** Removes messages from the context, by their `index` in `explain()`, a tool call always with its results. The archive,
   *  `recall` and `sync` keep them. Resolves to the indices of all removed messages. Rejects with `invalid_option` if a
   *  message is pinned or part of a summary, or if the rest would break a rule of the provider. */
  remove(indices: readonly number[]): Promise<number[]>;
}

/** Access to messages that are no longer in the context, for the app and as tools for the model. */
export interface SessionRecall {
  /** Reads the text of a reference (`LedgerEntry.ref`, `SearchHit.ref`): characters `offset` (default 0) to `offset +
   *  limit` (default: the end). Of an image or a document that left the prompt it says what it was. A lone surrogate counts as one character and is returned as U+FFFD. Rejects with
   *  `not_found` for a reference that this session did not issue; with option `recall: { scope: "all" }`, one that no session of
   *  its store issued. */
  read(ref: string, range?: { offset?: number; limit?: number }): Promise<string>;
  /** Searches the words of `query` in the whole conversation, offloaded and summarized messages included. Resolves to at most
   *  `limit` passages (default 10), best match first. For a question (it ends in `?`) old messages count as much as new ones,
   *  and what ranks a message is its best passage. With option `recall: { scope: "all" }` it also searches the other sessions of
   *  the store; their hits have `session`. */
  search(query: string, options?: { limit?: number }): Promise<SearchHit[]>;
  /** Resolves to what a checkpoint replaces, in order: the checkpoints that were in the context when it was made, which can be
   *  expanded in turn, and the messages that none of those replaces. `checkpoint` is an id of `context.checkpoints()` or
   *  `archive.checkpoints()`. A message that the store lost is left out, with the event `data-loss`. Rejects with `not_found`
   *  for a checkpoint that this session did not make. */
  expand(checkpoint: string): Promise<RecallPart[]>;
  /** Returns the tools `recall_read` and `recall_search` for the model: definitions for the request, and `handle`, which
   *  answers its calls. With option `handoff` also `new_context`. `format` is that of the request; default: `context.format` (name it while the session is empty).
   *  Their results are never offloaded. */
  tools<F extends Format = Format>(format?: F | CustomFormat): RecallTools<F>;
}

/** Messages that are kept verbatim forever. */
export interface SessionPins {
  /** Pins the message with this index (as `context.explain()` counts), also one that a summary has replaced. Durable when
   *  it resolves. Rejects with `invalid_option` for an index without a message. */
  add(index: number): Promise<void>;
  /** Rejects the proposed pin of the message with this index (as `context.explain()` counts): its constraints no longer
   *  apply, and the next summary omits them. Durable when it resolves. Rejects with `invalid_option` for an index without
   *  a message. */
  reject(index: number): Promise<void>;
  /** The proposed pins that were neither added nor rejected, in the order of their messages. */
  proposals(): Promise<PinProposal[]>;
}

/** States of the session to go back to. */
export interface SessionSnapshots {
  /** Takes a snapshot of context and goal, and resolves to its id. Durable when it resolves; small, because it refers to
   *  the log. `purpose`: your label, default `recovery`. The newest 5 are kept (option `advanced.maxSnapshots`). */
  take(purpose?: "recovery" | "rollback"): Promise<string>;
  /** Lists the snapshots that can be restored, oldest first. */
  list(): Promise<SnapshotInfo[]>;
  /** Restores context and goal as they were at a snapshot. Later messages leave the context, and `sync` does not expect
   *  them; the archive keeps them, and restoring a later snapshot restores them. Rejects with `not_found` for an unknown
   *  id. */
  restore(id: string): Promise<void>;
  /** Restores the context to just before message `index` was appended, to edit or regenerate that message; later summaries
   *  are undone. `index` counts all messages of the archive, as `context.explain()` does, and must not split a tool call
   *  from its result. `append` and `sync` continue from there. The archive keeps the rest: rewind to a later index to
   *  restore it. The goal stays. Rejects with `invalid_option`, whose message names an index that works. */
  rewind(index: number): Promise<void>;
  /** Shows what `session.compact()` would do now: its steps, their cost, and what becomes of each message. Asks no model and
   *  changes nothing; a summary counts with its target length. */
  preview(): Promise<CompactionPreview>;
  /** Undoes the last compaction, whenever it was: the messages that it replaced or changed are in the context again,
   *  verbatim, before those appended since. Call it again to undo the compaction before that. Snapshots, pins and the goal
   *  stay. The next `prepare` compacts again if the context is over the threshold. Rejects with `not_found` when nothing
   *  was compacted, or nothing since the last `restore`, `rewind`, `context.remove`, fork or import. */
  undo(): Promise<void>;
}

/** The goal of a session: part of the system prompt that `prepare` returns, and never compressed. */
export interface SessionGoal {
  /** The goal, or `undefined` when none was set. */
  readonly current: Goal | undefined;
  /** Sets or replaces the goal. Durable when it resolves. */
  set(goal: Goal): Promise<void>;
  /** Updates the goal from markers at the start of lines of a model's output: `[CHECKPOINT] … - COMPLETED`, `[DECISION] …`,
   *  `[ARTIFACT] Created …`. Resolves to the new goal. Durable when it resolves. */
  applyMarkers(modelOutput: string): Promise<Goal>;
}

/** The archive of a session: every message ever appended, whatever the context has. */
export interface SessionArchive<M> {
  /** What a resolved `append` survives, as declared by the store: `synced` a power cut, `process` a crash, `none` nothing,
   *  not even the end of the page. A private window deletes its data when it is closed, which no page can detect. */
  readonly durability: Store["caps"]["durable"];
  /** Whether the browser keeps the site's data when space runs out, by `navigator.storage.persisted()`. Read at opening,
   *  and after the first `append`, when `indexedDbStore` asks the browser for it (`persist`); if false then, a `warning`
   *  (`not_persisted`) is emitted. `undefined` until the browser answers, and with stores that no platform evicts. */
  readonly persisted: boolean | undefined;
  /** Deletes the content of message `index` permanently, for example a leaked secret. `index` counts all messages from 0,
   *  as `context.explain()` does; `reason` is stored. An empty message ("[erased]") replaces it in the context, the
   *  archive and exports, so that tool calls keep their results; `context.explain()` lists it as `dropped`, with the
   *  reason and the SHA-256 of the message. Its stored texts are deleted, and so are sentences of summaries, snapshots and
   *  the goal with a word, or four consecutive words, that no other message has.
   *
   *  The call rewrites what remains and resolves when the old rows are deleted; event `progress` has the stage `erase`. If
   *  it is interrupted, the message is either whole or erased. Other handles on the session continue with the new rows.
   *  `fileStore` rewrites its journal at once and deletes the journals that it kept for `salvage`; a browser's database
   *  and a Durable Object overwrite the freed space later. Not reached: exports, backups, forks (erase it there, too), and
   *  the app's own objects. `sync` recognizes a history that still has the message.
   *
   *  Rejects with `invalid_option` if there is no such message, `store_corrupt` if it cannot be read, and the errors of
   *  the store. Then the message is whole; only after `indeterminate` it may be erased: call again. */
  erase(index: number, options: { reason: string; signal?: AbortSignal }): Promise<void>;
  /** Reads everything stored of the session, at most 4 MiB at a time, and checks it: hashes, references, contexts,
   *  snapshots, and that every message is accounted for once. Other calls continue meanwhile; event `progress` has the
   *  stage `verify`. A problem in the stored data is not thrown: `ok` is false. Rejects with `aborted` after `signal`. */
  verify(options?: { signal?: AbortSignal }): Promise<Verified>;
  /** Lists the sessions that were begun from this one, by `fork` or the option `parent`, oldest first. */
  children(): Promise<SessionInfo[]>;
  /** Iterates over every message in the order of appending, including those that a restore or a rewind removed from the
   *  context. They are the app's own objects, as long as these are unchanged in memory, else equal copies. Read in pages;
   *  messages appended later are not included. A message that the store lost is left out and reported to `onGap`, by
   *  default as event `data-loss`. */
  history(options?: { onGap?: (gap: Gap) => void }): AsyncIterable<M>;
  /** Exports the whole session as JSON lines for `importSession`: metadata, each message with position, id, time and role,
   *  each change of the context, snapshots, checkpoints, stored texts. Read as fast as it is consumed. It contains the
   *  whole conversation: protect it likewise. Rows that cannot be read become a line of kind `gap`, which `importSession`
   *  accepts. */
  jsonl(): ReadableStream<Uint8Array>;
  /** Exports the conversation as Markdown for people: texts as they are, tool calls and results in code fences, media by
   *  name. Headings in messages cannot be mistaken for those of the document. A message that the store lost reads
   *  `[message 40 cannot be read]`. */
  markdown(): Promise<string>;
  /** The session in numbers, as of the last call that read the store. */
  metadata(): SessionMetadata;
  /** Lists, in Markdown, each summary with the tokens it saved and the use of the window before and after; times are UTC.
   *  Empty before the first summary. */
  compactionLog(): string;
  /** Lists every checkpoint ever made, oldest first, including those that a later one replaced. */
  checkpoints(): Promise<Checkpoint[]>;
}
