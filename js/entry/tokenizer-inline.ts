/** The tokenizer where its module comes as code. */

import { compiled } from "../module.js";
import type { Encoding, Tokenizer, Vocabulary } from "../tokenizer.js";

/**
 * Loads the tokenizer of a vocabulary, which counts exactly. The vocabularies (o200k_base 1.2 MB, cl100k_base 0.6 MB; about
 * half of that compressed) are a package of their own: `npm install context-compactor-vocabularies`, then
 * `loadTokenizer(import("context-compactor-vocabularies/o200k_base"))`. In Node, Deno and Bun the name does: `"o200k_base"`.
 *
 * Rejects with `invalid_option` for anything else, and with `not_found` if the vocabulary or the tokenizer could not be loaded.
 */
export async function loadTokenizer(vocabulary: Encoding | Vocabulary | Promise<Vocabulary>): Promise<Tokenizer> {
  // Whoever only estimates does without all of it.
  const { load } = await import("../tokenizer.js");
  return load(vocabulary, () => compiled(import("../wasm/tokenizer-inline.js")));
}
