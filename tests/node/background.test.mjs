/** Summaries that `prepare` does not wait for (option `background`; lesson "blocked UI, lost queued input"). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSession } from "context-compactor";
import { validateHistory } from "context-compactor/history";
import { chat, exchange, settled, SUMMARY } from "../support/api.mjs";

/** A summariser that answers when it is told to. */
function held() {
  const calls = [];
  const summarize = (request, { signal }) =>
    new Promise((resolve, reject) => {
      calls.push({ request, signal, answer: (text = SUMMARY) => resolve(text), fail: reject });
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  return { calls, summarize };
}

/** A session that is to summarise beyond 3,000 tokens, and fits 8,000. */
async function open(options = {}) {
  const model = held();
  const session = await openSession({
    store: "memory",
    preset: "offload",
    format: "openai-chat",
    contextWindow: 9_000,
    maxOutputTokens: 1_000,
    compactAt: { tokens: 3_000 },
    background: true,
    ...options,
    summarize: { call: model.summarize, attempts: 1, ...options.summarize },
  });
  return { session, calls: model.calls };
}

/** Waits for a call of the model. */
async function called(calls, count = 1) {
  for (let turn = 0; calls.length < count; turn++) {
    assert.ok(turn < 1_000, `the model was called ${calls.length} times`);
    await settled();
  }
  return calls[count - 1];
}

/** Waits until no summary is under way: prepares until it says so. */
async function ended(session) {
  for (let turn = 0; turn < 1_000; turn++) {
    const prepared = await session.prepare();
    if (!prepared.pending) return prepared;
    await settled();
  }
  assert.fail("the summary did not end");
}

test("prepare does not wait for a summary, and what came meanwhile stands behind it", async () => {
  const { session, calls } = await open();
  const before = chat(16);
  await session.append(...before);
  const first = await session.prepare();
  assert.deepEqual(first.messages, before);
  assert.equal(first.pending, true);
  assert.equal(first.result, undefined);
  const call = await called(calls);

  const meanwhile = chat(2, 100);
  await session.append(...meanwhile);
  const second = await session.prepare();
  assert.deepEqual(second.messages, [...before, ...meanwhile], "nothing changes before the commit");
  assert.equal(second.pending, true);
  assert.equal(calls.length, 1, "one summary at a time");

  call.answer();
  const third = await ended(session);
  assert.ok(third.usage.usedTokens < first.usage.usedTokens);
  assert.equal(third.result?.success, true);
  assert.match(third.result.summary, /E0502/);
  assert.deepEqual(third.messages.slice(-4), meanwhile);
  third.messages.slice(-4).forEach((message, nth) => assert.equal(message, meanwhile[nth], "the same objects"));
  assert.ok((await validateHistory(third.messages, { format: "openai-chat" })).valid);
  // Told once.
  assert.equal((await session.prepare()).result, undefined);
  // Every message has its one fate, and the log has them all.
  assert.deepEqual((await session.context.explain()).map(({ index }) => index), [...Array(36).keys()]);
  const log = [];
  for await (const message of session.archive.history()) log.push(message);
  assert.deepEqual(log, [...before, ...meanwhile]);
  await session.close();
});

test("without room prepare waits", async () => {
  const { session, calls } = await open();
  await session.append(...chat(16));
  assert.equal((await session.prepare()).pending, true);
  const call = await called(calls);
  // Beyond what fits.
  await session.append(...chat(30, 50));
  let done = false;
  const waiting = session.prepare().then((prepared) => ((done = true), prepared));
  for (let turn = 0; turn < 20; turn++) await settled();
  assert.equal(done, false);
  call.answer();
  const prepared = await waiting;
  assert.equal(prepared.pending, undefined);
  assert.ok(prepared.usage.usedTokens <= 8_000);
  await session.close();
});

test("a prompt that did not fit when it was asked for is not put off", async () => {
  const { session, calls } = await open();
  await session.append(...chat(50));
  const waiting = session.prepare();
  let done = false;
  void waiting.finally(() => (done = true));
  // In parts, as it is longer than one request takes.
  for (let count = 0; !done; await settled()) while (count < calls.length) calls[count++].answer();
  const prepared = await waiting;
  assert.equal(prepared.result?.success, true);
  assert.equal(prepared.pending, undefined);
  await session.close();
});

test("closing ends it: the call is aborted, and the history is as it was", async () => {
  for (const isGone of [false, true]) {
    const { session, calls } = await open();
    await session.append(...chat(16));
    await session.prepare();
    const { signal } = await called(calls);
    await session.close({ delete: isGone });
    assert.equal(signal.aborted, true, `delete: ${isGone}`);
  }
});

test("the signal of a prepare ends that prepare alone, the session's ends the summary", async () => {
  const all = new AbortController();
  const { session, calls } = await open({ signal: all.signal });
  await session.append(...chat(16));
  const one = new AbortController();
  await session.prepare({ signal: one.signal });
  const { signal } = await called(calls);
  one.abort();
  assert.equal(signal.aborted, false);
  await assert.rejects(session.prepare({ signal: one.signal }), { code: "aborted" });
  all.abort();
  assert.equal(signal.aborted, true);
  await session.close();
});

test("a summary that fails is told by the next prepare, and changes nothing", async () => {
  const { session, calls } = await open({ summarize: { fallback: "none" } });
  const messages = chat(16);
  await session.append(...messages);
  await session.prepare();
  (await called(calls)).fail(new Error("no model today"));
  for (let turn = 0; turn < 50; turn++) await settled();
  const next = await session.prepare();
  assert.equal(next.result?.success, false);
  assert.equal(next.result.error.code, "summary_failed");
  assert.equal(next.result.error.cause.message, "no model today");
  assert.deepEqual(next.messages, messages);
  await session.close();
});

test("what offloading and clearing would change meanwhile waits for the summary", async () => {
  const { session, calls } = await open({
    preset: "layered",
    compactAt: { tokens: 3_000 },
    presetOptions: { keepRecent: 1, clearMinTokens: 50, minSavings: 0, compactableTools: ["read"] },
  });
  const messages = Array.from({ length: 12 }, (_, nth) => exchange(nth, 200)).flat();
  await session.append(...messages, ...chat(16));
  const first = await session.prepare();
  assert.equal(first.pending, true);
  const call = await called(calls);
  await session.append(...exchange(100, 2_000), ...exchange(101, 2_000));
  const second = await session.prepare();
  assert.equal(second.edits.length, 0);
  assert.deepEqual(second.messages.slice(0, first.messages.length), first.messages);
  call.answer();
  const third = await ended(session);
  assert.equal(third.result?.success, true);
  assert.ok((await validateHistory(third.messages, { format: "openai-chat" })).valid);
  await session.close();
});

test("a compaction by hand comes after it", async () => {
  const { session, calls } = await open();
  await session.append(...chat(16));
  await session.prepare();
  const call = await called(calls);
  const compacted = session.compact();
  await session.append(...chat(8, 60));
  call.answer("First: the build of the parser in src/parser.rs fails with error E0502 on line 42.");
  (await called(calls, 2)).answer("Second: the build of the parser in src/parser.rs fails with error E0502 on line 42.");
  const result = await compacted;
  assert.equal(result.success, true);
  assert.match(result.summary, /^Second/);
  await session.close();
});

test("without a model there is nothing to wait for", async () => {
  const { session } = await open({ summarize: { call: undefined } });
  await session.append(...chat(16));
  const prepared = await session.prepare();
  assert.equal(prepared.pending, undefined);
  assert.equal(prepared.result?.success, true);
  await session.close();
});
