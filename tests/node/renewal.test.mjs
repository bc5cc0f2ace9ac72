/** Memory of WebAssembly never shrinks: sessions are opened again in a fresh instance of the engine where one has far more than is used. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Worker } from "node:worker_threads";
import { openSession as openInWorker } from "context-compactor/worker";
import { chat, deferred, exchange, openStore, runtime, summariser } from "../support/api.mjs";
import { copied } from "../support/package-copy.mjs";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");

const SMALL = { format: "openai-chat", preset: "offload", contextWindow: 9_000, maxOutputTokens: 1_000, compactAt: { tokens: 3_000 } };
const LARGE = 24_000_000;
const MEGABYTE = 1 << 20;

/** A package whose engine was not started, and its memory. */
async function fresh(context) {
  const folder = copied(context);
  const from = (file) => import(pathToFileURL(join(folder, "dist", file)).href);
  const [library, { call }] = await Promise.all([from("entry/main.js"), from("engine.js")]);
  const memory = () => call((engine) => engine.wasmMemory());
  /** As after much at once. */
  const grow = () => void memory().grow(600);
  return { ...library, memory, grow, size: () => memory().buffer.byteLength };
}

/** So much is asked that the engine may be left again. */
async function askOften(session) {
  for (let nth = 0; nth < 110; nth++) await session.prepare();
}

test("P17: the memory that a large result took is given back with the next prompt", async (context) => {
  const { openSession, size } = await fresh(context);
  const session = await openSession({ ...SMALL, contextWindow: 1_000_000_000, advanced: { minOffloadGain: 1, offload: { scanFraction: 1 } } });
  const result = exchange(1, LARGE);
  const given = [...result, ...chat(5)];
  await session.append(...given);
  const before = await session.prepare();
  assert.ok(before.edits.some(({ kind }) => kind === "offload"));
  assert.ok(size() > 2 * LARGE);
  const after = await session.prepare();
  assert.ok(size() < 16 * MEGABYTE, `${size()} bytes`);
  assert.deepEqual(after.messages, before.messages);
  for (const [at, message] of given.entries()) if (message !== result[2]) assert.equal(after.messages[at], message);
  const { ref } = (await session.context.explain()).find(({ fate }) => fate === "offloaded");
  assert.equal(await session.recall.read(ref, { limit: 20 }), result[2].content.slice(0, 20));
  assert.equal((await session.archive.verify()).ok, true);
  assert.equal(size() < 64 * MEGABYTE, true);
  await session.close();
});

test("P17: an instance goes with the last of its sessions", async (context) => {
  const { openSession, memory, grow } = await fresh(context);
  const [moves, stays] = await Promise.all([openSession(SMALL), openSession(SMALL)]);
  for (const session of [moves, stays]) await session.append(...chat(2));
  let isGone = false;
  const registry = new FinalizationRegistry(() => (isGone = true));
  registry.register(memory());
  grow();
  await moves.prepare();
  const collected = async () => {
    for (let nth = 0; nth < 20 && !isGone; nth++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      gc();
    }
    return isGone;
  };
  assert.equal(await collected(), false);
  assert.equal((await stays.prepare()).messages.length, 4);
  assert.equal(await collected(), true);
  await Promise.all([moves.close(), stays.close()]);
});

test("P17: a session that stays works on in the instance of before, also with a part of the engine that comes later", async (context) => {
  const { openSession, grow, size } = await fresh(context);
  const [moves, stays] = await Promise.all([openSession(SMALL), openSession(SMALL)]);
  for (const session of [moves, stays]) await session.append(...chat(2));
  grow();
  await moves.prepare();
  assert.ok(size() < 16 * MEGABYTE);
  assert.ok(stays.context.usage().usedTokens > 0);
  await stays.append(...chat(1, 2));
  assert.equal((await stays.archive.verify()).ok, true);
  assert.equal((await moves.archive.verify()).ok, true);
  assert.ok((await stays.recall.search("parser")).length > 0);
  const { messages } = await stays.prepare();
  assert.equal(messages.length, 6);
  await Promise.all([moves.close(), stays.close()]);
});

test("P17: a family whose table came later counts as before", async (context) => {
  const { openSession, grow, size } = await fresh(context);
  const session = await openSession({ ...SMALL, model: "qwen3-coder" });
  await session.append(...chat(3));
  const before = (await session.prepare()).usage;
  grow();
  const after = (await session.prepare()).usage;
  assert.ok(size() < 16 * MEGABYTE);
  assert.deepEqual(after, before);
  await session.close();
});

