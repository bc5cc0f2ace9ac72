/** `verify`, watermarks, and what is told and refused when the platform took something (R1 to R5). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { listSessions } from "context-compactor";
import { memoryStore, openSession } from "../support/offload.mjs";
import { fails, summariser } from "../support/api.mjs";

const say = (content) => ({ role: "user", content });

/** Watermarks in a map; what was asked of them is counted. */
function marks(over = {}) {
  const kept = new Map();
  return { kept, get: (key) => kept.get(key), set: (key, value) => void kept.set(key, value), ...over };
}

/** A store that can lose what it has. */
function frail() {
  let memory = memoryStore();
  const { caps } = memory;
  const store = {
    caps,
    read: (keys) => memory.read(keys),
    scan: (prefix, options) => memory.scan(prefix, options),
    commit: (batch) => memory.commit(batch),
    wipe: () => (memory = memoryStore()),
    /** All rows under a prefix. */
    rows: (prefix) => memory.scan(prefix, { limit: 10_000, maxBytes: 1 << 30 }),
    remove: (key) => memory.commit({ expect: [], puts: [], deletes: [key], durability: "strict" }),
    put: (key, value) => memory.commit({ expect: [], puts: [[key, value]], deletes: [], durability: "strict" }),
  };
  return store;
}

const open = (store, over = {}) => openSession({ id: "s", store, contextWindow: 32_000, summarize: summariser(), ...over });

const refuses = (promise, code, field) => assert.rejects(promise, fails(code, field === undefined ? {} : { field }));

/** What a session told, as far as it has told it. */
async function told(session, event = "data-loss") {
  const heard = [];
  const stop = session.on(event, (data) => heard.push(data));
  await new Promise((resolve) => setImmediate(resolve));
  stop();
  return heard;
}

test("verify: what was written holds, and what the store changed is named and not quoted", async () => {
  const store = frail();
  const session = await open(store);
  assert.deepEqual(await session.archive.verify(), { ok: true, problems: [] });
  await session.append(say("a secret of the user"), say("another"), say("a third"));
  const stages = [];
  session.on("progress", ({ stage, done, total }) => stages.push([stage, done, total]));
  assert.deepEqual(await session.archive.verify(), { ok: true, problems: [] });
  assert.deepEqual(stages, [["verify", 3, 3]]);
  const [key, value] = store.rows(["log"])[1];
  value[value.length >> 1] ^= 1;
  await store.put(key, value);
  const { ok, problems } = await session.archive.verify();
  assert.equal(ok, false);
  assert.deepEqual(problems, ["I1: log row 1 is not what was written"]);
});

test("verify: a signal stops it, a call beside it goes on, and the session ends after it", async () => {
  const store = frail();
  const session = await open(store);
  await session.append(say("one"));
  await refuses(session.archive.verify({ signal: AbortSignal.abort() }), "aborted");
  await refuses(session.archive.verify({ page: 1 }), "invalid_option", "page");
  const controller = new AbortController();
  let reads = -Infinity;
  const slow = await open({
    ...store,
    scan: async (prefix, options) => {
      if (++reads === 2) controller.abort();
      return store.scan(prefix, options);
    },
  });
  reads = 0;
  await refuses(slow.archive.verify({ signal: controller.signal }), "aborted");
  assert.equal(reads, 2);
  const checking = slow.archive.verify();
  await slow.append(say("beside it"));
  const closing = slow.close();
  assert.deepEqual(await checking, { ok: true, problems: [] });
  await closing;
  await refuses(slow.archive.verify(), "closed");
});

test("R1: a session that was there and is not is refused with data_loss until the app accepts that", async () => {
  const store = frail();
  const watermark = marks();
  const session = await open(store, { advanced: { watermark } });
  await session.append(say("one"), say("two"));
  await session.close();
  assert.equal(watermark.kept.size, 1);
  store.wipe();
  await refuses(open(store, { advanced: { watermark } }), "data_loss");
  await refuses(open(store, { advanced: { watermark } }), "data_loss");
  const anew = await open(store, { advanced: { watermark }, acceptDataLoss: true });
  const [loss, ...more] = await told(anew);
  assert.deepEqual([loss.kind, loss.lostRecords, more.length], ["session", 2, 0]);
  await anew.append(say("anew"));
  assert.deepEqual(await told(await open(store, { advanced: { watermark } })), []);
  // A session that the app deleted is not lost.
  await anew.close({ delete: true });
  assert.deepEqual(await told(await open(store, { advanced: { watermark } })), []);
});

