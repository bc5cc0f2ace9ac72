/** The tokenizer where its module comes as code, which every bundler can load apart. */

import { load, type Encoding, type Tokenizer } from "../tokenizer.js";

/**
 * The tokenizer of an encoding, which counts exactly. Its module (27 KB) and its vocabulary (o200k_base 1.6 MB, cl100k_base
 * 0.8 MB; half of that or less as servers send it) are parts of the package, loaded with the first call for each.
 *
 * Rejects with `invalid_option` for another name, with `not_found` when they could not be loaded.
 */
export function loadTokenizer(name: Encoding): Promise<Tokenizer> {
  return load(name, async () => WebAssembly.compile((await import("../wasm/tokenizer-inline.js")).bytes));
}
