/**
 * Encodings beside independent implementations: tiktoken (the reference, as WebAssembly), js-tiktoken, and for texts as
 * messages have them gpt-tokenizer. Where JavaScript's expressions are not Rust's, tiktoken alone decides.
 */

import assert from "node:assert/strict";
import { loadTokenizer } from "context-compactor/tokens";
import * as cl100k from "gpt-tokenizer/encoding/cl100k_base";
import * as o200k from "gpt-tokenizer/encoding/o200k_base";
import { getEncoding } from "js-tiktoken";
import { get_encoding } from "tiktoken";
import { isHostsOwn } from "./unicode.mjs";

const others = { o200k_base: o200k, cl100k_base: cl100k };
export const names = Object.keys(others);

/** An encoding with those that it must agree with. The caller frees it. */
export async function open(name) {
  const tiktoken = get_encoding(name);
  const plain = getEncoding(name);
  return {
    tokenizer: await loadTokenizer(import(`context-compactor-vocabularies/${name}`)),
    reference: (text) => tiktoken.encode(text, [], []),
    second: (text) => plain.encode(text, [], []),
    third: (text) => others[name].encode(text, { disallowedSpecial: new Set() }),
    free: () => tiktoken.free(),
  };
}

/** Fails where a text is not encoded as by the others, where its count is another, and where it does not come back. */
export function agree({ tokenizer, reference, ...more }, text, also = ["second"]) {
  const ids = tokenizer.encode(text);
  assert.deepEqual(ids, reference(text), `tiktoken: ${JSON.stringify(text)}`);
  if (!isHostsOwn(text)) {
    for (const other of also) assert.deepEqual([...ids], more[other](text), `${other}: ${JSON.stringify(text)}`);
  }
  assert.equal(tokenizer.count(text), ids.length, JSON.stringify(text));
  assert.equal(tokenizer.decode(ids), text);
}