test("R3: a store that went back says how many records are gone, at every opening until something is appended", async () => {
  const store = frail();
  const watermark = marks();
  const session = await open(store, { advanced: { watermark } });
  await session.append(say("one"));
  const before = ["meta", "sessions", "log"].flatMap((table) => store.rows([table]));
  await session.append(say("two"), say("three"));
  store.wipe();
  for (const [key, value] of before) await store.put(key, value);
  for (let nth = 0; nth < 2; nth++) {
    const [loss] = await told(await open(store, { advanced: { watermark } }));
    assert.deepEqual([loss.kind, loss.lostRecords], ["records", 2]);
  }
  const [loss] = await told(await open(store, { advanced: { watermark } }));
  assert.match(loss.reason, /2 records/);
  await (await open(store, { advanced: { watermark } })).append(say("on"));
  assert.deepEqual(await told(await open(store, { advanced: { watermark } })), []);
});

test("R2: a session's row that is gone is made again, and that is told to who listens first", async () => {
  const store = frail();
  await (await open(store)).append(say("one"), say("two"));
  await store.remove(store.rows(["sessions"])[0][0]);
  const session = await open(store);
  const [loss, ...more] = await told(session);
  assert.deepEqual([loss.kind, more.length], ["repaired", 0]);
  assert.deepEqual(await told(session), [], "once");
  assert.deepEqual((await session.prepare()).messages, [say("one"), say("two")]);
  assert.deepEqual(await session.archive.verify(), { ok: true, problems: [] });
});

test("what the store says of its platform is told, and a named session needs the app's word", async () => {
  const store = { ...frail(), dataLoss: async () => "the database was damaged" };
  const [loss] = await told(await openSession({ store }));
  assert.deepEqual(loss, { kind: "platform", reason: "the database was damaged" });
  await refuses(open(store), "data_loss");
  assert.equal((await told(await open(store, { acceptDataLoss: true })))[0].kind, "platform");
});

test("a watermark that fails is a warning once, and neither it nor a slow one holds up an append", async () => {
  const broken = () => {
    throw new Error("no room");
  };
  for (const set of [broken, async () => broken()]) {
    const store = frail();
    const session = await open(store, { advanced: { watermark: marks({ set }) } });
    const warnings = [];
    session.on("warning", (warning) => warnings.push(warning));
    await session.append(say("one"));
    await session.append(say("two"));
    await session.close();
    assert.equal(warnings.length, 1);
    assert.match(warnings[0].message, /watermark .*no room/);
  }
  const session = await open(frail(), { advanced: { watermark: marks({ get: broken }) } });
  await session.append(say("one"));
  // Slow: only the newest is written, and closing waits for it.
  const written = [];
  let finish;
  const set = (key, value) => {
    written.push(Number(value.split(".")[1]));
    return new Promise((resolve) => (finish = resolve));
  };
  const slow = await open(frail(), { advanced: { watermark: marks({ set }) } });
  for (let nth = 0; nth < 5; nth++) await slow.append(say(String(nth)));
  assert.deepEqual(written, [1]);
  const closing = slow.close();
  finish();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(written, [1, 5]);
  finish();
  await closing;
});

test("a store with a name keeps its watermarks in localStorage, where there is one", async () => {
  const items = new Map();
  const storage = {
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
    removeItem: (key) => void items.delete(key),
  };
  const before = Object.getOwnPropertyDescriptor(globalThis, "localStorage");
  Object.defineProperty(globalThis, "localStorage", { value: storage, configurable: true });
  try {
    const store = Object.assign(frail(), { name: "chats" });
    const session = await open(store);
    await session.append(say("one"));
    const [key] = items.keys();
    assert.match(key, /^context-compactor\/chats\/[a-z2-7]{26}$/);
    assert.doesNotMatch(items.get(key), /one/);
    const nameless = await open(frail());
    await nameless.append(say("one"));
    assert.equal(items.size, 1);
    store.wipe();
    await refuses(open(store), "data_loss");
    const other = Object.assign(frail(), { name: "drafts" });
    await (await open(other)).append(say("another database"));
    assert.equal(items.size, 2);
    await (await open(other)).close({ delete: true });
    assert.equal(items.size, 1);
  } finally {
    if (before) Object.defineProperty(globalThis, "localStorage", before);
    else delete globalThis.localStorage;
  }
});

test("options: a watermark has both of its functions", async () => {
  await refuses(open(memoryStore(), { advanced: { watermark: { get() {} } } }), "invalid_option", "advanced.watermark.set");
  await refuses(open(memoryStore(), { advanced: { watermark: "local" } }), "invalid_option", "advanced.watermark.get");
  await refuses(open(memoryStore(), { acceptDataLoss: "yes" }), "invalid_option", "acceptDataLoss");
});

