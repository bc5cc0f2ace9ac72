/** What `prepare` hands out when little has changed since the last one: the engine tells what was added only. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore, openSession } from "../support/offload.mjs";
import { chat, exchange, SUMMARY } from "../support/api.mjs";

const open = (options = {}) => openSession({ store: memoryStore(), contextWindow: 200_000, ...options });
const same = (messages, expected) => {
  assert.equal(messages.length, expected.length);
  messages.forEach((message, index) => assert.equal(message, expected[index], `message ${index}`));
};

test("what an app does with the array that it was handed is not in the next one", async () => {
  const session = await open();
  const history = chat(2);
  await session.append(...history);
  const first = (await session.prepare()).messages;
  first.reverse().push({ role: "user", content: "Only for this call." });
  const next = exchange(1);
  await session.append(...next);
  const { messages } = await session.prepare();
  same(messages, [...history, ...next]);
  assert.notEqual((await session.prepare()).messages, messages);
});

test("objects that a sync hands over are handed out from then on", async () => {
  const [store, id] = [memoryStore(), "s"];
  const before = await open({ store, id });
  const history = chat(3);
  await before.append(...history);
  await before.close();
  const session = await open({ store, id });
  const read = (await session.prepare()).messages;
  assert.notEqual(read[0], history[0]);
  assert.deepEqual(read, history);
  await session.sync(history);
  same((await session.prepare()).messages, history);
  const more = chat(1);
  await session.sync([...history, ...more]);
  same((await session.prepare()).messages, [...history, ...more]);
});

test("going back, summaries and messages that wait are handed out as they are", async () => {
  const session = await open({ summarize: async () => SUMMARY });
  const history = [...chat(3), ...exchange(1)];
  await session.append(...history);
  same((await session.prepare()).messages, history);
  await session.snapshots.rewind(2);
  same((await session.prepare()).messages, history.slice(0, 2));
  // A call without its result is not sent, and it is sent once the result is there.
  const [call, result] = exchange(2).filter(({ role }) => role !== "user");
  await session.append(...history.slice(2), call);
  same((await session.prepare()).messages, [...history.slice(0, 2), ...history.slice(2)]);
  await session.append(result);
  same((await session.prepare()).messages, [...history, call, result]);
  const { messages } = await session.compact();
  const after = (await session.prepare()).messages;
  same(after, messages);
  await session.append({ role: "user", content: "And now?" });
  const last = (await session.prepare()).messages;
  same(last.slice(0, -1), after);
  assert.equal(last.at(-1).content, "And now?");
});
