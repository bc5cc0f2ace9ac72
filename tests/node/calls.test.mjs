/** The order of calls on a session, its end, and what its listeners are told. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { memoryStore, openSession, withDocumentedNames } from "../support/offload.mjs";
import { chat, deferred, exchange, fails, openStore, settled, summariser, SUMMARY } from "../support/api.mjs";

/** A session with 20 messages whose summariser waits for `answer`. */
async function waiting(more = {}) {
  const answer = deferred();
  const asked = deferred();
  let calls = 0;
  const summarize = () => {
    calls++;
    asked.resolve();
    return answer.promise;
  };
  const session = await openSession({ store: memoryStore(), summarize, ...more });
  const history = chat(10);
  await session.append(...history);
  return { session, history, answer, asked: asked.promise, calls: () => calls };
}

test("lesson: lost queued input; an append during a compaction does not wait for it, and is in its result", async () => {
  const { session, answer, asked } = await waiting();
  const compacting = session.compact();
  await asked;
  const [late] = chat(1, 99);
  await session.append(late);
  answer.resolve(SUMMARY);
  const result = await compacting;
  assert.equal(result.success, true);
  assert.equal(result.messages.at(-1), late);
  assert.equal(result.messages.length, 7);
  assert.equal((await session.context.explain()).length, 21);
});

test("an append that fails during a compaction does not touch it", async () => {
  const { session, answer, asked } = await waiting();
  const compacting = session.compact();
  await asked;
  await assert.rejects(session.append(null), fails("invalid_message"));
  answer.resolve(SUMMARY);
  assert.equal((await compacting).success, true);
});

test("what is looked at during a compaction is whole: usage, plan and ledger", async () => {
  const { session, answer, asked } = await waiting();
  const compacting = session.compact();
  await asked;
  assert.equal(session.context.usage().messageCount, 20);
  assert.ok((await session.context.explain()).every(({ fate }) => fate === "verbatim"));
  assert.equal((await session.context.plan()).willCompact, false);
  answer.resolve(SUMMARY);
  await compacting;
  assert.equal((await session.context.explain()).filter(({ fate }) => fate === "summarized").length, 15);
});

test("two compactions are one after the other", async () => {
  const { session, answer, asked, calls } = await waiting();
  const first = session.compact();
  const second = session.compact();
  await asked;
  await settled();
  assert.equal(calls(), 1);
  answer.resolve(SUMMARY);
  const [one, two] = await Promise.all([first, second]);
  assert.deepEqual([one.success, two.success], [true, true]);
  assert.match(two.reason, /Nothing to compress/);
  assert.deepEqual(two.messages, one.messages);
});

test("calls take effect in the order in which they were made, whether or not they are awaited", async () => {
  const store = openStore();
  store.before = () => settled();
  const session = await openSession({ store });
  const history = chat(10);
  const appends = history.map((message) => session.append(message));
  const prepared = session.prepare();
  const more = session.append(...chat(1, 20));
  const { messages } = await prepared;
  assert.equal(messages.length, 20);
  messages.forEach((message, index) => assert.equal(message, history[index]));
  await Promise.all([...appends, more]);
});

test("a call that fails does not hold up those behind it", async () => {
  const session = await openSession({ store: "memory" });
  const failed = session.append(null);
  const good = session.append(...chat(1));
  await assert.rejects(failed, fails("invalid_message"));
  await good;
  assert.equal((await session.prepare()).messages.length, 2);
});

test("close waits for what is under way, and then every call is refused", async () => {
  const { session, answer, asked } = await waiting();
  const compacting = session.compact();
  await asked;
  let closed = false;
  const closing = session.close().then(() => (closed = true));
  await settled();
  assert.equal(closed, false);
  answer.resolve(SUMMARY);
  assert.equal((await compacting).success, true);
  await closing;
  for (const call of [
    () => session.append(...chat(1)),
    () => session.sync([]),
    () => session.prepare(),
    () => session.compact(),
    () => session.recall.read("off_x"),
    () => session.context.plan(),
    async () => session.context.usage(),
    () => session.context.explain(),
  ]) {
    await assert.rejects(call(), fails("closed"), String(call));
  }
  await session.close();
  await session.close({ delete: true });
});

test("await using closes the session, also when the block throws", async () => {
  const store = memoryStore();
  const session = await openSession({ store });
  await session[Symbol.asyncDispose]();
  await assert.rejects(session.prepare(), fails("closed"));
});

test("close does not close a store that the app made; it is used again", async () => {
  let closed = 0;
  const store = { ...memoryStore(), close: () => void closed++ };
  const session = await openSession({ store, id: "mine" });
  await session.append(...chat(1));
  await session.close();
  assert.equal(closed, 0);
  const again = await openSession({ store, id: "mine" });
  assert.equal((await again.prepare()).messages.length, 2);
});

test("many sessions live side by side", async () => {
  const store = memoryStore();
  const sessions = await Promise.all(Array.from({ length: 50 }, (_, nth) => openSession({ store, id: `s${nth}` })));
  await Promise.all(sessions.map((session, nth) => session.append(...chat(nth + 1, nth))));
  for (const [nth, session] of sessions.entries()) {
    const { messages } = await session.prepare();
    assert.equal(messages.length, 2 * (nth + 1));
    await session.close();
  }
});

// ---- events (S1.14) -------------------------------------------------------------------------------------------------

const SMALL = { contextWindow: 24_000, maxOutputTokens: 1_000 };
const exchanges = Array.from({ length: 20 }, (_, nth) => exchange(nth, 2_000)).flat();

