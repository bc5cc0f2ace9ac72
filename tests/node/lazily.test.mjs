/** What a call returns is made when it is read, and tells of the moment at which it was returned. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore, openSession } from "context-compactor";

const turn = (nth) => [
  { role: "user", content: `Question ${nth}: what does src/file_${nth}.rs do?` },
  { role: "assistant", content: `It runs job ${nth}.` },
];
const turns = (count, first = 0) => Array.from({ length: count }, (_, nth) => turn(first + nth)).flat();
const open = (options) => openSession({ store: memoryStore(), format: "openai-chat", ...options });

/** Elements of arrays that `work` copies. */
async function copied(work) {
  const { slice } = Array.prototype;
  let count = 0;
  Array.prototype.slice = function (...range) {
    const copy = slice.apply(this, range);
    count += copy.length;
    return copy;
  };
  try {
    await work();
  } finally {
    Array.prototype.slice = slice;
  }
  return count;
}

test("p11_a prompt that nobody reads is not copied, and one that is read is copied once", async () => {
  const session = await open();
  await session.append(...turns(500));
  await session.prepare();
  let prepared;
  const unread = await copied(async () => {
    await session.append(...turns(1, 500));
    prepared = await session.prepare();
  });
  assert.ok(unread < 100, `${unread} elements`);
  assert.equal(await copied(() => void prepared.messages), 1_002);
  assert.equal(await copied(() => void prepared.messages), 0);
});

test("p11_an earlier prompt stays as it was, whenever it is read and whatever the app does to it", async () => {
  const session = await open();
  const messages = turns(3);
  await session.append(...messages.slice(0, 2));
  const first = await session.prepare();
  await session.append(...messages.slice(2, 4));
  const second = await session.prepare();
  second.messages.length = 0;
  await session.append(...messages.slice(4));
  const third = await session.prepare();
  const unread = await session.prepare();
  await session.compact();
  assert.deepEqual(first.messages, messages.slice(0, 2));
  assert.deepEqual(second.messages, []);
  assert.equal(second.messages, second.messages);
  assert.deepEqual({ ...third }.messages, messages);
  assert.equal(Object.keys(third)[0], "messages");
  unread.messages = [];
  assert.deepEqual(JSON.parse(JSON.stringify(unread)).messages, []);
});

test("p2_a ledger that is read later tells of its own compaction", async () => {
  const session = await open({ contextWindow: 8_000, summarize: "extractive" });
  await session.append(...turns(100));
  const first = await session.compact();
  const fates = await session.context.explain();
  await session.append(...turns(100, 100));
  const second = await session.compact();
  assert.ok(first.changed && second.changed);
  assert.deepEqual(first.ledger, fates);
  assert.equal(first.ledger, first.ledger);
  assert.deepEqual({ ...second }.ledger, await session.context.explain());
  assert.deepEqual(structuredClone(first).ledger, fates);
});
