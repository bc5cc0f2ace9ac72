/** Entry `context-compactor/tokens` for Cloudflare Workers, which compile no bytes; the types of all are those of `tokens-inline.ts`. */

export { estimateTokens, estimateTokensDetailed, ready } from "../tokens.js";
export { loadTokenizer } from "./tokenizer-workerd.js";
export type { Encoding, TokenCounter, Tokenizer, Vocabulary } from "../tokenizer.js";
export type { TokenEstimate, TokenInput, TokenOptions } from "../types/tokens.js";
