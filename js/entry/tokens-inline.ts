/** Entry `context-compactor/tokens` where the engine comes as code: at once for estimates, else when it is needed. */

import { bringFrom } from "../engine.js";
import { compiled } from "../module.js";
import * as tokens from "../tokens.js";

export { estimateTokens, estimateTokensDetailed } from "./estimates-inline.js";
export { loadTokenizer } from "./tokenizer-inline.js";
export type { Encoding, TokenCounter, Tokenizer } from "../tokenizer.js";
export type { TokenEstimate, TokenInput, TokenOptions } from "../types/tokens.js";

/**
 * Starts what estimates for `model` need (without a name: for any), without blocking the thread. It need not be called: the first
 * estimate does the same at once. Rejects with `stage_unavailable` where it cannot be started, and with `unknown_model`, which
 * names the nearest, for a name that says nothing.
 */
export function ready(options?: { model?: string }): Promise<void> {
  bringFrom(() => compiled(import("../wasm/inline.js")));
  return tokens.ready(options);
}
