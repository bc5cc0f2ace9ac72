/** The tokenizer for Cloudflare Workers, which compile no bytes. */

import engine from "../../core.wasm";
import wasm from "../../tokenizer.wasm";
import { bringFrom } from "../engine.js";
import { load, type Encoding, type Tokenizer } from "../tokenizer.js";

/** See `tokenizer-inline.ts`, which has the types of all. */
export function loadTokenizer(name: Encoding): Promise<Tokenizer> {
  bringFrom(() => engine);
  return load(name, () => Promise.resolve(wasm));
}
