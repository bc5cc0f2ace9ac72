/** Real transcripts, for the tests that read them when they are there. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

const folder = process.env.CC_DATA ?? fileURLToPath(new URL("../../../shared/data", import.meta.url));

/** The records of a file such as `core/openai/claude_code`, or undefined. */
export function transcripts(name) {
  const file = join(folder, `${name}.jsonl.gz`);
  if (!existsSync(file)) return undefined;
  return gunzipSync(readFileSync(file)).toString().trim().split("\n").map((line) => JSON.parse(line));
}

/**
 * One valid history of at least `tokens`: the longest conversations of `records` that end with the assistant's word,
 * one after the other. `estimate` counts messages.
 */
export function longHistory(records, tokens, estimate) {
  const whole = records
    .map(({ messages }) => messages)
    .filter((messages) => messages[0].role === "user" && messages.at(-1).role === "assistant")
    .sort((a, b) => JSON.stringify(b).length - JSON.stringify(a).length);
  const history = [];
  for (let at = 0; at < whole.length && (history.length === 0 || estimate(history) < tokens); at++) {
    history.push(...whole[at]);
  }
  return history;
}
