/** Entry `context-compactor/tokens` for edge runtimes that import a compiled module by `?module`; the types of all are those of `tokens-inline.ts`. */

import wasm from "../../core.wasm?module";
import { bringFrom, start } from "../engine.js";
import * as tokens from "../tokens.js";
import type { TokenEstimate, TokenInput, TokenOptions } from "../types/tokens.js";

export { loadTokenizer } from "./tokenizer-edge.js";
export type { Encoding, TokenCounter, Tokenizer } from "../tokenizer.js";
export type { TokenEstimate, TokenInput, TokenOptions } from "../types/tokens.js";

export function estimateTokens(input: TokenInput, options?: TokenOptions): number {
  start(wasm);
  return tokens.estimateTokens(input, options);
}

export function estimateTokensDetailed(input: TokenInput, options?: TokenOptions): TokenEstimate {
  start(wasm);
  return tokens.estimateTokensDetailed(input, options);
}

export function ready(options?: { model?: string }): Promise<void> {
  bringFrom(() => wasm);
  return tokens.ready(options);
}
