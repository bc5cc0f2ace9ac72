/** Sessions by key (E5): one open session for each conversation, and only so many. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { listSessions, memoryStore, openSession, sessionPool } from "context-compactor";
import { generator } from "../support/random.mjs";

const OPTIONS = { contextWindow: 32_000 };
const said = (content) => ({ role: "user", content });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function historyOf(session) {
  const found = [];
  for await (const { content } of session.archive.history()) found.push(content);
  return found;
}

/** A store that knows how many sessions of a pool are open: each listens to its changes until it is closed. */
function counted() {
  const store = memoryStore();
  const counts = { open: 0, most: 0 };
  const changes = () => {
    counts.most = Math.max(counts.most, ++counts.open);
    let ended = false;
    return () => {
      if (!ended) counts.open--;
      ended = true;
    };
  };
  return { counts, store: { ...store, changes } };
}

test("E5 1,000 threads × 20 messages in random order over max: 10: every log exact, at most 10 and the busy ones open", async () => {
  const { counts, store } = counted();
  const pool = sessionPool({ ...OPTIONS, store, max: 10 });
  const random = generator(5);
  const threads = Array.from({ length: 1_000 }, (_, i) => ({ id: `thread ${i}`, sent: 0 }));
  const left = threads.flatMap((thread) => Array.from({ length: 20 }, () => thread));
  let busy = 0;
  let over = 0;
  const worker = async () => {
    while (left.length > 0) {
      const at = random(left.length);
      const [thread] = left.splice(at, 1, left.at(-1));
      left.pop();
      // Messages of a thread are appended in its order, whoever does it.
      busy++;
      const content = `${thread.id}: ${thread.sent++}`;
      thread.last = (thread.last ?? Promise.resolve()).then(async () => {
        const session = await pool.sessionFor(thread.id);
        over = Math.max(over, counts.open - 10 - busy);
        await session.append(said(content));
      });
      await thread.last;
      busy--;
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  assert.ok(over <= 0, `${over} more were open than max and those at work`);
  assert.ok(counts.open <= 10, `${counts.open} are open`);
  await pool.close();
  assert.equal(counts.open, 0);
  for (const { id } of threads) {
    const session = await openSession({ ...OPTIONS, id, store });
    assert.deepEqual(await historyOf(session), Array.from({ length: 20 }, (_, at) => `${id}: ${at}`));
    await session.close();
  }
});

test("E5 calls at the same time get one session, and a failure is not kept", async () => {
  const store = memoryStore();
  let fails = false;
  const read = (keys) => {
    if (fails) throw new Error("the store is away");
    return store.read(keys);
  };
  const pool = sessionPool({ ...OPTIONS, store: { ...store, read } });
  const sessions = await Promise.all(Array.from({ length: 5 }, () => pool.sessionFor("a")));
  assert.equal(new Set(sessions).size, 1);
  fails = true;
  await assert.rejects(pool.sessionFor("b"));
  fails = false;
  await (await pool.sessionFor("b")).append(said("hello"));
  await pool.close();
  await assert.rejects(pool.sessionFor("a"), { code: "closed" });
  await assert.rejects(pool.delete("a"), { code: "closed" });
  await pool.close();
});

test("E5 lists of names never name the session of another", async () => {
  const store = memoryStore();
  const { sessionFor, close } = sessionPool({ ...OPTIONS, store });
  const ids = ["a", ["a"], ["a", "b"], '["a","b"]', ['["a","b"]'], ["a", "b", "c"], ["a,b"], ["a", '"b"']];
  const sessions = await Promise.all(ids.map((id) => sessionFor(id)));
  assert.equal(sessions[0], sessions[1]);
  assert.equal(sessions[3], sessions[4]);
  assert.equal(new Set(sessions).size, 6);
  assert.equal(sessions[0].id, "a");
  for (const wrong of ["", [], ["a", ""], [7], undefined, { a: 1 }]) {
    await assert.rejects(sessionFor(wrong), { code: "invalid_option", field: "threadId" });
  }
  await close();
});

test("E5 none is closed that is busy: an append, a summary, an answer that is awaited, or just asked for", async () => {
  const { counts, store } = counted();
  let answer;
  const summarize = () => new Promise((resolve) => (answer = () => resolve("## Current Status\nIt goes on.")));
  const pool = sessionPool({ ...OPTIONS, store, max: 1, preset: "offload", summarize, keep: { messages: 2 } });
  const long = await pool.sessionFor("summary");
  for (let at = 0; at < 8; at++) await long.append({ role: at % 2 ? "assistant" : "user", content: `${at} ${"word ".repeat(200)}` });
  const compacting = long.compact();
  while (!answer) await pause(5);
  const waiting = await pool.sessionFor("answer");
  await waiting.append(said("a question"));
  await waiting.prepare();
  const asked = await pool.sessionFor("asked");
  for (let at = 0; at < 5; at++) await (await pool.sessionFor(`other ${at}`)).append(said("x"));
  assert.ok(counts.open <= 4, `${counts.open} are open`);
  await asked.append(said("late"));
  await waiting.append({ role: "assistant", content: "the answer" });
  answer();
  assert.equal((await compacting).success, true);
  while (counts.open > 1) await pause(5);
  await assert.rejects(asked.append(said("too late")), { code: "closed" });
  assert.deepEqual(await historyOf(await pool.sessionFor("asked")), ["late"]);
  assert.deepEqual(await historyOf(await pool.sessionFor("answer")), ["a question", "the answer"]);
  await pool.close();
});

test("E5 idle ones are closed after idleMs, the timer keeps no process alive", async () => {
  const { counts, store } = counted();
  const pool = sessionPool({ ...OPTIONS, store, idleMs: 20 });
  await (await pool.sessionFor("a")).append(said("x"));
  await (await pool.sessionFor("b")).append(said("y"));
  assert.ok(counts.most > 0);
  for (let waits = 0; counts.open > 0 && waits < 200; waits++) await pause(20);
  assert.equal(counts.open, 0);
  assert.deepEqual(await historyOf(await pool.sessionFor("a")), ["x"]);
  await pool.close();
});

test("E5 deletes a conversation, open or not; the next of its name is empty", async () => {
  const store = memoryStore();
  const pool = sessionPool({ ...OPTIONS, store });
  const before = await pool.sessionFor("a");
  await before.append(said("secret"));
  const [, , after] = await Promise.all([pool.delete("a"), pool.delete("never"), pool.sessionFor("a")]);
  assert.notEqual(after, before);
  assert.deepEqual(await historyOf(after), []);
  await assert.rejects(before.append(said("x")), { code: "closed" });
  await after.append(said("new"));
  await after.close();
  assert.deepEqual(await historyOf(await pool.sessionFor("a")), ["new"]);
  await (await pool.sessionFor("a")).close({ delete: true });
  assert.deepEqual(await listSessions(store), []);
  await pool.close();
});

test("E5 wrong options are refused at once", () => {
  const store = memoryStore();
  for (const [options, field] of [
    [undefined, "store"],
    [{}, "store"],
    [{ store: "memory" }, "store"],
    [{ store, max: 0 }, "max"],
    [{ store, idleMs: -1 }, "idleMs"],
    [{ store, id: "a" }, "id"],
    [{ store, parent: "a" }, "parent"],
    [{ store, contextWidow: 8 }, "contextWidow"],
  ]) {
    assert.throws(() => sessionPool(options), { code: "invalid_option", field }, field);
  }
});