test("P17: a session that cannot be opened again stays as it is", async (context) => {
  const { openSession, grow } = await fresh(context);
  const store = openStore();
  let isDown = false;
  const { read, scan } = store;
  for (const [name, call] of Object.entries({ read, scan })) {
    store[name] = (...given) => {
      if (isDown) throw new Error("down");
      return call(...given);
    };
  }
  const logged = [];
  const session = await openSession({ ...SMALL, id: "a", store, logger: (level, line) => logged.push(`${level}: ${line}`) });
  const given = chat(2);
  await session.append(...given);
  await session.prepare();
  grow();
  isDown = true;
  for (isDown of [true, false]) {
    const { messages } = await session.prepare();
    messages.forEach((message, at) => assert.equal(message, given[at]));
    assert.equal(messages.length, given.length);
    given.push(...chat(1, given.length));
    await session.append(...given.slice(-2));
  }
  const [failed, done] = logged.filter((line) => line.includes("fresh engine"));
  assert.match(failed, /^info: .* could not be opened in a fresh engine, and goes on in this one: .*down/);
  assert.match(done, /^info: .* goes on in a fresh engine/);
  await session.close();
});

test("P17: what a full store did not take is not given up", async (context) => {
  const { openSession, CompactionError, grow } = await fresh(context);
  const store = openStore();
  const session = await openSession({ ...SMALL, id: "a", store, advanced: { minOffloadGain: 1 } });
  await session.append(...exchange(1, 20_000), ...chat(4));
  store.before = () => {
    throw new CompactionError("quota_exceeded", "full");
  };
  const before = await session.prepare();
  assert.equal(before.stored, false);
  grow();
  const after = await session.prepare();
  assert.equal(after.stored, false);
  assert.deepEqual(after.messages, before.messages);
  store.before = undefined;
  assert.equal((await session.prepare()).stored, true);
  await session.close();
});

test("P17: an engine is not left again before it was looked at a hundred times", async (context) => {
  const { openSession, grow, size } = await fresh(context);
  const session = await openSession(SMALL);
  await session.append(...chat(2));
  grow();
  await session.prepare();
  assert.ok(size() < 16 * MEGABYTE);
  grow();
  await session.prepare();
  assert.ok(size() > 32 * MEGABYTE);
  await askOften(session);
  assert.ok(size() < 16 * MEGABYTE);
  await session.close();
});

test("P17: memory that is in use is kept", async (context) => {
  const { openSession, memory } = await fresh(context);
  const session = await openSession({ ...SMALL, compactAt: { tokens: 100_000_000 }, contextWindow: 1_000_000_000 });
  for (let nth = 0; nth < 6; nth++) await session.append(...exchange(nth, 6_000_000));
  const before = memory();
  await session.prepare();
  assert.equal(memory(), before);
  await session.close();
});

test("P17: calls that come meanwhile wait for it, and are made in their order", async (context) => {
  const { openSession, grow, size } = await fresh(context);
  const store = openStore();
  const { read } = store;
  let gate;
  store.read = (keys) => (gate ? gate.promise.then(() => read(keys)) : read(keys));
  const session = await openSession({ ...SMALL, id: "a", store });
  await session.append(...chat(2));
  grow();
  gate = deferred();
  const prepared = session.prepare();
  const appended = session.append(...chat(1, 2));
  assert.ok(session.context.usage().usedTokens > 0);
  const open = gate;
  gate = undefined;
  open.resolve();
  assert.equal((await prepared).messages.length, 4);
  await appended;
  assert.ok(size() < 16 * MEGABYTE);
  assert.equal((await session.prepare()).messages.length, 6);
  assert.equal((await session.archive.verify()).ok, true);
  await session.close();
});

test("P17: the memory of a call without a session is given back with the next", async (context) => {
  const { compact, size } = await fresh(context);
  const options = { format: "openai-chat", contextWindow: 20_000 };
  const messages = Array.from({ length: 40 }, (_, nth) => exchange(nth, 1_000_000)).flat();
  assert.equal((await compact(messages, options)).success, true);
  assert.ok(size() > 32 * MEGABYTE, `${size()} bytes`);
  assert.equal((await compact(chat(2), options)).messages.length, 4);
  assert.ok(size() < 16 * MEGABYTE, `${size()} bytes`);
});

