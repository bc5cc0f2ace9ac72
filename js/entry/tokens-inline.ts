/** Entry `context-compactor/tokens` where the engine comes as code: at once for estimates, else when it is needed. */

import { bringFrom } from "../engine.js";
import { compiled } from "../module.js";
import * as tokens from "../tokens.js";

export { estimateTokens, estimateTokensDetailed } from "./estimates-inline.js";
export { loadTokenizer } from "./tokenizer-inline.js";
export type { Encoding, TokenCounter, Tokenizer } from "../tokenizer.js";
export type { TokenEstimate, TokenInput, TokenOptions } from "../types/tokens.js";

/**
 * Starts the engine for estimates without blocking the thread. Optional: else the first estimate starts it synchronously.
 * Rejects with `stage_unavailable` if it cannot be started, and with `unknown_model`, with similar names, for an unknown
 * `model`.
 */
export function ready(options?: { model?: string }): Promise<void> {
  bringFrom(() => compiled(import("../wasm/inline.js")));
  return tokens.ready(options);
}
