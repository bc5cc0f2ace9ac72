/** A session's goal, context, checkpoints and snapshots. */

import type { Format, Message, NewMessageAmong } from "./messages.js";

/** The goal of a session. It is part of the system prompt, is never compressed, and guides summaries. */
export interface Goal {
  /** Your name for the goal. If a session already has a goal of this `id`, the option `goal` changes nothing. */
  id: string;
  /** The goal in a sentence or more. */
  description: string;
  /** How important the goal is. */
  priority: "low" | "medium" | "high";
  /** Whether the goal is being worked on: only an `active` one is part of the system prompt. */
  status: "active" | "paused" | "completed";
  /** Steps on the way, in order. `completedAt`: ms since 1970. */
  checkpoints: { description: string; status: "pending" | "in-progress" | "completed"; completedAt?: number }[];
  /** Decisions with their reasons. `locked`: not to be changed any more. */
  decisions: { id: string; description: string; rationale: string; locked: boolean }[];
  /** Files that the work created, changed or deleted. */
  artifacts: { type: "file"; path: string; action: "created" | "modified" | "deleted" }[];
}

/** What a compaction of a history that the app keeps goes on from. It holds summaries and other parts of the prompt, and no
 *  messages of the app but those that a summary quotes. JSON, and only for this library to read. */
export interface State {
  /** Version of its form. */
  v: number;
  /** The messages' format. */
  format: Format;
  /** With option `state.key`: the signature, in hex. */
  signature?: string;
  [field: string]: unknown;
}

/** How detailed a checkpoint is: 1 compact, 2 moderate, 3 detailed. */
export type Level = 1 | 2 | 3;

/** Whether the context fits the window. */
export interface Validation {
  /** `tokens` is at most `limit`. */
  valid: boolean;
  /** Tokens of the context, with system prompt, tools and goal. */
  tokens: number;
  /** The most tokens that fit: the window less the reserve for the answer. */
  limit: number;
  /** Tokens above `limit`; absent when the context fits. */
  overage?: number;
  /** Why the context does not fit, for people. */
  message?: string;
  /** Ways to make the context fit, cheapest first. */
  suggestions?: string[];
}

/** A summary in the context. */
export interface Checkpoint {
  /** Its id, `cp_…`, as in `LedgerEntry.checkpoint`. */
  id: string;
  /** When it was made, in ms since 1970. */
  timestamp: number;
  /** Indices of the messages that it replaces: the first, and the one after the last. `[0, 0]` in a fork, for a checkpoint of
   *  the parent. */
  messageRange: [number, number];
  /** Tokens of the messages that it replaces. */
  originalTokens: number;
  /** Those of `originalTokens` that decided its level: without the messages that it quotes. 0 if an earlier release made
   *  it. */
  countedTokens: number;
  /** Tokens of the checkpoint. */
  compressedTokens: number;
  /** `compressedTokens` / `originalTokens`. */
  compressionRatio: number;
  /** How detailed it is. In preset `checkpoint`, and with the option `summarize.detail`. */
  level?: Level;
  /** How many compactions the session had before this one. */
  number: number;
}

/** A snapshot that can be restored. It is not a message: appending one is the error `invalid_message`. */
export interface SnapshotInfo {
  /** For `snapshots.restore(id)`. */
  id: string;
  /** As given to `snapshots.take`. `emergency`: the session took it before an emergency compaction. */
  purpose: "recovery" | "rollback" | "emergency";
  /** When it was taken, in ms since 1970. */
  timestamp: number;
  /** Messages in its context, checkpoints included. */
  messageCount: number;
  /** Checkpoints in its context. */
  checkpointCount: number;
  /** Tokens of its context. */
  tokens: number;
  /** The goal at that time. */
  goal?: Goal;
}

/** The context by its parts, in this order: system prompt, checkpoints, recent messages. The object and its lists are
 *  frozen; the messages are the app's own. */
export interface ContextParts<M = Message, N = NewMessageAmong<M>> {
  /** The session's system prompt, without the goal. */
  readonly systemPrompt?: string;
  /** The summaries in the context, oldest first. */
  readonly checkpoints: readonly Readonly<Checkpoint>[];
  /** All other messages of the context, without those of the system. */
  readonly recentMessages: readonly (M | N)[];
  /** Tokens. `system`: of the system prompt, tools and goal. `checkpoints` and `recent`: of those lists. `total`: of all. */
  readonly tokenCount: Readonly<{ system: number; checkpoints: number; recent: number; total: number }>;
}

/** A session in numbers. */
export interface SessionMetadata {
  /** When the session was created, in ms since 1970. */
  startTime: number;
  /** When the session last changed, in ms since 1970. */
  lastUpdate: number;
  /** Messages ever appended. */
  totalMessages: number;
  /** Tokens of all of them, as the session counts. */
  totalTokens: number;
  /** Summaries of the history so far. */
  compressionCount: number;
}