test("D19: a session that must exist is not begun in its place", async () => {
  const store = memoryStore();
  const refused = await openSession({ id: "chat", store, contextWindow: 8_000, mustExist: true }).catch((error) => error);
  assert.equal(refused.code, "data_loss");
  assert.match(refused.message, /"chat".*mustExist.*import a copy/s);
  assert.deepEqual(await listSessions(store), [], "nothing was begun");
  const session = await openSession({ id: "chat", store, contextWindow: 8_000 });
  await session.append({ role: "user", content: "Hello." });
  await session.close();
  const again = await openSession({ id: "chat", store, contextWindow: 8_000, mustExist: true });
  assert.equal(again.archive.metadata().totalMessages, 1);
  await again.close({ delete: true });
  await refuses(openSession({ id: "chat", store, contextWindow: 8_000, mustExist: true }), "data_loss");
  await refuses(openSession({ store, contextWindow: 8_000, mustExist: true }), "invalid_option", "mustExist");
});

test("D22: exactly one acknowledged record that is gone is one lost record", async () => {
  const watermark = marks();
  const [before, after] = [memoryStore(), memoryStore()];
  // The same session in two stores, of which one misses the last append.
  const both = { ...before, commit: (batch) => (before.commit(batch), after.commit(batch)) };
  const session = await open(both, { advanced: { watermark } });
  await session.append(say("one"));
  const behind = await open({ ...after, commit: (batch) => after.commit(batch) }, { advanced: { watermark } });
  await behind.append(say("two"));
  const [loss, ...more] = await told(await open(before, { advanced: { watermark } }));
  assert.deepEqual([loss.kind, loss.lostRecords, more.length], ["records", 1, 0]);
  assert.deepEqual(await told(await open(after, { advanced: { watermark } })), []);
});

test("D22: what a session was handed and what it made of it is written as durable as can be; only what saves calls is not", async () => {
  const store = memoryStore();
  const kinds = new Map();
  const seen = (batch) => {
    const tables = batch.puts.map(([[table]]) => table);
    const kind = ["views", "blobs", "log", "jobs", "sessions", "meta"].find((table) => tables.includes(table)) ?? "deletion";
    kinds.set(kind, (kinds.get(kind) ?? new Set()).add(batch.durability));
    return store.commit(batch);
  };
  const session = await open({ ...store, commit: seen }, { preset: "offload", contextWindow: 8_000, presetOptions: { compactTriggerThreshold: 1 } });
  for (let nth = 0; nth < 12; nth++) {
    const call = { id: `c${nth}`, type: "function", function: { name: "read", arguments: "{}" } };
    await session.append(say(`question ${nth}`), { role: "assistant", content: null, tool_calls: [call] });
    await session.append({ role: "tool", tool_call_id: `c${nth}`, content: `result ${nth} `.repeat(400) }, { role: "assistant", content: "Done." });
    await session.prepare();
  }
  await session.compact();
  await session.snapshots.take();
  await session.goal.set({ id: "g", description: "Ship it." });
  await session.close({ delete: true });
  const strict = ["views", "log", "sessions", "deletion"];
  for (const kind of strict) assert.deepEqual([...(kinds.get(kind) ?? [])], ["strict"], `${kind}: ${[...kinds.keys()]}`);
  assert.deepEqual([...kinds.get("jobs")], ["relaxed"]);
});

test("D22: a lower watermark does not take the place of a higher one, whoever writes last", async () => {
  const kept = new Map();
  const waiting = [];
  const plain = { get: (key) => kept.get(key), set: (key, value) => void kept.set(key, value) };
  let holds = false;
  const held = { ...plain, get: async (key) => (holds && (await new Promise((go) => waiting.push(go))), kept.get(key)) };
  const store = memoryStore();
  const [slow, fast] = [await open(store, { advanced: { watermark: held } }), await open(store, { advanced: { watermark: plain } })];
  // Before the first commit of a new session its mark is asked for.
  await slow.append(say("begun"));
  holds = true;
  await slow.append(say("one"));
  await slow.append(say("two"));
  await fast.append(say("three"));
  const [[key, highest]] = kept;
  holds = false;
  waiting.forEach((go) => go());
  await slow.close();
  assert.equal(waiting.length, 1, "the first was asked about, the second waits behind it");
  assert.equal(kept.get(key), highest);
});

test("D22: close waits for a watermark that is being written", async () => {
  let written = false;
  let release;
  const set = () => new Promise((resolve) => (release = () => ((written = true), resolve())));
  const session = await open(memoryStore(), { advanced: { watermark: { get: () => undefined, set } } });
  await session.append(say("one"));
  const closing = session.close().then(() => written);
  setTimeout(() => release(), 20);
  assert.equal(await closing, true);
});
