/** The engine's own estimates, which the package has in JavaScript alone. */

import { pack } from "../../pkg/dist/codec.js";
import { toError } from "../../pkg/dist/effects.js";
import { call } from "../../pkg/dist/engine.js";
import { loadStage } from "../../pkg/dist/stages.js";
import { bringTable } from "../../pkg/dist/table.js";
import "../../pkg/dist/entry/main.js";

await loadStage("rest");
for (const model of ["gpt-4", "claude-3-5-haiku", "claude-opus-4-7", "gemini-2.5-pro", "llama-3.3-70b", "qwen3-coder"]) await bringTable({ model });

/** What `estimateTokensDetailed` of native messages must return, or throw. */
export function detailed(input, options = {}) {
  return called((glue) => (typeof input === "string" ? glue.estimateTextDetailed(input, options) : glue.estimateDetailed(...packed(input), options)));
}

/** What an exact tokenizer counts of messages: their texts, joined, and the tokens of the rest. */
export function texts(messages, options = {}) {
  const { bytes, ends, byRule } = called((glue) => glue.messageTexts(...packed(messages), options));
  return { texts: Array.from(ends, (end, nth) => new TextDecoder().decode(bytes.subarray(nth === 0 ? 0 : ends[nth - 1], end))), byRule };
}

function packed(input) {
  const { bytes, ends } = pack(Array.isArray(input) ? input : [input]);
  return [bytes, ends];
}

function called(work) {
  try {
    return call(work);
  } catch (error) {
    throw error instanceof Error ? error : toError(error);
  }
}
