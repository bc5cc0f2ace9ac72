/** Types of `context-compactor/tokens`. */

import type { CustomFormat } from "./formats.js";
import type { Format, Message } from "./messages.js";
import type { Estimator } from "./options.js";

/** Something to count: a text, a message or a history. */
export type TokenInput = string | Message | readonly Message[];

/** Options of `estimateTokens` and `estimateTokensDetailed`. */
export interface TokenOptions {
  /** The method: `calibrated` (default) is fitted to real tokenizers, `chars4` is `round(characters / 4)`. */
  estimator?: Estimator;
  /** The format of the messages. Default: detected. */
  format?: Format | CustomFormat;
  /** The model to count for; an unknown name throws `unknown_model`, and one whose table is not loaded `not_ready`, until
   *  `ready({ model })` has loaded it. Default: OpenAI's models since GPT-4o, whose table is always there. */
  model?: string;
}

/** An estimate with bounds, by role and by message. */
export interface TokenEstimate {
  /** The estimate, in tokens. */
  tokens: number;
  /** Lower bound: about 99 of 100 texts have from `low` to `high` tokens. */
  low: number;
  /** Upper bound. */
  high: number;
  /** The family of tokenizers that was estimated; absent with `chars4`. */
  family?: "o200k" | "cl100k" | "claude3" | "claude47" | "gemini" | "llama3" | "qwen3";
  /** Tokens of the messages of each role; empty for a text. */
  byRole: Partial<Record<"system" | "user" | "assistant" | "tool", number>>;
  /** Tokens of each message, in order; of a text, one number. */
  byMessage: number[];
}
