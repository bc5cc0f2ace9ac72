/** A session's goal, context, checkpoints and snapshots. */

import type { Message, NewMessageAmong } from "./messages.js";

/** What a session is for (`S5.13`). Never compressed: it stands in the system prompt and guides summaries. */
export interface Goal {
  id: string;
  description: string;
  priority: "low" | "medium" | "high";
  status: "active" | "paused" | "completed";
  checkpoints: { description: string; status: "pending" | "in-progress" | "completed"; completedAt?: number }[];
  decisions: { id: string; description: string; rationale: string; locked: boolean }[];
  artifacts: { type: "file"; path: string; action: "created" | "modified" | "deleted" }[];
}

/** How detailed a checkpoint is: 1 compact, 2 moderate, 3 detailed (`S5.7`). */
export type Level = 1 | 2 | 3;

/** Whether the context fits (`S5.12`). */
export interface Validation {
  valid: boolean;
  tokens: number;
  /** The most that fits. */
  limit: number;
  /** Tokens too many. */
  overage?: number;
  message?: string;
  /** What to do about what the context is made of, what costs least first. */
  suggestions?: string[];
}

/** A summary that stands in the context (`S5.3`). */
export interface Checkpoint {
  id: string;
  /** ms since 1970. */
  timestamp: number;
  /** Indices of the messages that it stands for: from the first to behind the last; 0 to 0 when a fork took it over. */
  messageRange: [number, number];
  originalTokens: number;
  /** Those of them that decided its level: without the messages that it quotes. 0 where an earlier release did not note it. */
  countedTokens: number;
  compressedTokens: number;
  /** Compressed to original. */
  compressionRatio: number;
  level?: Level;
  /** Compressions of the session before it. */
  number: number;
}

/** A snapshot that can be restored (`S5.2`). It is no message: handed over as one it is refused (`S5.4`). */
export interface SnapshotInfo {
  id: string;
  /** `emergency`: taken by the session itself before a step that was to make a prompt fit (`S5.15`). */
  purpose: "recovery" | "rollback" | "emergency";
  /** ms since 1970. */
  timestamp: number;
  /** Messages in its context. */
  messageCount: number;
  /** Checkpoints among them. */
  checkpointCount: number;
  /** Tokens of its context. */
  tokens: number;
  goal?: Goal;
}

/** What the model sees, by its parts (`S5.1`): system prompt, checkpoints, recent messages, in this order. The object
 *  and its lists are frozen; the messages are the app's own. */
export interface ContextParts<M = Message> {
  /** The session's own, without the goal. */
  readonly systemPrompt?: string;
  readonly checkpoints: readonly Readonly<Checkpoint>[];
  /** All messages that are neither the system's nor a checkpoint's. */
  readonly recentMessages: readonly (M | NewMessageAmong<M>)[];
  /** Tokens: of the system prompt with tools and goal, of the checkpoints, of the rest, and of all. */
  readonly tokenCount: Readonly<{ system: number; checkpoints: number; recent: number; total: number }>;
}

/** A session in numbers (`S5.3`). Times are in ms since 1970. */
export interface SessionMetadata {
  startTime: number;
  lastUpdate: number;
  totalMessages: number;
  totalTokens: number;
  /** Summaries of the history so far. */
  compressionCount: number;
}