test("P17: what was undone stays so, and a summariser that fails is left alone as before", async (context) => {
  const { openSession, grow, size } = await fresh(context);
  const asks = await openSession({ contextWindow: 60_000, format: "openai-chat", handoff: {} });
  const { definitions, handle } = asks.recall.tools();
  const call = { id: "call_new", type: "function", function: { name: "new_context", arguments: '{"notes":"The parser is done. Next is the printer."}' } };
  const given = [...exchange(1), ...exchange(2), { role: "assistant", content: null, tool_calls: [call] }, await handle(call)];
  await asks.append(...given);
  assert.equal((await asks.prepare({ tools: definitions })).result.trigger, "model");
  await asks.snapshots.undo();
  let calls = 0;
  const fail = async () => {
    calls++;
    throw new Error("overloaded");
  };
  const fails = await openSession({ preset: "offload", compactAt: { tokens: 300 }, summarize: { call: fail, attempts: 1 } });
  const step = async (nth) => {
    await fails.append(...chat(1, nth));
    await fails.prepare();
  };
  await fails.append(...chat(6));
  for (let nth = 0; calls === 0 && nth < 10; nth++) await step(nth);
  assert.equal(calls, 1);
  grow();
  for (let nth = 0; nth < 3; nth++) await step(nth);
  assert.equal(calls, 1);
  assert.deepEqual((await asks.prepare({ tools: definitions })).messages, given);
  assert.ok(size() < 16 * MEGABYTE);
  await Promise.all([asks.close(), fails.close()]);
});

test("P17: a goal that was set since is kept", async (context) => {
  const { openSession, grow } = await fresh(context);
  const session = await openSession({ ...SMALL, systemPrompt: "Be brief.", goal: { id: "g", description: "Fix the parser." } });
  await session.append(...chat(2));
  assert.match((await session.prepare()).system, /Fix the parser/);
  await session.goal.set({ id: "h", description: "Write the printer." });
  grow();
  assert.match((await session.prepare()).system, /Write the printer/);
  await session.close();
});

test("P17: an engine in a worker gives memory back, too", async (context) => {
  const name = `memory ${process.pid}`;
  const worker = new Worker(new URL("../support/worker-memory.mjs", import.meta.url), { workerData: { channel: name } });
  context.after(() => worker.terminate());
  const channel = new BroadcastChannel(name);
  context.after(() => channel.close());
  const ask = (what) => new Promise((resolve) => {
    channel.onmessage = ({ data }) => resolve(data);
    channel.postMessage(what);
  });
  const [session, other] = await Promise.all([openInWorker({ ...SMALL, worker }), openInWorker({ ...SMALL, worker })]);
  const given = chat(3);
  for (const one of [session, other]) await one.append(...given);
  const before = await session.prepare();
  assert.ok((await ask("grow")) > 32 * MEGABYTE);
  await session.prepare();
  const after = await session.prepare();
  assert.ok((await ask("size")) < 16 * MEGABYTE);
  assert.deepEqual([after.messages, after.usage], [before.messages, before.usage]);
  after.messages.forEach((message, at) => assert.equal(message, given[at]));
  for (let nth = 0; nth < 2; nth++) assert.equal((await other.prepare()).messages.length, 6);
  assert.equal((await session.archive.verify()).ok, true);
  await Promise.all([session.close(), other.close()]);
});

/** One conversation, with what it sends and what it tells. `each` is called before every prompt. */
async function talk({ openSession }, preset, each) {
  const told = [];
  const session = await openSession({
    ...SMALL, preset, id: "a", store: openStore(), systemPrompt: "Be brief.", summarize: summariser(), advanced: { runtime: runtime() },
  });
  for (const event of ["offload", "compact", "warning", "data-loss"]) session.on(event, ({ usage: _, ...data }) => told.push([event, data]));
  const sent = [];
  for (let nth = 0; nth < 30; nth++) {
    await session.append(...exchange(nth, nth % 3 ? 400 : 3_000));
    each(nth);
    const { messages, usage, edits } = await session.prepare();
    sent.push({ messages: JSON.parse(JSON.stringify(messages)), edits, tokens: usage.usedTokens });
  }
  const { ok } = await session.archive.verify();
  await session.close();
  return { sent, told, ok };
}

for (const preset of ["balanced", "offload", "layered"]) {
  test(`P17: with ${preset} a conversation goes on as if nothing had happened`, async (context) => {
    const library = await fresh(context);
    const same = await talk(library, preset, () => undefined);
    for (const at of [1, 8, 17, 26]) {
      const { grow, ...again } = await fresh(context);
      assert.deepEqual(await talk(again, preset, (nth) => nth === at && grow()), same, `before prompt ${at}`);
    }
  });
}
