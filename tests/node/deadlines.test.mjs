/** A store that does not answer ends no session: every call has an end, and a typed one (D7, D17). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore, openSession } from "context-compactor";

const LIMIT = 150;
const said = (content) => ({ role: "user", content });

/** A store in memory whose calls of `held` wait; `release` lets them go on, those that wait already too. */
function hanging() {
  const store = memoryStore();
  const held = new Set();
  let waiting = [];
  const wrap = (name) => async (...args) => {
    if (held.has(name)) await new Promise((go) => waiting.push(go));
    return store[name](...args);
  };
  const release = () => {
    held.clear();
    waiting.forEach((go) => go());
    waiting = [];
  };
  return { store: { caps: store.caps, read: wrap("read"), scan: wrap("scan"), commit: wrap("commit") }, held, release };
}

const opened = (store) => openSession({ id: "s", store, contextWindow: 32_000, limits: { storeTimeoutMs: LIMIT } });

async function contents(session) {
  const found = [];
  for await (const { content } of session.archive.history()) found.push(content);
  return found;
}

/** Ends within a few limits; the error of it. */
async function ends(work) {
  const started = Date.now();
  const error = await work.then(
    () => assert.fail("it ended well"),
    (error) => error,
  );
  const took = Date.now() - started;
  assert.ok(took >= LIMIT - 20 && took < LIMIT * 8, `${took} ms`);
  return error;
}

test("D17: an append whose commit is never answered is `indeterminate` in time, and the next one works", async () => {
  const { store, held, release } = hanging();
  const session = await opened(store);
  await session.append(said("one"));
  held.add("commit");
  const error = await ends(session.append(said("two")));
  assert.equal(error.code, "indeterminate");
  assert.match(error.message, /commit.*storeTimeoutMs.*read again/s);
  // Neither is what it wrote lost, nor what comes behind it; it is there once, or not at all.
  for (const answered of ["before", "after"]) {
    if (answered === "before") release();
    held.clear();
    await session.append(said(`three, ${answered}`));
    release();
  }
  const found = await contents(await opened(store));
  assert.deepEqual(found.filter((text) => text !== "two"), ["one", "three, before", "three, after"]);
  assert.ok(found.filter((text) => text === "two").length <= 1, found.join());
  assert.deepEqual((await session.archive.verify()).problems, []);
  assert.deepEqual(await contents(session), found);
});

test("D17: a late commit neither repeats nor replaces what was written meanwhile", async () => {
  const { store, held, release } = hanging();
  const session = await opened(store);
  await session.append(said("one"));
  held.add("commit");
  assert.equal((await ends(session.append(said("two")))).code, "indeterminate");
  // The late commit comes behind another one.
  held.clear();
  await session.append(said("three"));
  release();
  await session.append(said("four"));
  const found = await contents(await opened(store));
  assert.deepEqual(found, ["one", "three", "four"]);
});

for (const name of ["read", "scan"]) {
  test(`D17: a \`${name}\` that is never answered is \`store_unavailable\``, async () => {
    const { store, held, release } = hanging();
    const first = await opened(store);
    await first.append(said("one"));
    await first.close();
    held.add(name);
    const error = await ends(opened(store));
    assert.equal(error.code, "store_unavailable");
    assert.match(error.message, new RegExp(`\`${name}\` did not answer in ${LIMIT} ms.*nothing`));
    release();
    assert.deepEqual(await contents(await opened(store)), ["one"]);
  });
}

test("D17: the limit is a whole number", async () => {
  for (const storeTimeoutMs of [0, 1.5, "1", -1, Infinity]) {
    const opening = openSession({ store: "memory", contextWindow: 32_000, limits: { storeTimeoutMs } });
    await assert.rejects(opening, { code: "invalid_option", field: "limits.storeTimeoutMs" });
  }
  await assert.rejects(openSession({ store: "memory", contextWindow: 32_000, limits: 5 }), { field: "limits" });
  await assert.rejects(openSession({ store: "memory", contextWindow: 32_000, limits: { timeoutMs: 5 } }), { field: "limits.timeoutMs" });
});
