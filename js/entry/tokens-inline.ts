/** Entry `context-compactor/tokens`: plain JavaScript, but for the tokenizer, which comes when it is asked for. */

export { estimateTokens, estimateTokensDetailed, ready } from "../tokens.js";
export { loadTokenizer } from "./tokenizer-inline.js";
export type { Encoding, TokenCounter, Tokenizer, Vocabulary } from "../tokenizer.js";
export type { TokenEstimate, TokenInput, TokenOptions } from "../types/tokens.js";
