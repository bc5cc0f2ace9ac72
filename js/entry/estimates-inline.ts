/** The estimates where the engine comes as code, which who does not call them does not need: a bundler leaves this file
 *  out. */

import { start } from "../engine.js";
import * as tokens from "../tokens.js";
import type { TokenEstimate, TokenInput, TokenOptions } from "../types/tokens.js";
import { bytes } from "../wasm/inline.js";

/**
 * Estimates the tokens of a text, a message or a history, for the tokenizer of `model`; without one, of OpenAI's models
 * since GPT-4o. Synchronous; its mean error is about 3 % with `model`. A lone surrogate counts as U+FFFD. Throws
 * `unknown_model`, with similar names, and `stage_unavailable` if the engine cannot be started.
 */
export function estimateTokens(input: TokenInput, options?: TokenOptions): number {
  start(bytes);
  return tokens.estimateTokens(input, options);
}

/**
 * Estimates tokens as `estimateTokens` does, and adds bounds, which hold for about 99 of 100 texts, and the tokens of
 * each role and message. Message framing and media are counted by rule, with an error of up to a half.
 */
export function estimateTokensDetailed(input: TokenInput, options?: TokenOptions): TokenEstimate {
  start(bytes);
  return tokens.estimateTokensDetailed(input, options);
}
