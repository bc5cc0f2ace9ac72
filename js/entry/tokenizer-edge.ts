/** The tokenizer for edge runtimes that import a compiled module by `?module`. */

import engine from "../../core.wasm?module";
import wasm from "../../tokenizer.wasm?module";
import { bringFrom } from "../engine.js";
import { load, type Encoding, type Tokenizer } from "../tokenizer.js";

/** See `tokenizer-inline.ts`, which has the types of all. */
export function loadTokenizer(name: Encoding): Promise<Tokenizer> {
  bringFrom(() => engine);
  return load(name, () => Promise.resolve(wasm));
}
