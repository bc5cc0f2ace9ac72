/** The estimates where the engine comes as code, which who does not call them does not need: a bundler leaves this file out. */

import { start } from "../engine.js";
import * as tokens from "../tokens.js";
import type { TokenEstimate, TokenInput, TokenOptions } from "../types/tokens.js";
import { bytes } from "../wasm/inline.js";

/**
 * Estimated tokens of a text, a message or a history, by the tokenizer of `model`'s family; without a name, by OpenAI's since
 * GPT-4o. Throws `unknown_model`, with the names nearest to it, for one that says nothing. A lone surrogate counts as U+FFFD.
 */
export function estimateTokens(input: TokenInput, options?: TokenOptions): number {
  start(bytes);
  return tokens.estimateTokens(input, options);
}

/**
 * The same with bounds, which hold for about 99 of 100 texts, and by role and message. A text has no roles. Frames and media are
 * counted by rule, which may be half of it off; for `chars4` the bounds are as wide as that is.
 */
export function estimateTokensDetailed(input: TokenInput, options?: TokenOptions): TokenEstimate {
  start(bytes);
  return tokens.estimateTokensDetailed(input, options);
}
