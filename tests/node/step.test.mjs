/** `session.step`: one step of a loop that holds the whole history. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSession } from "context-compactor";
import { chat, fails } from "../support/api.mjs";

const open = () => openSession({ contextWindow: 50_000 });

test("E3 step is recordUsage, sync and prepare in one call", async () => {
  const [one, three] = [await open(), await open()];
  const tools = [{ type: "function", function: { name: "read", parameters: { type: "object" } } }];
  const history = chat(3);
  assert.deepEqual(await one.step(history, { tools }), await (async () => {
    await three.sync(history);
    return three.prepare({ tools });
  })());
  const usage = { prompt_tokens: 5_000, completion_tokens: 10 };
  const grown = [...history, ...chat(1, 3)];
  const step = await one.step(grown, { tools, usage, model: "another" });
  three.context.recordUsage(usage, { model: "another" });
  await three.sync(grown);
  assert.deepEqual(step, await three.prepare({ tools }));
  assert.equal(one.context.usage().correction.reported, 5_000);
  step.messages.forEach((message, at) => assert.equal(message, grown[at], "the app's own objects"));
  for (const session of [one, three]) await session.close();
});

test("E3 a wrong option of step is refused before anything is stored", async () => {
  const session = await open();
  const wrong = [[{ tool: [] }, "tool"], [{ tools: "[]" }, "tools"], [{ force: 1 }, "force"], [{ usage: 5 }, "usage"], [{ usage: {}, model: 5 }, "model"]];
  for (const [options, field] of wrong) {
    await assert.rejects(session.step(chat(1), options), fails("invalid_option", { field }));
  }
  await assert.rejects(session.step(chat(1), { signal: AbortSignal.abort() }), fails("aborted"));
  assert.equal(session.context.usage().messageCount, 2, "an abort is one of the compaction");
  await session.close();
});
