/** Two openings of one session on one store, as in two tabs or processes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore, openSession } from "context-compactor";

const say = (content) => ({ role: "user", content });

/** Opens the session twice; the second one has read nothing of what the first one appends. */
async function twice() {
  const store = memoryStore();
  const open = () => openSession({ id: "shared", store });
  const sessions = [await open(), await open()];
  await sessions[0].append(say("from the first"));
  return sessions;
}

test("sync knows a message by its place in the log, not by its place among the tab's own", async () => {
  const [, second] = await twice();
  const mine = say("hello");
  await second.append(mine);
  // The log is: from the first, hello. The same text once more is another message, not the one of the log.
  assert.deepEqual(await second.sync([mine, say("hello")]), { appended: 0, diverged: 0 });
  assert.deepEqual(await second.sync([say("from the first"), mine, say("hello")]), { appended: 1 });
  const { messages } = await second.prepare();
  assert.deepEqual(messages.map(({ content }) => content), ["from the first", "hello", "hello"]);
  assert.equal(messages[1], mine);
});

test("an append gets through although another writes before each of its tries", async () => {
  const store = memoryStore();
  const other = await openSession({ id: "shared", store });
  let lost = 0;
  const commit = async (batch) => {
    if (lost < 10) await other.append(say(`other ${lost++}`));
    return store.commit(batch);
  };
  const session = await openSession({ id: "shared", store: { ...store, commit } });
  await session.append(say("at last"));
  assert.equal(lost, 10);
  const { messages } = await session.prepare();
  assert.deepEqual(messages.at(-1), say("at last"));
  assert.equal(messages.length, 11);
});

test("a context that was compacted elsewhere is a conflict, whatever the fallback", async () => {
  const store = memoryStore();
  const written = [];
  const open = (mark) =>
    openSession({
      id: "shared",
      store,
      fallback: "extractive",
      summarize: () => new Promise((resolve) => written.push(() => resolve(`## Current Status\n${mark}`))),
    });
  const first = await open("first");
  for (let at = 0; at < 12; at++) await first.append(say(`${at} ${"a long text ".repeat(50)}`));
  const second = await open("second");
  const compactions = [first.compact(), second.compact()];
  while (written.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  written[0]();
  const won = await compactions[0];
  assert.equal(won.success, true);
  // By this append the second one reads the new context, while its own summary is for the old one.
  await second.append(say("meanwhile"));
  written[1]();
  const lost = await compactions[1];
  assert.deepEqual([lost.success, lost.error.code], [false, "conflict"]);
  const wanted = [...won.messages, say("meanwhile")];
  assert.deepEqual(lost.messages, wanted);
  assert.deepEqual((await (await open("third")).prepare()).messages, wanted);
});
