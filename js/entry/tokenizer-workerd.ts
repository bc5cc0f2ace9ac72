/** The tokenizer for Cloudflare Workers, which compile no bytes. */

import wasm from "../../tokenizer.wasm";
import { load, type Encoding, type Tokenizer } from "../tokenizer.js";

/** See `tokenizer-inline.ts`, which has the types of all. */
export function loadTokenizer(name: Encoding): Promise<Tokenizer> {
  return load(name, () => Promise.resolve(wasm));
}
