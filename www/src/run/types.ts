import type { ContextUsage, Edit, LedgerEntry, Message, Preset, Progress } from "../engine.js";

export type Fate = LedgerEntry["fate"];
export type SourceName = "invoicing-run" | "queue-triage" | "own";

/** What a run is begun with. */
export interface Setup {
  sourceName: SourceName;
  contextWindow: number;
  preset: Preset;
  /** Only with `balanced`. */
  economy: boolean;
}

/** Context after one step. `x` is the number of messages appended so far. */
export interface Sample {
  x: number;
  used: number;
  /** Tokens of all messages so far: what would be sent without compaction. */
  without: number;
  /** Tokens at which the next compaction comes. */
  trigger: number;
  categories: { name: string; tokens: number }[];
}

/** Messages that a compaction took out of the context, all or in part. */
export interface Left {
  fate: Fate;
  messages: number;
  tokens: number;
}

/** One rewrite of the context, with the messages that the model saw before and after it. */
export interface Compaction {
  number: number;
  x: number;
  kind: "offload" | "summary";
  manual: boolean;
  /** Why it came. */
  why: string;
  /** Tokens at which it comes at the latest. */
  trigger: number;
  /** Tokens of the provider's cache that are written again, since something before them changed. */
  rewritten: number;
  left: Left[];
  before: Message[];
  after: Message[];
  previousTokens: number;
  tokensAfter: number;
  edits: Edit[];
  deleted: string[];
  summary?: string;
  llmCalls: number;
  durationMs: number;
  reason?: string;
  /** Broken rules of the wire format after it: none. */
  problems: number;
  /** Fates of the messages at this point, so that earlier steps can be looked at. */
  ledger: LedgerEntry[];
}

export interface Offload {
  ref: string;
  /** Index of the message whose result it holds. */
  index: number;
  /** The call that the result answers. */
  callId: string;
  sha256?: string;
  /** `x` at which it was stored. */
  x: number;
  retired: boolean;
}

export interface ChatItem {
  from: "user" | "command" | "model" | "note" | "info";
  tone?: "ok" | "idle" | "error";
  text: string;
}

/** A message of the session: from the source by index, or typed into the chat. */
export type LogEntry = { source: number } | { own: Message };

export interface RunState extends Setup {
  phase: "opening" | "ready" | "failed";
  error: string | undefined;
  id: string;
  source: readonly Message[];
  /** How many messages of the source are in the session. */
  cursor: number;
  log: readonly Message[];
  /** What the model would be sent now. */
  context: readonly Message[];
  /** Tokens of each message of `log`. */
  weights: readonly number[];
  /** Tokens of each message of `source`. */
  sourceWeights: readonly number[];
  samples: readonly Sample[];
  compactions: readonly Compaction[];
  offloads: readonly Offload[];
  ledger: readonly LedgerEntry[];
  usage: ContextUsage | undefined;
  /** Why nothing left the context at the trigger, where nothing did. */
  idle: string | undefined;
  playing: boolean;
  speed: number;
  /** The step that is looked at; `undefined` follows the run. */
  view: number | undefined;
  busy: { label: string; progress: Progress | undefined } | undefined;
  chat: readonly ChatItem[];
}
