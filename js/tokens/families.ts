/** Which family of tokenizers a model is of, by its name (`crates/core/src/tokens/family.rs`). */

import { CompactionError } from "../errors.js";
import { distance } from "../near.js";
import type { TokenEstimate } from "../types/tokens.js";

export type Family = NonNullable<TokenEstimate["family"]>;

/** Makers whose models have a tokenizer that no family is of: the default family is used for theirs. */
const OTHERS =
  /gpt|davinci|babbage|codex|text-embedding-|llama|mistral|mixtral|ministral|codestral|devstral|magistral|pixtral|deepseek|grok|command-|c4ai|phi[-34]|nova-|titan|kimi|moonshot|glm|minimax|jamba|sonar|granite|nemotron|olmo|hermes|ernie|doubao|hunyuan|smollm/;

/** What an error names. */
const NAMES =
  "gpt-5 gpt-5-mini gpt-4.1 gpt-4.1-mini gpt-4o gpt-4o-mini gpt-4-turbo gpt-4 gpt-3.5-turbo o3 o4-mini claude-opus-4-7 claude-sonnet-4-5 claude-haiku-4-5 claude-3-5-haiku gemini-2.5-pro gemini-2.5-flash llama-3.3-70b qwen3-coder mistral-large deepseek-chat grok-4";

/** The family of a model. Throws `unknown_model`, with the names that are nearly so. */
export function familyOf(model: string): Family {
  const name = model.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
  const [, claude] = /claude([^]*)/.exec(name) ?? [];
  if (claude !== undefined) return ofClaude(claude);
  if (/gemini|gemma/.test(name)) return "gemini";
  if (/qwen|qwq|qvq/.test(name)) return "qwen3";
  if (/llama/.test(name) && !/llama-?[24]/.test(name)) return "llama3";
  const [, gpt = ""] = /.*gpt-([^]*)/s.exec(name) ?? [];
  if (/^(3|4(-|$))/.test(gpt) || name.includes("text-embedding-")) return "cl100k";
  // `o1`, `o3-mini`, `openai/o4-mini`.
  if (OTHERS.test(name) || /(^|[^a-z\d])o0*[1-9](?![a-z\d])/.test(name)) return "o200k";
  throw unknown(model, name);
}

/** By the version after the name, before or after the model's own; without one, of the newest models. */
function ofClaude(version: string): Family {
  // Dates have more digits than a version.
  const [major, second = 0] = (version.match(/\d+/g) ?? []).filter(({ length }) => length <= 2).map(Number);
  // Instant was the second generation's.
  if (major === undefined) return version.includes("instant") ? "claude3" : "claude47";
  // `4-20250514-v1` has no second number.
  const minor = /^\D*\d+[-._]\d{1,2}(?!\d)/.test(version) ? second : 0;
  return major > 4 || (major === 4 && minor > 6) ? "claude47" : "claude3";
}

function unknown(model: string, name: string): CompactionError {
  const wanted = [...name].slice(0, 64).join("");
  const steps = NAMES.split(" ").map((known) => [distance(wanted, known), known] as const);
  const near = steps.filter(([step]) => step <= Math.floor(wanted.length / 2)).sort(([a, one], [b, other]) => a - b || (one < other ? -1 : 1));
  const meant = near.length > 0 ? `, such as ${near.slice(0, 3).map(([, known]) => known).join(", ")}` : "";
  const what = `model: nothing is known about the tokenizer of ${JSON.stringify(model)}: give the name of a model that is known${meant}, or leave model out to count as OpenAI's models since GPT-4o do`;
  return new CompactionError("unknown_model", what, { field: "model" });
}
