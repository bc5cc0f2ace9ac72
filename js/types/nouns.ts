/** The parts of a session: `session.context`, `.recall`, `.pins`, `.snapshots`, `.goal`, `.archive`. */

import type { Format, Usage } from "./messages.js";
import type { ContextUsage, LedgerEntry, PinProposal, Plan } from "./results.js";
import type { Gap, SearchHit, SessionInfo, Verified } from "./session.js";
import type { Checkpoint, ContextParts, Goal, SessionMetadata, SnapshotInfo, Validation } from "./state.js";
import type { Store } from "./store.js";
import type { RecallTools } from "./tools.js";

/** What the model sees now. */
export interface SessionContext<M> {
  /** The format that the messages are read as. `openai-chat` while the session is empty or its messages could be of several
   *  formats, unless the option `format` names one. */
  readonly format: Format;
  /** The context by its parts: system prompt, checkpoints, recent messages. */
  parts(): Promise<ContextParts<M>>;
  /** Tokens by category, the window and the threshold, as of the last call that read the store. */
  usage(): ContextUsage;
  /** Tokens that the next messages may take: the window less the context and the reserve for the answer; never below 0. */
  availableTokens(): number;
  /** Reports what the provider counted for the prompt of the last `prepare` (without `prepare`: for the context). From then
   *  on the estimate of the whole prompt starts from that count; the threshold and `usage()` follow it. `usage` is a
   *  `Usage`, or the usage object of the provider or the AI SDK. `options.model` names a model other than that of the
   *  session's options. The correction is stored with the next change of the session and by `close`; `usage().correction`
   *  explains it. With the option `tokenCounter` nothing is corrected. Throws `invalid_option` when the object does not say
   *  how long the prompt was. Counts that cannot be of that prompt are ignored, with the event `warning`. */
  recordUsage(usage: Usage | object, options?: { model?: string }): void;
  /** The fate of every message of the session, by index. */
  explain(): Promise<LedgerEntry[]>;
  /** What `prepare` would do now, with the tokens that it would free and its model calls. Changes nothing. */
  plan(): Promise<Plan>;
  /** The summaries in the context, oldest first. */
  checkpoints(): Checkpoint[];
  /** Whether the context fits the window as it is, and what would help when it does not. */
  validate(): Promise<Validation>;
  /** How far the context can be trusted after its summaries, for a model of this size: `score` from 0 to 1; `warn` when a
   *  new session would be better. */
  reliability(): { score: number; warn: boolean };
  /** Removes messages from the context, by their `index` in `explain()`; archive, `recall` and `sync` keep them. A tool call
   *  goes with its results. Resolves to the indices of all messages that were removed. Throws `invalid_option` when a
   *  message is pinned or part of a summary, or when the rest would break a rule of the provider. */
  remove(indices: readonly number[]): Promise<number[]>;
}

/** What is no longer in the context: for the app, and as tools for the model. */
export interface SessionRecall {
  /** The text behind a reference, of an offload or of a search hit: characters `offset` to `offset + limit`, by default all.
   *  A lone surrogate counts as one character and is returned as U+FFFD. Throws `not_found` for a reference that this
   *  session did not issue. */
  read(ref: string, range?: { offset?: number; limit?: number }): Promise<string>;
  /** The passages of the whole conversation that match best, best first, also of offloaded and summarized messages. `limit`
   *  is 10 by default. */
  search(query: string, options?: { limit?: number }): Promise<SearchHit[]>;
  /** Tools with which the model reads and searches itself: definitions for the request, and `handle` for its calls.
   *  `format` is the provider's, by default the session's (name it while the session is empty). Their results are
   *  never offloaded. */
  tools<F extends Format = Format>(format?: F): RecallTools<F>;
}

/** Messages that are kept verbatim forever. */
export interface SessionPins {
  /** Pins the message with this index, also one that was summarized already. Durable when it resolves. */
  add(index: number): Promise<void>;
  /** Rejects the proposed pin of the message with this index: its constraints no longer hold, and the next summary leaves
   *  them out. Durable when it resolves. */
  reject(index: number): Promise<void>;
  /** The proposed pins that were neither added nor rejected, in the order of their messages. */
  proposals(): PinProposal[];
}

/** States of the session to go back to. */
export interface SessionSnapshots {
  /** Takes a snapshot of messages, checkpoints and goal, and resolves to its id. Durable when it resolves, small whatever the
   *  size of the session, and never sent to a model. `purpose` is `recovery` by default. The newest 5 are kept. */
  take(purpose?: "recovery" | "rollback"): Promise<string>;
  /** The snapshots that can be restored, oldest first. */
  list(): Promise<SnapshotInfo[]>;
  /** Goes back to a snapshot: context and goal are as they were then. Later messages leave the context, and `sync` does not
   *  expect them; the archive keeps them, and a snapshot of them brings them back. Throws `not_found` for an unknown
   *  snapshot. */
  restore(id: string): Promise<void>;
  /** Goes back to just before message `index` was appended, to edit that message or to have it written again. A later summary
   *  is undone. `index` counts all messages of the archive, as `context.explain()` does, and must not split a tool call from
   *  its result. `append` and `sync` continue from there; the archive keeps the rest: rewind to a later index to restore it.
   *  The goal stays. Throws `invalid_option`, naming an index that works. */
  rewind(index: number): Promise<void>;
}

