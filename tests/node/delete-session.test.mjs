/** Sessions that are deleted without being opened (H13): in every store, and whatever of them is damaged. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { deleteSession, encryptedStore, listSessions, memoryStore, mirrorStore, openSession } from "context-compactor";
import { chat, exchange, fails, openStore, summariser } from "../support/api.mjs";
import { stores } from "../support/stores.mjs";

const OPTIONS = { preset: "offload", contextWindow: 8_000, keep: { messages: 4 } };

/** A session with offloads, a summary and a snapshot. */
async function worked(store, id, options = {}) {
  const session = await openSession({ ...OPTIONS, id, store, summarize: summariser(), ...options });
  for (let nth = 0; nth < 12; nth += 1) await session.append(...exchange(nth, 2_000));
  await session.prepare();
  assert.equal((await session.compact()).success, true);
  await session.snapshots.take();
  await session.append(...chat(2));
  return session;
}

const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
/** What stands over the stores of Node. */
const over = {
  ...stores,
  encrypted: async () => {
    const below = await stores.file();
    return { open: () => encryptedStore(below.open(), { encryptionKey: key }), remove: () => below.remove() };
  },
  mirror: async () => {
    const copies = [memoryStore(), memoryStore()];
    return { open: () => mirrorStore(...copies), remove: async () => {} };
  },
};

for (const [name, make] of Object.entries(over)) {
  test(`H13: ${name}: a session is deleted by its name, whole, and no other`, async () => {
    const place = await make();
    try {
      const store = place.open();
      await (await worked(store, "one")).close();
      await (await worked(store, "two")).close();
      assert.deepEqual((await listSessions(store)).map(({ id }) => id), ["one", "two"]);
      assert.equal(await deleteSession("one", { store }), undefined);
      assert.deepEqual((await listSessions(store)).map(({ id }) => id), ["two"]);
      assert.equal((await listSessions(store))[0].messages, 52);
      // What is not there is deleted already.
      await deleteSession("one", { store });
      await store.close?.();

      const again = place.open();
      const anew = await openSession({ ...OPTIONS, id: "one", store: again });
      anew.on("data-loss", ({ reason }) => assert.fail(reason));
      assert.deepEqual([await anew.context.explain(), await anew.snapshots.list()], [[], []]);
      await anew.append(...chat(1));
      await anew.close();
      await deleteSession("one", { store: again });
      await deleteSession("two", { store: again });
      for (const table of ["meta", "sessions", "log", "blobs", "views", "jobs"]) {
        const left = await again.scan([table], { limit: 100, maxBytes: 1e6 });
        // Which database it is, and the keys of an encrypted one.
        assert.deepEqual(left.filter(([key]) => table !== "meta" || key[1] === "session"), [], table);
      }
      await again.close?.();
    } finally {
      await place.remove();
    }
  });
}

test("H13: a session is deleted whichever of its rows is damaged", async () => {
  const made = openStore();
  const batches = [];
  made.before = (batch) => void batches.push(structuredClone(batch));
  await (await worked(made, "one")).close();
  const rows = made.rows();
  assert.ok(rows.length > 40);
  for (const reports of [false, true]) {
    for (const [damaged] of rows) {
      const store = openStore();
      for (const batch of batches) store.commit(batch);
      const is = (key) => JSON.stringify(key) === JSON.stringify(damaged);
      const flipped = (bytes) => (reports ? { damaged: "its checksum differs" } : bytes.map((byte) => byte ^ 1));
      const found = (key, value) => (value !== undefined && is(key) ? flipped(value) : value);
      const read = (keys) => store.read(keys).map((value, at) => found(keys[at], value));
      const scan = (...asked) => store.scan(...asked).map(([key, value]) => [key, found(key, value)]);
      await deleteSession("one", { store: { ...store, caps: { ...store.caps, reportsDamage: reports }, read, scan } });
      assert.deepEqual(store.rows(), [], `${damaged}, ${reports ? "as the store reports it" : "in its bytes"}`);
    }
  }
});

test("H13: a session that does not open is deleted all the same", async () => {
  const store = openStore();
  await (await worked(store, "one")).close();
  // Nothing is left but its name and its results.
  const gone = store.rows().map(([key]) => key).filter(([table]) => ["sessions", "log", "views", "jobs"].includes(table));
  store.commit({ expect: [], puts: [], deletes: gone, durability: "strict" });
  await assert.rejects(openSession({ ...OPTIONS, id: "one", store }), fails("data_loss"));
  await deleteSession("one", { store });
  assert.equal(store.rows().length, 0);
  await (await openSession({ ...OPTIONS, id: "one", store })).close();
});

test("H13: a handle that is open on it is closed, and what was begun from it stays", async () => {
  const store = openStore();
  const session = await worked(store, "one");
  const child = await session.fork({ id: "child" });
  await deleteSession("one", { store });
  await assert.rejects(session.append(...chat(1)), fails("closed"));
  await child.append(...chat(1));
  assert.deepEqual((await listSessions(store)).map(({ id }) => id), ["child"]);
});

test("H13: its watermark goes with it, so that the next of its name is no loss", async () => {
  const marks = new Map();
  const watermark = { get: (key) => marks.get(key), set: (key, value) => void marks.set(key, value) };
  const store = openStore();
  await (await worked(store, "one", { advanced: { watermark } })).close();
  assert.deepEqual([...marks.values()].map((mark) => mark !== ""), [true]);
  const down = new Error("the server is down");
  const refusing = { ...watermark, set: () => Promise.reject(down) };
  await assert.rejects(deleteSession("one", { store, watermark: refusing }), fails("store_unavailable", { message: /deleted.*the server is down.*again/ }));
  assert.deepEqual(store.rows(), []);
  await deleteSession("one", { store, watermark });
  assert.deepEqual([...marks.values()], [""]);
  const anew = await openSession({ ...OPTIONS, id: "one", store, advanced: { watermark } });
  anew.on("data-loss", ({ reason }) => assert.fail(reason));
  await anew.append(...chat(1));
});

test("H13: an error of the store is thrown, and the next call deletes the rest", async () => {
  const store = openStore();
  await (await worked(store, "one")).close();
  const full = { ...store, caps: { ...store.caps, maxBatchOps: 12 } };
  let commits = 0;
  store.before = () => {
    commits += 1;
    if (commits === 3) throw Object.assign(new Error("gone"), { code: "store_unavailable" });
  };
  await assert.rejects(deleteSession("one", { store: full }), fails("store_unavailable"));
  assert.ok(store.rows().length > 0);
  assert.deepEqual(await listSessions(store), []);
  await deleteSession("one", { store: full });
  assert.deepEqual(store.rows(), []);
});

test("H13: what is no id, no store or no option is refused", async () => {
  const store = memoryStore();
  for (const id of [undefined, null, "", 5, "\ud800", {}]) await assert.rejects(deleteSession(id, { store }), fails("invalid_option", { field: "id" }));
  for (const wrong of [undefined, null, "memory", {}, 5]) await assert.rejects(deleteSession("one", { store: wrong }), fails("invalid_option", { field: "store" }));
  await assert.rejects(deleteSession("one"), fails("invalid_option"));
  await assert.rejects(deleteSession("one", { store, force: true }), fails("invalid_option", { field: "force" }));
});
