import type { ContextUsage, Edit, LedgerEntry, Message, Progress } from "../engine.js";

export type Fate = LedgerEntry["fate"];
export type SourceName = "invoicing-run" | "queue-triage" | "own";

/** Context after one step. `x` is the number of messages appended so far. */
export interface Sample {
  x: number;
  used: number;
  /** Tokens of all messages so far: what would be sent without compaction. */
  without: number;
  threshold: number;
  max: number;
  categories: { name: string; tokens: number }[];
}

/** One rewrite of the context, with the messages that the model saw before and after it. */
export interface Compaction {
  number: number;
  x: number;
  kind: "offload" | "summary";
  manual: boolean;
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

export interface RunState {
  phase: "opening" | "ready" | "failed";
  error: string | undefined;
  id: string;
  sourceName: SourceName;
  contextWindow: number;
  source: readonly Message[];
  /** How many messages of the source are in the session. */
  cursor: number;
  log: readonly Message[];
  /** What the model would be sent now. */
  context: readonly Message[];
  /** Tokens of each message of `log`. */
  weights: readonly number[];
  samples: readonly Sample[];
  compactions: readonly Compaction[];
  offloads: readonly Offload[];
  ledger: readonly LedgerEntry[];
  usage: ContextUsage | undefined;
  playing: boolean;
  speed: number;
  /** The step that is looked at; `undefined` follows the run. */
  view: number | undefined;
  busy: { label: string; progress: Progress | undefined } | undefined;
  /** `x` at which the history without compaction passed the window. */
  overflowAt: number | undefined;
  chat: readonly ChatItem[];
}
