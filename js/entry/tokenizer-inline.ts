/** The tokenizer where its module comes as code, which every bundler can load apart. */

import { bringFrom } from "../engine.js";
import { compiled } from "../module.js";
import { load, type Encoding, type Tokenizer } from "../tokenizer.js";

/**
 * Loads the tokenizer of an encoding, which counts exactly. Its module (90 KB) and its vocabulary (o200k_base 1.2 MB,
 * cl100k_base 0.6 MB; about half of that compressed) are files of this package, loaded with the first call for each.
 *
 * Rejects with `invalid_option` for another name, and with `not_found` if a file could not be loaded.
 */
export function loadTokenizer(name: Encoding): Promise<Tokenizer> {
  bringFrom(() => compiled(import("../wasm/inline.js")));
  return load(name, () => compiled(import("../wasm/tokenizer-inline.js")));
}
