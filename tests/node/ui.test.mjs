/** X16: what the parts of a page read of messages and sessions, without a page. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { openSession } from "context-compactor";
import { stepsOf } from "context-compactor-ui";
import { textsAt } from "../../pkg-ui/dist/ui/texts.js";

const said = { thought: "one", action: { name: "two", arguments: { path: "three" } }, result: "four" };
const FORMATS = {
  "openai-chat": { role: "assistant", content: "one", tool_calls: [{ id: "c", type: "function", function: { name: "two", arguments: '{"path":"three"}' } }] },
  "openai-responses": { type: "function_call_output", call_id: "c", output: "one two three" },
  anthropic: { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: [{ type: "text", text: "one two" }] }, { type: "text", text: "three" }] },
  gemini: { role: "model", parts: [{ text: "one" }, { functionCall: { name: "two", args: { path: "three" } } }] },
  "ai-sdk": { role: "assistant", content: [{ type: "text", text: "one" }, { type: "tool-call", toolCallId: "c", toolName: "two", input: { path: "three" } }] },
  react: said,
};

/** The text of a message, as an archive has it. */
async function textOf(message) {
  const history = async function* () {
    yield message;
  };
  return (await textsAt({ history }, new Set([0]))).get(0);
}

test("X16: a message of every format has a text with all that it says, and no ids", async () => {
  for (const [format, message] of Object.entries(FORMATS)) {
    const text = await textOf(message);
    for (const word of ["one", "two", "three"]) assert.ok(text.includes(word), `${format}: ${text}`);
    assert.doesNotMatch(text, /\bc\b|tool_result|functionCall/, format);
  }
  assert.match(await textOf({ role: "user", content: [{ type: "image_url", image_url: { url: "data:," } }] }), /\[image_url\]/);
});

test("X16: texts are those of the indices that are asked for, with gaps of the archive where they are", async () => {
  const messages = ["a", "b", "c", "d"].map((content) => ({ role: "user", content }));
  const archive = {
    async *history({ onGap }) {
      yield messages[0];
      onGap({ index: 1, messages: 1 });
      yield messages[2];
      yield messages[3];
    },
  };
  assert.deepEqual([...(await textsAt(archive, new Set([1, 2, 3])))], [[2, "c"], [3, "d"]]);
  const session = await openSession({ contextWindow: 32_000 });
  await session.append(...messages);
  assert.deepEqual([...(await textsAt(session.archive, new Set([1, 3])))], [[1, "b"], [3, "d"]]);
  await session.close();
});

test("X16: the event usage comes with every call that changes what the context takes up, and with no other", async () => {
  const session = await openSession({ contextWindow: 16_000, maxOutputTokens: 1_000 });
  const seen = [];
  const stop = session.on("usage", (usage) => {
    seen.push(usage.usedTokens);
    // A listener may read.
    void session.context.explain();
    void session.archive.verify();
  });
  const now = () => session.context.usage().usedTokens;
  for (let nth = 0; nth < 6; nth++) {
    await session.append({ role: "user", content: `question ${nth} ${"words of it ".repeat(300)}` }, { role: "assistant", content: "Yes." });
    assert.deepEqual([seen.length, seen.at(-1)], [nth + 1, now()]);
  }
  await session.context.explain();
  await session.archive.verify();
  await session.recall.search("question 2");
  assert.equal(seen.length, 6);
  const { changed } = await session.compact();
  assert.equal(changed, true);
  assert.ok(seen.at(-1) === now() && now() < seen[5], String(seen));
  await session.snapshots.undo();
  assert.equal(seen.at(-1), seen[5]);
  session.context.recordUsage({ prompt_tokens: now() * 2, completion_tokens: 10 });
  assert.equal(seen.at(-1), now());
  const length = seen.length;
  stop();
  await session.append({ role: "user", content: "more" });
  await session.close();
  assert.equal(seen.length, length);
});

test("X16: a compaction is told by its steps, the one that changes most first", () => {
  assert.equal(stepsOf([{ kind: "clear" }, { kind: "clear" }, { kind: "summarize" }]), "The past summarized, old results cleared");
  assert.equal(stepsOf([]), "Compacted");
});

test("X16: the package brings nothing of the engine along", () => {
  const dist = new URL("../../pkg-ui/dist/", import.meta.url);
  const scripts = readdirSync(dist, { recursive: true }).filter((file) => file.endsWith(".js"));
  const imports = scripts.flatMap((file) => Array.from(readFileSync(new URL(file, dist), "utf8").matchAll(/(?:from ?|import ?\(?)"([^"]+)"/g), ([, from]) => from));
  assert.deepEqual([...new Set(imports.filter((from) => !/^\.{1,2}\/(ui\/)?\w+\.js$/.test(from)))], ["react"]);
  assert.ok(scripts.length > 6);
});
