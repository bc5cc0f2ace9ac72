/** Handles on one session hear of each other: at the next look, or at once where the store tells. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { fileStore } from "context-compactor/node";
import { bundle, load } from "../support/bundle.mjs";
import { folder } from "../support/file-store.mjs";
import { CompactionError, memoryStore, openSession } from "../support/offload.mjs";

const say = (content) => ({ role: "user", content });
const long = Array.from({ length: 12 }, (_, at) => say(`${at} ${"some long text ".repeat(60)}`));
const moment = (ms = 5) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for as many entries, as long as a busy machine needs, and then a moment for one too many. The caller asserts. */
async function arrived(list, count) {
  for (const deadline = Date.now() + 10_000; list.length < count && Date.now() < deadline; ) await moment();
  await moment(20);
}

/** A session, and what it tells of changes. */
async function opened(store, options = {}) {
  const listeners = store.listeners?.size;
  const session = await openSession({ id: "shared", store, contextWindow: 32_000, summarize: () => "## Current Status\nfine", ...options });
  const heard = [];
  session.on("change", (change) => heard.push(change));
  // A session in a worker listens two messages later.
  while (store.listeners?.size === listeners && listeners !== undefined) await moment();
  return { session, heard };
}

/** A store in memory that tells every listener of a commit when `tell` is called, or at once. */
function tellingStore(atOnce = true) {
  const store = memoryStore();
  const listeners = new Set();
  const written = [];
  const tell = () => {
    for (const [sid, ver] of written.splice(0)) for (const listener of [...listeners]) listener(sid, ver);
  };
  return {
    ...store,
    listeners,
    tell,
    commit(batch) {
      void store.commit(batch);
      const key = batch.puts.map(([key]) => key).find(([table, , ...rest]) => table === "sessions" && rest.length === 0);
      const version = batch.expect.find(({ key: [table] }) => table === "sessions")?.version;
      if (key) written.push([key[1], (version ?? 0) + 1]);
      // As late as another tab hears of it.
      if (atOnce) setTimeout(tell);
    },
    changes(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

const CHANGES = {
  append: async (session) => session.append(say("one"), say("two")),
  goal: async (session) =>
    session.goal.set({ id: "g", description: "g", priority: "high", status: "active", checkpoints: [], decisions: [], artifacts: [] }),
  compaction: async (session) => assert.equal((await session.compact()).success, true),
};

for (const name of ["memoryStore", "fileStore", "a store that tells"]) {
  for (const [what, change] of Object.entries(CHANGES)) {
    test(`D20: ${what} of another handle is told once, and never one's own: ${name}`, async (context) => {
      const directory = name === "fileStore" ? join(await folder(context), "store") : "";
      const shared = name === "memoryStore" ? memoryStore() : tellingStore();
      const store = () => (name === "fileStore" ? fileStore(directory) : shared);
      const writer = await opened(store());
      await writer.session.append(...long);
      const reader = await opened(store());
      await change(writer.session);
      const looked = name === "a store that tells";
      await arrived(reader.heard, looked ? 1 : 0);
      const expected = { messages: what === "append" ? 14 : 12, generation: what === "compaction" ? 1 : 0 };
      assert.deepEqual(reader.heard, looked ? [expected] : []);
      assert.equal(reader.session.archive.metadata().totalMessages, looked ? expected.messages : 12);
      const prepared = await reader.session.prepare();
      assert.deepEqual(prepared.messages, (await writer.session.prepare()).messages);
      await reader.session.prepare();
      assert.deepEqual(reader.heard, [expected]);
      assert.deepEqual(writer.heard, []);
      // The other way round, by an append that comes second.
      await reader.session.append(say("back"));
      await writer.session.append(say("and forth"));
      const both = { ...expected, messages: expected.messages + 1 };
      if (!looked) assert.deepEqual(writer.heard, [both]);
      else assert.ok(writer.heard.some((heard) => heard.messages >= both.messages));
      for (const { session } of [writer, reader]) await session.close();
    });
  }
}

for (const [how, isWritten, told] of [
  ["was written", true, []],
  ["gave way to another's", false, [{ messages: 1, generation: 0 }]],
]) {
  test(`D20: an append whose answer was lost and that ${how}: only what others wrote is told`, async () => {
    const store = memoryStore();
    const other = await openSession({ id: "shared", store });
    let isFirst = true;
    const commit = async (batch) => {
      if (!isFirst) return store.commit(batch);
      isFirst = false;
      await (isWritten ? store.commit(batch) : other.append(say("other")));
      throw new CompactionError("indeterminate", "the answer was lost");
    };
    const { session, heard } = await opened({ ...store, commit });
    await session.append(say("mine"));
    const texts = (await session.prepare()).messages.map(({ content }) => content);
    assert.deepEqual(texts, isWritten ? ["mine"] : ["other", "mine"]);
    assert.deepEqual(heard, told);
  });
}

test("D20: what was heard of waits for the call that is under way, and many are one look", async () => {
  const store = tellingStore(false);
  const writer = await opened(store);
  await writer.session.append(say("first"));
  let reads = 0;
  let release;
  const slow = {
    ...store,
    read: (keys) => (reads++, store.read(keys)),
    commit: async (batch) => {
      await new Promise((resolve) => (release = resolve));
      return store.commit(batch);
    },
  };
  const reader = await opened(slow);
  const warned = [];
  reader.session.on("warning", ({ code }) => warned.push(code));
  const mine = reader.session.append(say("mine"));
  while (!release) await moment();
  for (let nth = 0; nth < 5; nth++) await writer.session.append(say(`${nth}`));
  reads = 0;
  store.tell();
  await moment(20);
  assert.deepEqual([reads, reader.session.archive.metadata().totalMessages, reader.heard], [0, 1, []]);
  const first = release;
  release = undefined;
  first();
  while (!release) await moment();
  release();
  await mine;
  store.tell();
  await arrived(reader.heard, 1);
  // By the append itself, which came second; there was nothing left to hear of.
  assert.deepEqual(reader.heard, [{ messages: 6, generation: 0 }]);
  reads = 0;
  for (let nth = 5; nth < 10; nth++) await writer.session.append(say(`${nth}`));
  store.tell();
  await arrived(reader.heard, 2);
  assert.deepEqual(reader.heard.slice(1), [{ messages: 12, generation: 0 }]);
  assert.ok(reads <= 3, `${reads} reads for five commits`);
  assert.equal(reader.session.archive.metadata().totalMessages, 12);
  assert.deepEqual(warned, [], "no look meets a call that is under way");
});

// The second is none that goes away by itself: a newer release wrote.
for (const code of ["store_unavailable", "schema_too_new"]) {
  test(`D20: a look that fails is a warning, and the next call goes on: ${code}`, async () => {
    const store = tellingStore(false);
    const writer = await opened(store);
    await writer.session.append(say("first"));
    let broken = false;
    const read = (keys) => {
      if (broken) throw new CompactionError(code, "not now");
      return store.read(keys);
    };
    const reader = await opened({ ...store, read });
    const warned = [];
    reader.session.on("warning", ({ code }) => warned.push(code));
    broken = true;
    await writer.session.append(say("second"));
    store.tell();
    await arrived(warned, 1);
    assert.deepEqual([warned, reader.heard], [[code], []]);
    broken = false;
    assert.equal((await reader.session.prepare()).messages.length, 2);
    assert.deepEqual(reader.heard, [{ messages: 2, generation: 0 }]);
  });
}

test("D20: a session that was closed or deleted hears nothing more, and fails nobody", async () => {
  const store = tellingStore(false);
  const [first, second] = [await opened(store), await opened(store)];
  await first.session.append(say("hello"));
  store.tell();
  await arrived(second.heard, 1);
  assert.equal(second.heard.length, 1);
  const [, late] = [...store.listeners];
  await first.session.close({ delete: true });
  late("anything", 9);
  store.tell();
  await moment();
  await second.session.close();
  assert.equal(store.listeners.size, 0);
  late("anything", 10);
  await moment();
  assert.equal(second.heard.length, 1);
});

test("D20: what is said on a channel is checked, and only of this database", async () => {
  const { Tabs } = await load('export { Tabs } from "./js/store/tabs.ts";');
  const [mine, theirs, others] = [new Tabs(), new Tabs(), new Tabs()];
  for (const [tabs, id] of [[mine, "tabs-one"], [theirs, "tabs-one"], [others, "tabs-two"]]) tabs.tune(id);
  const heard = [];
  const ends = [mine, theirs, others].map((tabs, nth) => tabs.listen((...said) => heard.push([nth, ...said])));
  const stranger = new BroadcastChannel("context-compactor/tabs-one");
  for (const said of [null, 7, "text", {}, { sid: 1, ver: 1 }, { sid: "s", ver: 1.5 }, { sid: "s" }]) stranger.postMessage(said);
  theirs.tell("s", 3);
  while (heard.length < 2) await moment();
  await moment(20);
  // The store hears itself, too: another session of it may not know.
  assert.deepEqual(heard.sort(), [[0, "s", 3], [1, "s", 3]]);
  // A database that was begun anew is another one.
  mine.tune("tabs-two");
  others.tell("s", 4);
  while (heard.length < 4) await moment();
  assert.deepEqual(heard.slice(2).sort(), [[0, "s", 4], [2, "s", 4]]);
  for (const end of ends) end();
  // Nobody listens any more, so that nothing is said either.
  let said = 0;
  stranger.onmessage = () => said++;
  theirs.tell("s", 5);
  await moment(20);
  assert.deepEqual([heard.length, said], [4, 0]);
  stranger.close();
});

test("D20: an open channel keeps no process alive", { timeout: 20_000 }, async (context) => {
  const script = join(await folder(context), "listen.mjs");
  const source = 'import { Tabs } from "./js/store/tabs.ts"; const tabs = new Tabs(); tabs.tune("x"); tabs.listen(() => {}); tabs.tell("s", 1);';
  await bundle(source, script);
  const [code] = await once(spawn(process.execPath, [script]), "exit");
  assert.equal(code, 0);
});
