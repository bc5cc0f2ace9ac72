/** The tokenizer where its module comes as code, which every bundler can load apart. */

import { bringFrom } from "../engine.js";
import { compiled } from "../module.js";
import { load, type Encoding, type Tokenizer } from "../tokenizer.js";

/**
 * The tokenizer of an encoding, which counts exactly. Its module (90 KB) and its vocabulary (o200k_base 1.2 MB, cl100k_base
 * 0.6 MB; a little more than half of that as servers send them) are parts of the package, loaded with the first call for each.
 *
 * Rejects with `invalid_option` for another name, with `not_found` when they could not be loaded.
 */
export function loadTokenizer(name: Encoding): Promise<Tokenizer> {
  bringFrom(() => compiled(import("../wasm/inline.js")));
  return load(name, () => compiled(import("../wasm/tokenizer-inline.js")));
}
