/** Tokens as OpenAI's own tokenizer counts them: no library's estimate decides what fits. */

import { get_encoding } from "tiktoken";

const encoding = get_encoding("o200k_base");
/** What a message takes beside its texts. */
const FRAME = 4;

export function tokensIn(text) {
  let tokens = 0;
  // The tokenizer's time grows with the square of a text without a break.
  for (let at = 0; at < text.length; at += 20_000) tokens += encoding.encode_ordinary(text.slice(at, at + 20_000)).length;
  return tokens;
}

const known = new WeakMap();

/** Tokens of a message of Chat Completions. */
function tokensOf(message) {
  if (!known.has(message)) known.set(message, FRAME + textsOf(message).reduce((sum, text) => sum + tokensIn(text), 0));
  return known.get(message);
}

export function sizeOf(messages) {
  return messages.reduce((sum, message) => sum + tokensOf(message), 0);
}

/** What a message says. */
export function textsOf({ content, tool_calls = [] }) {
  const said = typeof content === "string" ? [content] : (content ?? []).map(({ text }) => text ?? "");
  return [...said, ...tool_calls.map(({ function: { name, arguments: args } }) => `${name} ${args}`)];
}
