/**
 * A result whose text was offloaded is read again by what reads results: the client, the app's own code, the AI SDK's
 * `toModelOutput`. So it keeps its kind: a text stays a text, an object an object, an error an error.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { frozen } from "../support/api.mjs";
import { prepared } from "../support/formats.mjs";
import { kinds } from "./fixtures/index.mjs";
import { play } from "./fixtures/text.mjs";

/** The kind of a value: of an object with its keys, of an array that of its first element. */
function sort(value) {
  if (Array.isArray(value)) return `[${value.slice(0, 1).map(sort)}]`;
  if (value === null || typeof value !== "object") return value === null ? "null" : typeof value;
  return `{ ${Object.entries(value).map(([key, inner]) => `${key}: ${sort(inner)}`)} }`;
}

const blocks = ({ content }) => (Array.isArray(content) ? content : []);

/** `[id, kind, value]` of the results in a message. */
const RESULTS = {
  "openai-chat": ({ role, tool_call_id, name, content }) =>
    role === "tool" || role === "function" ? [[tool_call_id ?? name, sort(content), content]] : [],
  "openai-responses": ({ type, call_id, id, output }) =>
    output === undefined ? [] : [[`${type} ${call_id ?? id}`, sort(output), output]],
  anthropic: (message) =>
    blocks(message)
      .filter(({ type }) => type === "tool_result")
      .map(({ tool_use_id, content, is_error }) => [
        tool_use_id,
        `${sort(content)}, error: ${is_error}`,
        content,
      ]),
  gemini: ({ parts }) =>
    parts
      .filter(({ functionResponse }) => functionResponse)
      .map(({ functionResponse: { id, name, response, parts } }) => {
        return [id ?? name, `${sort(response)}, media: ${JSON.stringify(parts)}`, response];
      }),
  "ai-sdk, model messages": (message) =>
    blocks(message)
      .filter(({ type }) => type === "tool-result")
      .map(({ toolCallId, output: { type, value } }) => [toolCallId, `${type} of ${sort(value)}`, value]),
  "ai-sdk, UI messages": ({ parts }) =>
    parts
      .filter(({ toolCallId }) => toolCallId)
      .map(({ toolCallId, state, output, errorText }) => {
        return [toolCallId, `${state}: ${sort(output)}, ${sort(errorText)}`, output ?? errorText];
      }),
  react: ({ thought, action, result }) => [[`${thought} ${JSON.stringify(action)}`, sort(result), result]],
};

for (const [name, results] of Object.entries(RESULTS)) {
  const { format, scenes } = kinds[name];
  test(`${name}: offloaded results keep their kind`, async () => {
    const before = frozen(play(scenes, 3, 2_000));
    const { messages, edits } = await prepared(format, before);
    const [old, now] = [before, messages].map((messages) => messages.flatMap(results));
    const kindsOf = (list) => list.map(([id, kind]) => `${id}: ${kind}`);
    assert.deepEqual(kindsOf(now), kindsOf(old));
    const changed = now.filter(([, , value], at) => JSON.stringify(value) !== JSON.stringify(old[at][2]));
    const offloaded = edits
      .map(({ offload }) => offload?.offloadedCount ?? 0)
      .reduce((sum, count) => sum + count, 0);
    assert.ok(offloaded > 0, "nothing was offloaded");
    assert.equal(changed.length, offloaded);
    for (const [id, , value] of changed) {
      assert.ok(JSON.stringify(value).length < 400, `${id}: the text is still there`);
    }
  });
}
