/** Entry `context-compactor/tokens` for edge runtimes that import a compiled module by `?module`; the types of all are those of `tokens-inline.ts`. */

export { estimateTokens, estimateTokensDetailed, ready } from "../tokens.js";
export { loadTokenizer } from "./tokenizer-edge.js";
export type { Encoding, TokenCounter, Tokenizer, Vocabulary } from "../tokenizer.js";
export type { TokenEstimate, TokenInput, TokenOptions } from "../types/tokens.js";
