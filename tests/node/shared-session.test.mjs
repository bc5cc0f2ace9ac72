/** Two openings of one session on one store, as in two tabs or processes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { join } from "node:path";
import { memoryStore, openSession } from "../support/offload.mjs";
import { fails } from "../support/api.mjs";
import { fileStore } from "context-compactor/node";
import { folder } from "../support/file-store.mjs";

const say = (content) => ({ role: "user", content });

/** Opens the session twice; the second one has read nothing of what the first one appends. */
async function twice() {
  const store = memoryStore();
  const open = () => openSession({ id: "shared", store, onDiverged: "throw" });
  const sessions = [await open(), await open()];
  await sessions[0].append(say("from the first"));
  return sessions;
}

test("sync knows a message by its place in the log, not by its place among the tab's own", async () => {
  const [, second] = await twice();
  const mine = say("hello");
  await second.append(mine);
  // The log is: from the first, hello. The same text once more is another message, not the one of the log.
  await assert.rejects(second.sync([mine, say("hello")]), fails("diverged", { index: 0 }));
  assert.deepEqual(await second.sync([say("from the first"), mine, say("hello")]), { appended: 1, recognized: 2 });
  const { messages } = await second.prepare();
  assert.deepEqual(messages.map(({ content }) => content), ["from the first", "hello", "hello"]);
  assert.equal(messages[1], mine);
});

for (const name of ["memoryStore", "fileStore"]) {
  test(`what another handle appended is in the transcript at once: ${name}`, async (context) => {
    const directory = name === "fileStore" ? join(await folder(context), "store") : "";
    const shared = memoryStore();
    const store = () => (name === "fileStore" ? fileStore(directory) : shared);
    const open = () => openSession({ id: "shared", store: store(), summarize: { fallback: "extractive" } });
    const [first, second] = [await open(), await open()];
    await first.append(say("the raven flies at midnight"), say("and the owl"));
    const all = [];
    for await (const { content } of second.archive.history()) all.push(content);
    assert.deepEqual(all, ["the raven flies at midnight", "and the owl"]);
    const archive = async (session) => new Response(session.archive.jsonl()).text();
    assert.equal(await archive(second), await archive(first));
    assert.match(await second.archive.markdown(), /midnight/);
    const [hit] = await second.recall.search("raven");
    assert.match(await second.recall.read(hit.ref), /flies at midnight/);
    await second.append(say("mine"));
    assert.equal((await second.prepare()).messages.length, 3);
  });
}

test("an append gets through although another writes all the time", async () => {
  const store = memoryStore();
  const other = await openSession({ id: "shared", store });
  let lost = 0;
  // Before each of the first tries, and while the next ones wait.
  const commit = async (batch) => {
    if (lost < 5) await other.append(say(`other ${lost++}`));
    return store.commit(batch);
  };
  const session = await openSession({ id: "shared", store: { ...store, commit } });
  const writing = setInterval(() => void other.append(say("more")), 1);
  await session.append(say("at last")).finally(() => clearInterval(writing));
  assert.equal(lost, 5);
  const { messages } = await session.prepare();
  assert.deepEqual(messages.at(-1), say("at last"));
  assert.ok(messages.filter(({ content }) => content === "more").length > 0);
});

test("a context that was compacted elsewhere is a conflict, whatever the fallback", async () => {
  const store = memoryStore();
  const written = [];
  const open = (mark) =>
    openSession({
      id: "shared",
      store,
      summarize: { call: () => new Promise((resolve) => written.push(() => resolve(`## Current Status\n${mark}`))), fallback: "extractive" },
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
