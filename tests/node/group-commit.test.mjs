/** Group commit (T1): appends that wait together are one transaction, and each has its own outcome. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore, openSession } from "../support/offload.mjs";

function counted(caps = {}) {
  const store = memoryStore();
  const batches = [];
  return {
    batches,
    store: {
      ...store,
      caps: { ...store.caps, ...caps },
      commit(batch) {
        batches.push(batch);
        return store.commit(batch);
      },
    },
  };
}

const say = (content) => ({ role: "user", content });
const texts = (messages) => messages.map(({ content }) => content);

test("t1_appends_of_one_tick_are_one_transaction", async () => {
  const { store, batches } = counted();
  const session = await openSession({ store });
  await Promise.all(Array.from({ length: 50 }, (_, nth) => session.append(say(`${nth}`))));
  assert.equal(batches.length, 1);
  assert.equal(batches[0].durability, "strict");
  const { messages } = await session.prepare();
  assert.deepEqual(
    texts(messages),
    Array.from({ length: 50 }, (_, nth) => `${nth}`),
  );
  await session.append(say("on its own"));
  assert.equal(batches.length, 2);
});

test("t1_long_messages_that_wait_together_are_each_what_was_appended", async () => {
  const { store, batches } = counted();
  const session = await openSession({ store, contextWindow: 100_000_000 });
  const long = ["a", "b", "c"].map((letter) => letter.repeat(1_500_000));
  await Promise.all(long.map((text) => session.append(say(text))));
  assert.equal(batches.length, 1);
  const kept = texts((await session.prepare()).messages);
  assert.ok(kept.length === 3 && kept.every((text, nth) => text === long[nth]));
  assert.deepEqual(await session.archive.verify(), { ok: true, problems: [] });
});

test("t1_what_is_appended_while_a_transaction_is_under_way_is_the_next_one", async () => {
  const { store, batches } = counted();
  const session = await openSession({ store });
  const first = session.append(say("first"));
  await new Promise((resolve) => setImmediate(resolve));
  const rest = ["second", "third", "fourth"].map((text) => session.append(say(text)));
  await Promise.all([first, ...rest]);
  assert.ok(batches.length <= 2);
});

test("t1_other_calls_keep_their_place_between_appends", async () => {
  const { store, batches } = counted();
  const session = await openSession({ store });
  const before = session.append(say("a"));
  const also = session.append(say("b"));
  const prepared = session.prepare();
  const after = session.append(say("c"));
  await Promise.all([before, also, after]);
  assert.deepEqual(texts((await prepared).messages), ["a", "b"]);
  assert.deepEqual(texts((await session.prepare()).messages), ["a", "b", "c"]);
  assert.equal(batches.filter(({ puts }) => puts.some(([key]) => key[0] === "log")).length, 2);
});

test("t1_a_message_that_is_refused_spares_the_calls_beside_it", async () => {
  const refused = [
    [{ content: "no role" }, "invalid_message"],
    [{ role: "user", content: () => {} }, "unsupported_value"],
    ["no object", "invalid_message"],
  ];
  for (const [bad, code] of refused) {
    const { store, batches } = counted();
    const session = await openSession({ store, format: "openai-chat" });
    const settled = await Promise.allSettled([
      session.append(say("a")),
      session.append(say("b"), bad),
      session.append(say("c"), say("d")),
    ]);
    assert.deepEqual(
      settled.map(({ status }) => status),
      ["fulfilled", "rejected", "fulfilled"],
      code,
    );
    const { reason } = settled[1];
    assert.deepEqual([reason.code, reason.index], [code, 1]);
    assert.match(reason.message, /message 1/);
    assert.deepEqual(texts((await session.prepare()).messages), ["a", "c", "d"]);
    assert.ok(batches.length <= 2);
  }
});

test("t1_what_the_store_refuses_rejects_all_that_the_transaction_held, and the session goes on", async () => {
  const { store } = counted();
  const { commit } = store;
  const session = await openSession({ store });
  await session.append(say("before"));
  store.commit = () => {
    throw Object.assign(new Error("full"), { code: "quota_exceeded" });
  };
  const settled = await Promise.allSettled([session.append(say("a")), session.append(say("b"))]);
  assert.deepEqual(
    settled.map(({ reason }) => reason?.code),
    ["quota_exceeded", "quota_exceeded"],
  );
  store.commit = commit;
  await session.append(say("after"));
  assert.deepEqual(texts((await session.prepare()).messages), ["before", "after"]);
});

test("t1_a_group_is_no_larger_than_what_the_store_takes", async () => {
  const { store, batches } = counted({ maxBatchOps: 100 });
  const session = await openSession({ store });
  await Promise.all(Array.from({ length: 300 }, (_, nth) => session.append(say(`${nth}`))));
  const sizes = batches.map(({ expect, puts, deletes }) => expect.length + puts.length + deletes.length);
  assert.ok(
    sizes.every((size) => size <= 100),
    `${sizes}`,
  );
  assert.equal(batches.length, 4);
  assert.equal((await session.prepare()).messages.length, 300);
});

test("closed: appends that wait together are all refused", async () => {
  const session = await openSession({ store: counted().store });
  await session.append(say("a"));
  const closing = session.close();
  const settled = await Promise.allSettled([session.append(say("b")), session.append(say("c"))]);
  await closing;
  assert.deepEqual(
    settled.map(({ reason }) => reason?.code),
    ["closed", "closed"],
  );
});