test("s1_14_the events offload and compact say what the results say", async () => {
  const session = withDocumentedNames(await openSession({ store: "memory", ...SMALL, summarize: summariser() }));
  const events = [];
  for (const event of ["offload", "compact", "warning"]) session.on(event, (data) => events.push([event, data]));
  await session.append(...exchanges);
  const { edits } = await session.prepare();
  assert.deepEqual(events, [["offload", { count: 10, freedTokens: edits[0].freedTokens }]]);
  events.length = 0;
  // S1.4: emitted only when something was offloaded.
  await session.prepare();
  assert.deepEqual(events, []);
  const { previousTokens, currentTokens, freedTokens, deletedFiles } = await session.compact();
  const data = { previousTokens, currentTokens, freedTokens, deletedFileCount: deletedFiles.length };
  assert.deepEqual(events, [["compact", data]]);
  assert.ok(deletedFiles.length > 0);
  events.length = 0;
  await session.compact();
  assert.deepEqual(events, []);
});

test("a fallback is a warning", async () => {
  const summarize = async () => { throw new Error("gone"); };
  const session = await openSession({ store: "memory", contextWindow: 200_000, summarize: { call: summarize, fallback: "extractive", attempts: 1 } });
  const warnings = [];
  session.on("warning", (warning) => warnings.push(warning));
  await session.append(...chat(20));
  assert.equal((await session.compact()).success, true);
  assert.equal(warnings.length, 1);
  assert.equal(warnings[0].code, "summary_failed");
  assert.match(warnings[0].message, /gone/);
});

test("s1_3_a_result_that_the_store_refuses_stays_with_a_warning, and the others go on", async () => {
  const store = openStore();
  const session = await openSession({ store, ...SMALL });
  await session.append(...exchanges);
  store.before = (batch) => {
    const blobs = new Set(batch.puts.filter(([key]) => key[0] === "blobs").map(([key]) => key[2]));
    if (blobs.size > 1) throw Object.assign(new Error("too much at once"), { code: "too_large" });
    if (batch.puts.some(([key, bytes]) => key[0] === "blobs" && Buffer.from(bytes).includes('"index":14,'))) {
      throw Object.assign(new Error("too large"), { code: "too_large" });
    }
  };
  const warnings = [];
  session.on("warning", (warning) => warnings.push(warning.code));
  const { edits, messages } = await session.prepare();
  assert.deepEqual(warnings, ["too_large"]);
  assert.equal(edits[0].indices.length, 9);
  assert.equal(messages[14], exchanges[14]);
});

test("on returns what unsubscribes, and each listener is told once", async () => {
  const session = await openSession({ store: "memory", summarize: summariser() });
  let one = 0;
  let other = 0;
  const off = session.on("compact", () => one++);
  session.on("compact", () => {
    other++;
    // During the emission: the next one still hears it.
    off();
  });
  await session.append(...chat(10));
  await session.compact();
  await session.append(...chat(10, 10));
  await session.compact();
  assert.deepEqual([one, other], [1, 2]);
  off();
});

test("onProgress and the event progress are told the same", async () => {
  const given = [];
  const heard = [];
  const session = await openSession({ store: "memory", summarize: summariser(), onProgress: (progress) => given.push(progress) });
  session.on("progress", (progress) => heard.push(progress));
  await session.append(...chat(10));
  await session.compact();
  assert.ok(given.length > 1);
  assert.deepEqual(given, heard);
});

/** Runs a module that may end badly, apart. */
function apart(code) {
  const url = new URL("../../pkg/dist/entry/main.js", import.meta.url);
  const support = new URL("../support/api.mjs", import.meta.url);
  const source = `
    import { openSession } from ${JSON.stringify(url.href)};
    import { chat, summariser } from ${JSON.stringify(support.href)};
    const uncaught = [];
    process.on("uncaughtException", (error) => uncaught.push(error.message));
    ${code}
    await new Promise((resolve) => setTimeout(resolve, 10));
    console.log(JSON.stringify({ ...outcome, uncaught }));`;
  const cwd = new URL("..", import.meta.url);
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", source], { cwd, encoding: "utf8" });
  assert.notEqual(stdout, "", stderr);
  return JSON.parse(stdout);
}

test("listeners, onProgress and logger that throw do not end the operation, and are not silenced either", () => {
  const { success, heard, uncaught } = apart(`
    const thrower = (name) => () => { throw new Error(name); };
    const session = await openSession({
      store: "memory", preset: "offload", summarize: summariser(), onProgress: thrower("onProgress"), logger: thrower("logger"),
    });
    let heard = 0;
    session.on("compact", thrower("listener"));
    session.on("compact", () => heard++);
    session.on("progress", () => heard++);
    await session.append(...chat(10));
    const { success } = await session.compact();
    const outcome = { success, heard };`);
  assert.equal(success, true);
  assert.ok(heard > 2, "a listener behind one that throws is told too");
  assert.deepEqual(new Set(uncaught), new Set(["onProgress", "logger", "listener"]));
});

test("S2.12: answers that come while others are being stored leave no call waiting", async () => {
  // Many at once, so that a call begins in every state of those before it.
  for (const concurrency of [1, 2, 4, 16]) {
    let calls = 0;
    const session = await openSession({ store: memoryStore(), preset: "react", presetOptions: { strategies: false }, contextWindow: 100_000, summarize: { call: () => `Short ${++calls}.`, concurrency } });
    await session.append(...Array.from({ length: 20 }, (_, nth) => exchange(nth, 6_000 + nth)).flat());
    const compacting = session.compact();
    const appending = session.append(...chat(1));
    const late = new Promise((resolve) => setTimeout(resolve, 5_000, "it waits for ever"));
    assert.notEqual(await Promise.race([Promise.all([compacting, appending]), late]), "it waits for ever", `concurrency ${concurrency}`);
    assert.equal(calls, 20);
    await session.close();
  }
});