/** What the session is for. The goal is part of the system prompt and is never compressed. */
export interface SessionGoal {
  /** The goal, or `undefined`. */
  readonly current: Goal | undefined;
  /** Sets the goal. Durable when it resolves. */
  set(goal: Goal): Promise<void>;
  /** Updates the goal from markers at line starts of a model's output: `[CHECKPOINT] … - COMPLETED`, `[DECISION] …`,
   *  `[ARTIFACT] Created …`. Resolves to the new goal. */
  applyMarkers(modelOutput: string): Promise<Goal>;
}

/** Everything ever said in the session. */
export interface SessionArchive<M> {
  /** What a resolved `append` survives, as declared by the store: `synced` a power cut, `process` a crash, `none` nothing,
   *  not even the end of the page. A private window forgets all the same, and no page can detect one. */
  readonly durability: Store["caps"]["durable"];
  /** Whether the browser keeps the site's data when space runs out; when false there is a `warning` (`not_persisted`) after
   *  the first `append`. As of opening, and of the first `append`, when `indexedDbStore` asks the browser (`persist`).
   *  `undefined` until the browser answers, and with stores that no platform removes. Source: `navigator.storage.persisted()`. */
  readonly persisted: boolean | undefined;
  /** Removes what message `index` said, for good: a leaked secret, a request to delete. `index` counts all messages from 0, as
   *  `context.explain()` does; `reason` says why, and is kept. An empty message ("[erased]") takes its place in the context,
   *  the archive and exports, so that calls and results still pair; its fate is `dropped`, with the reason and the hash of
   *  what it was. Its offloads go, and so do sentences of summaries, snapshots and the goal that have a word, or four words
   *  in a row, that no other message has. Nothing can bring it back.
   *
   *  The call writes all that stays anew and resolves when the old rows are gone; `progress` has the stage `erase`. Stopped
   *  at any point, the message is whole or erased. Other handles on the session continue with the new rows. `fileStore`
   *  rewrites its journal at once and removes journals that it kept for `salvage`; a browser's database and a Durable Object
   *  overwrite the freed space in their own time. Out of reach are exports, backups, forks (erase it there, too), and
   *  objects that the app holds. `sync` recognizes a history that still has the message.
   *
   *  Throws `invalid_option` when there is no such message, `store_corrupt` when it cannot be read, and the errors of the
   *  store: then the message is whole, but after `indeterminate` only another call can tell. */
  erase(index: number, options: { reason: string; signal?: AbortSignal }): Promise<void>;
  /** Reads all that is stored of the session, at most 4 MiB at a time, and checks it: hashes of records, chains, references,
   *  views, snapshots, one fate for every message. Other calls continue meanwhile. `progress` has the stage `verify`. A
   *  problem in the stored data is not an error: `ok` is false. */
  verify(options?: { signal?: AbortSignal }): Promise<Verified>;
  /** The sessions that were begun from this one, oldest first. */
  children(): Promise<SessionInfo[]>;
  /** Every message in order, as it was appended, with those that a restore or a rewind left behind: the app's own objects
   *  while the process holds them unchanged. Read a page at a time; later appends are not part of it. A message that the
   *  store lost is left out and reported to `onGap`, or else by the event `data-loss`. */
  history(options?: { onGap?: (gap: Gap) => void }): AsyncIterable<M>;
  /** The whole session as JSON lines for `importSession`: metadata, each message with position, id, time and role, each
   *  change of the context, snapshots, checkpoints, offloads. Read as fast as it is consumed. It holds all that the session
   *  holds: protect it like the conversation. Rows that cannot be read become a line of kind `gap`, which `importSession`
   *  takes. */
  jsonl(): ReadableStream<Uint8Array>;
  /** The conversation for people: texts as they are, tools in fences, media by name. No text in it can pose as a heading of
   *  the document. A message that the store lost reads `[message 40 cannot be read]`. */
  markdown(): Promise<string>;
  /** The session in numbers, as of the last call that read the store. */
  metadata(): SessionMetadata;
  /** What every summary saved, with the use of the window before and after, as Markdown; times are UTC. Empty when there is
   *  none yet. Never sent to a model. */
  compactionLog(): string;
  /** Every checkpoint ever made, also those that another one replaced. */
  checkpoints(): Promise<Checkpoint[]>;
}
