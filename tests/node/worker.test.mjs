/** Sessions whose engine runs in a worker (P15). All else of a session is tested by the suite of sessions, run again below. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import * as main from "context-compactor";
import { stats } from "context-compactor/react";
import { deleteSession, listSessions, openSession } from "context-compactor/worker";
import { serve } from "context-compactor/worker-thread";
import { chat, deferred, exchange, fails, openStore, runtime, summariser } from "../support/api.mjs";
import { folder } from "../support/file-store.mjs";

const SCRIPT = new URL("../support/worker-thread.mjs", import.meta.url);
const SMALL = { preset: "offload", contextWindow: 9_000, maxOutputTokens: 1_000, compactAt: { tokens: 3_000 } };
const workers = [];
process.on("worker", (worker) => workers.push(worker));

/** A worker of the app, which ends with the test. */
function worker(context, folder) {
  const made = new Worker(SCRIPT, { workerData: { folder } });
  context.after(() => made.terminate());
  return made;
}

test("P15: two sessions share one worker, and what they hand out are the app's own objects", async () => {
  const [one, other] = await Promise.all([openSession(SMALL), openSession(SMALL)]);
  assert.equal(workers.length, 1);
  const histories = [exchange(1), exchange(2)];
  await Promise.all([one.append(...histories[0]), other.append(...histories[1])]);
  for (const [nth, session] of [one, other].entries()) {
    const { messages } = await session.prepare();
    assert.equal(messages.length, 4);
    messages.forEach((message, at) => assert.equal(message, histories[nth][at]));
    const { recentMessages } = await session.context.parts();
    recentMessages.forEach((message, at) => assert.equal(message, histories[nth][at]));
  }
  await one.close();
  await assert.rejects(one.prepare(), fails("closed"));
  assert.equal((await other.prepare()).messages.length, 4);
});

test("P15: the same calls lead to the same session as without a worker", async () => {
  const histories = { here: [], there: [] };
  const ends = {};
  for (const [where, open] of [["here", main.openSession], ["there", openSession]]) {
    const events = histories[where];
    const session = await open({ ...SMALL, store: openStore(), systemPrompt: "Be brief.", summarize: summariser(), advanced: { runtime: runtime() } });
    for (const event of ["offload", "compact", "usage", "change"]) session.on(event, (data) => events.push([event, data]));
    await session.append(...chat(10));
    await session.goal.set({ id: "g1", description: "Fix the parser." });
    const prepared = await session.prepare();
    session.context.recordUsage({ inputTokens: prepared.usage.usedTokens + 40, outputTokens: 12 });
    await session.append(...exchange(1, 3_000));
    const compacted = await session.compact();
    const { context, archive, goal, recall } = session;
    ends[where] = [
      [prepared.messages, prepared.usage, prepared.edits, compacted.messages, compacted.usage, compacted.success],
      [context.usage(), context.availableTokens(), context.checkpoints(), context.reliability(), context.format],
      [archive.metadata(), archive.compactionLog(), archive.durability, goal.current, recall.tools().definitions, recall.tools("gemini").definitions],
      [await context.plan(), await context.explain(), await context.validate(), await archive.markdown(), await stats(session)],
      [await recall.search("parser borrow"), await session.pins.proposals(), await archive.verify()],
    ];
    const child = await session.fork({ id: "child" });
    ends[where].push([child.id, child.context.usage(), (await child.prepare()).messages]);
    await session.close();
  }
  assert.deepEqual(ends.there, ends.here);
  assert.ok(histories.here.some(([event]) => event === "compact"));
  assert.deepEqual(histories.there.filter(([event]) => event !== "usage"), histories.here.filter(([event]) => event !== "usage"));
});

test("P15: the app's functions run here, with its own objects, and what they throw is the cause", async () => {
  const store = openStore();
  const [counted, redacted, asked, logged, stages] = [new Set(), [], [], [], new Set()];
  const reason = new Error("no model today");
  const session = await openSession({
    ...SMALL,
    store,
    tokenCounter: ([message]) => (counted.add(message), JSON.stringify(message).length),
    redact: { text: (text) => (redacted.push(text), text.replaceAll("E0502", "E????")) },
    pins: { match: (message, index) => (asked.push([message, index]), false) },
    logger: (level) => logged.push(level),
    onProgress: ({ stage }) => stages.add(stage),
    summarize: { call: () => Promise.reject(reason), attempts: 1 },
  });
  const history = chat(6);
  await session.append(...history);
  assert.ok(history.every((message) => counted.has(message)));
  asked.forEach(([message, index]) => assert.equal(message, history[index]));
  assert.equal(asked.length, history.length);
  const failed = await session.compact();
  assert.deepEqual([failed.success, failed.error.code, failed.error.cause], [false, "summary_failed", reason]);
  assert.ok(redacted.some((text) => text.includes("E0502")));
  assert.ok(stages.has("summarize"));
  assert.ok(logged.length > 0);

  const wrong = await openSession({ ...SMALL, tokenCounter: () => "many" });
  await assert.rejects(wrong.append(...chat(1)), fails("invalid_option", { field: "tokenCounter" }));
});

