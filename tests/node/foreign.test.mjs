/** Messages in shapes of other libraries: refused with what they look like, never read as something else. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, detectFormat, openSession, validateHistory } from "context-compactor";
import { fails } from "../support/api.mjs";

/** Content of an early compactor: calls beside the content, the result's call by `toolCallId`. */
const camel = (content) => [
  { role: "user", content: content("Read a.") },
  { role: "assistant", content: content("I read it."), toolCalls: [{ id: "c1", name: "read", arguments: {} }] },
  { role: "tool", toolCallId: "c1", content: content("text of a") },
  { role: "assistant", content: content("Done.") },
];

test("F9: calls in `toolCalls` are refused, and the session's format is the detected one", async () => {
  for (const history of [camel((text) => text), camel((text) => [{ type: "text", text }])]) {
    const refused = (error) => fails("unknown_format", { index: 1 })(error) && error.message.includes("`toolCalls`");
    assert.throws(() => detectFormat(history), refused);
    assert.throws(() => validateHistory(history), refused);
    await assert.rejects(compact(history), refused);
    const session = await openSession({ contextWindow: 100_000 });
    await assert.rejects(session.append(...history), refused);
    await session.close();
  }
  const parts = [{ role: "tool", content: [{ type: "tool-future", text: "x" }] }];
  const session = await openSession({ contextWindow: 100_000 });
  await session.append(...parts);
  assert.equal(session.format, detectFormat(parts));
  assert.equal(session.format, "ai-sdk");
  await session.close();
});
