/** Types of `context-compactor/tokens`. */

import type { Format, Message } from "./messages.js";
import type { Estimator } from "./options.js";

/** A text, a message or a history. */
export type TokenInput = string | Message | readonly Message[];

export interface TokenOptions {
  /** How it is counted; default `calibrated`. */
  estimator?: Estimator;
  /** Of the messages; default: what they look like. */
  format?: Format;
  /** The model that it is counted for. */
  model?: string;
}

/** Estimated tokens, and how far that may be off. */
export interface TokenEstimate {
  tokens: number;
  /** About 99 of 100 texts have at least `low` and at most `high`. */
  low: number;
  high: number;
  /** The family of tokenizers that was counted for, as in `claude47`; none with `chars4`. */
  family?: "o200k" | "cl100k" | "claude3" | "claude47" | "gemini" | "llama3" | "qwen3";
  /** Of each role that there is; of a text none. */
  byRole: Partial<Record<"system" | "user" | "assistant" | "tool", number>>;
  byMessage: number[];
}