test("P15: a signal of the page ends a call, and its reason is the cause", async (context) => {
  const stop = new AbortController();
  let heard;
  const call = (_, { signal }) => {
    heard = signal;
    setTimeout(() => stop.abort(reason));
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const session = await openSession({ ...SMALL, summarize: { call, attempts: 1 } });
  await session.append(...chat(12));
  const reason = new Error("enough");
  await assert.rejects(session.compact({ signal: stop.signal }), fails("aborted", { cause: reason }));
  assert.equal(heard.aborted, true);
  await assert.rejects(session.compact({ signal: stop.signal }), fails("aborted", { cause: reason }));
  // In the worker, too: what it waits for is a request.
  const { promise: waiting, resolve } = deferred();
  const server = createServer(() => resolve()).listen(0);
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://localhost:${server.address().port}/v1/messages`;
  const there = await openSession({ ...SMALL, summarize: { provider: { kind: "anthropic", model: "m", url }, attempts: 1 } });
  await there.append(...chat(12));
  const again = new AbortController();
  const compacting = there.compact({ signal: again.signal });
  await waiting;
  // Others may append while the request is under way.
  await there.append({ role: "user", content: "meanwhile" });
  again.abort(reason);
  await assert.rejects(compacting, fails("aborted", { cause: reason }));
});

test("P15: errors come with code, index, field and cause; what cannot cross is refused before it would", async () => {
  const session = await openSession(SMALL);
  await assert.rejects(session.append({ role: "user", content: "a" }, { role: "user", content: [{ type: "text", text: () => 1 }] }), fails("unsupported_value", { index: 1, field: "content[0].text" }));
  await assert.rejects(session.append({ role: "robot", content: "a" }), fails("unknown_format", { index: 0, field: "role" }));
  await assert.rejects(session.recall.read("off_00000000000000000000000000"), fails("not_found"));
  await assert.rejects(session.snapshots.rewind(7), fails("invalid_option"));
  assert.throws(() => session.recall.tools("word"), fails("invalid_option", { field: "format" }));
  assert.throws(() => session.context.recordUsage({ a: 1 }, { model: 1 }), fails("invalid_option", { field: "model" }));
  const warned = new Promise((resolve) => session.on("warning", resolve));
  session.context.recordUsage({ nothing: true });
  assert.equal((await warned).code, "invalid_option");
  await assert.rejects(session.step([{ role: "user", content: "a" }], { usage: { nothing: true } }), fails("invalid_option"));
  assert.equal(session.archive.metadata().totalMessages, 0, "a wrong usage is refused before anything is done");

  for (const [options, field] of [
    [{ store: () => {} }, "store"],
    [{ store: { get: () => {} } }, "store"],
    [{ store: "./sessions" }, "store"],
    [{ worker: 5 }, "worker"],
    [{ worker: {} }, "worker"],
    [{ contextWindow: () => 1 }, "contextWindow"],
    [{ thread: {} }, "thread"],
  ]) {
    await assert.rejects(openSession(options), fails("invalid_option", { field }));
  }
  await assert.rejects(openSession({ id: "named" }), fails("store_unavailable", { field: "store" }));
  await assert.rejects(openSession({ model: "no-such-model-1" }), fails("unknown_model"));
  assert.throws(() => serve(), fails("invalid_option", { field: "port" }));
  assert.throws(() => serve({ stor: 1 }), fails("invalid_option", { field: "stor" }));
});

test("P15: an error of the page's store, and of the worker's, is the error of the call", async (context) => {
  const store = openStore();
  const session = await openSession({ ...SMALL, store });
  const full = new main.CompactionError("quota_exceeded", "the disk is full");
  store.before = () => {
    throw full;
  };
  await assert.rejects(session.append(...chat(1)), fails("quota_exceeded", { cause: full }));
  store.before = undefined;
  await session.append(...chat(1));
  assert.equal((await main.listSessions(store)).length, 1);

  const place = await folder(context);
  const first = await openSession({ ...SMALL, id: "a", worker: worker(context, place) });
  await assert.rejects(openSession({ ...SMALL, id: "a", mustExist: true, store: openStore() }), fails("data_loss"));
  await first.close();
});

test("P15: a worker of the app has the store; another one finds what it stored", async (context) => {
  const place = await folder(context);
  const history = chat(2);
  const made = worker(context, place);
  const session = await openSession({ ...SMALL, id: "kept", worker: made });
  assert.equal(session.archive.durability, "synced");
  await session.append(...history);
  assert.deepEqual((await listSessions({ worker: made })).map(({ id, messages }) => [id, messages]), [["kept", 4]]);
  await session.close();
  await made.terminate();

  const later = worker(context, place);
  const again = await openSession({ ...SMALL, id: "kept", mustExist: true, worker: later });
  assert.deepEqual((await again.prepare()).messages, history);
  const read = [];
  for await (const message of again.archive.history()) read.push(message);
  assert.deepEqual(read, history);
  const bytes = await new Response(again.archive.jsonl()).text();
  assert.equal(bytes.trim().split("\n").length, 5);
  await again.close();
  await deleteSession("kept", { worker: later });
  assert.deepEqual(await listSessions({ worker: later }), []);
  await assert.rejects(listSessions(), fails("store_unavailable"));
});

test("P15: handles on one session in one store hear of each other, in the page and in the worker", async (context) => {
  const made = worker(context, await folder(context));
  const [one, other] = [await openSession({ ...SMALL, id: "a", worker: made }), await openSession({ ...SMALL, id: "a", worker: made })];
  await one.append(...chat(1));
  await other.append({ role: "user", content: "of the other" });
  const { messages } = await one.prepare();
  assert.deepEqual(messages.map(({ content }) => content.slice(0, 12)), ["Question 0: ", "Answer 0: Th", "of the other"]);
});

test("P15: a worker that ends ends its sessions with `poisoned`, and the next session has another", async (context) => {
  const made = worker(context);
  const session = await openSession({ ...SMALL, summarize: { call: () => new Promise(() => {}), attempts: 1 }, worker: made });
  await session.append(...chat(12));
  const compacting = session.compact();
  const appended = session.append({ role: "user", content: "a" });
  await appended;
  void made.terminate();
  await assert.rejects(compacting, fails("poisoned"));
  await assert.rejects(session.prepare(), fails("poisoned"));
  assert.throws(() => session.context.usage(), fails("poisoned"));
  await assert.rejects(openSession({ worker: made }), fails("poisoned"));
  await session.close();

  // That of the package, as the browser may end it.
  const before = await openSession(SMALL);
  await before.append(...chat(1));
  const own = workers.filter(({ threadId }) => threadId > 0);
  await Promise.all(own.map((worker) => worker.terminate()));
  await assert.rejects(before.append(...chat(1)), fails("poisoned"));
  const after = await openSession(SMALL);
  await after.append(...chat(1));
  assert.equal((await after.prepare()).messages.length, 2);
});

test("P15: a script that serves nothing, or cannot be loaded, is named", async () => {
  const missing = new Worker(new URL("./no-such-worker.mjs", import.meta.url));
  await assert.rejects(openSession({ worker: missing }), fails("stage_unavailable", { message: /could not be started[^]*openSession\(\{ worker \}\)/ }));
  const ended = new Worker("process.exit(3)", { eval: true });
  await assert.rejects(openSession({ worker: ended }), fails("stage_unavailable", { message: /exited with code 3/ }));
});

test("P15: a process ends when nothing is awaited, though a session is open", async () => {
  const script = `
    import { openSession } from "context-compactor/worker";
    const session = await openSession({ contextWindow: 9_000, summarize: async () => "never" });
    await session.append({ role: "user", content: "Hello" });
    console.log((await session.prepare()).messages.length);`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { cwd: fileURLToPath(new URL("../", import.meta.url)), timeout: 30_000 });
  assert.equal(stdout, "1\n");
});

test("P15: as CommonJS it takes a worker of the app, and says so", async () => {
  const script = `
    const { openSession } = require("context-compactor/worker");
    const { Worker } = require("node:worker_threads");
    (async () => {
      await openSession().catch(({ code, message }) => console.log(code, /openSession\\(\\{ worker \\}\\)/.test(message)));
      const worker = new Worker("require('context-compactor/worker-thread').serve()", { eval: true });
      const session = await openSession({ worker, contextWindow: 9_000 });
      await session.append({ role: "user", content: "Hello" });
      console.log((await session.prepare()).messages.length);
    })();`;
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", script], { cwd: fileURLToPath(new URL("../", import.meta.url)), timeout: 30_000 });
  assert.match(stdout, /^(stage_unavailable true\n)?1\n$/);
});
