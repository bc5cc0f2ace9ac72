/** The tokenizer for edge runtimes that import a compiled module by `?module`. */

import wasm from "../../tokenizer.wasm?module";
import { type Encoding, load, type Tokenizer, type Vocabulary } from "../tokenizer.js";

/** See `tokenizer-inline.ts`, which has the types of all. */
export function loadTokenizer(vocabulary: Encoding | Vocabulary | Promise<Vocabulary>): Promise<Tokenizer> {
  return load(vocabulary, () => Promise.resolve(wasm));
}
