/** Histories that are longer than the summariser's window, over the public API: parts, what is kept of them, and plans. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, memoryStore, openSession, planCompaction } from "../support/offload.mjs";
import { chat, fails, summariser, SUMMARY } from "../support/api.mjs";

/** The options of a history longer than the window of its summariser. */
const long = (call, more) => ({ contextWindow: 16_000, summarize: { call, concurrency: 2, attempts: 1, ...more } });

test("a long history is summarised in parts, once over and as planned", async () => {
  const history = chat(300);
  const summarize = summariser();
  const progress = [];
  const options = { ...long(summarize), onProgress: ({ stage, done, total }) => stage === "summarize" && progress.push([done, total]) };
  const plan = await planCompaction(history, options);
  const result = await compact(history, options);
  const purposes = summarize.calls.map(({ purpose }) => purpose);
  const parts = purposes.length - 1;
  assert.ok(parts >= 4 && result.success);
  assert.deepEqual(purposes, [...Array(parts).fill("chunk"), "merge"]);
  assert.deepEqual([plan.edits[0].llmCalls, result.llmCalls], [parts + 1, parts + 1]);
  assert.deepEqual(progress.at(-1), [parts, parts + 1]);
  const shown = summarize.calls.flatMap(({ request }) => [...request.messages[0].content.matchAll(/<message index="(\d+)"/g)].map(([, index]) => Number(index)));
  assert.deepEqual(shown.sort((a, b) => a - b), Array.from({ length: 595 }, (_, index) => index));
});

test("a summariser for results is not asked about parts of a history", async () => {
  const summarizeResult = summariser();
  await compact(chat(300), long(summariser(), { forResults: summarizeResult }));
  assert.equal(summarizeResult.calls.length, 0);
});

test("aborted half-way, the next attempt pays only for what is missing", async () => {
  const store = memoryStore();
  const controller = new AbortController();
  let calls = 0;
  const session = await openSession({
    id: "long",
    store,
    ...long(async (request, { signal }) => {
      if (++calls <= 2) return SUMMARY;
      controller.abort();
      signal.throwIfAborted();
    }, { concurrency: 1 }),
  });
  for (const message of chat(300)) void session.append(message);
  await assert.rejects(session.compact({ signal: controller.signal }), fails("aborted"));
  assert.equal(calls, 3);
  await session.close();
  const summarize = summariser();
  const again = await openSession({ id: "long", store, ...long(summarize) });
  const planned = await planCompaction(chat(300), { ...long(summarize) });
  const { success, llmCalls } = await again.compact();
  assert.deepEqual([success, llmCalls], [true, planned.edits[0].llmCalls - 2]);
});
