/** Encryption at rest (storage S7, S9): over any store, with keys that are deleted with what they sealed. */

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { atRest, everything, kinds, makeKey, put, refused, strict, text } from "../support/encrypted.mjs";
import { frail } from "../support/frail.mjs";
import { encryptedStore, indexedDbStore, listSessions, memoryStore, openSession, storeConformance } from "../support/offload.mjs";

const SECRET = "the launch code is 0000-pelican";
let encryptionKey, otherKey;
before(async () => ([encryptionKey, otherKey] = [await makeKey(), await makeKey()]));

const holds = (rows, words) => rows.some(([, value]) => Buffer.from(value).includes(words));

describe("over a store in memory", () => {
  const inner = new Map();
  const make = async () => {
    const memory = frail(memoryStore());
    const store = encryptedStore(memory, { encryptionKey: await makeKey() });
    inner.set(store, memory);
    return store;
  };
  const damage = (store, key) => inner.get(store).flip(key);
  for (const { name, run } of storeConformance(make, { damage })) test(name, run);
});

test("S7: nothing that was said is at rest in the clear, and all of it comes back", async () => {
  const inner = memoryStore();
  const content = `${SECRET} `.repeat(2_000);
  const call = { id: "call_1", type: "function", function: { name: "read_file", arguments: "{}" } };
  const options = { id: "chat of Ada", compactAt: { tokens: 1_000 }, advanced: { offload: { scanFraction: 1 } } };
  const open = () => openSession({ ...options, store: encryptedStore(inner, { encryptionKey }) });
  const session = await open();
  await session.append({ role: "user", content: SECRET }, { role: "assistant", content: null, tool_calls: [call] });
  await session.append({ role: "tool", tool_call_id: "call_1", content }, { role: "assistant", content: "Read." });
  for (const nth of [1, 2, 3]) {
    await session.append({ role: "user", content: `${nth}` }, { role: "assistant", content: "Yes." });
  }
  await session.prepare();
  assert.ok((await session.context.explain()).some(({ fate }) => fate === "offloaded"), "nothing was offloaded: no blob was tested");
  await session.compact();
  await session.close();

  const rows = await atRest(inner);
  const used = new Set(rows.map(([[table]]) => table));
  assert.deepEqual([...used].sort(), ["blobs", "log", "meta", "sessions", "views"].filter((table) => used.has(table)));
  assert.ok(used.has("blobs") && used.has("views"));
  for (const words of ["pelican", "chat of Ada", "read_file", "role"]) assert.ok(!holds(rows, words), words);

  const again = await open();
  const found = [];
  for await (const message of again.archive.history()) found.push(message.content);
  assert.deepEqual(found.slice(0, 3), [SECRET, null, content]);
  const { ref } = (await again.context.explain()).find(({ ref }) => ref) ?? {};
  if (ref) assert.equal(await again.recall.read(ref), content);
  await again.close();
});

test("S7: an IV is never used twice, and the same value never looks the same", async () => {
  const inner = memoryStore();
  const store = encryptedStore(inner, { encryptionKey });
  for (let i = 0; i < 50; i++) await put(store, [["log", "s", i], SECRET], [["sessions", "s"], SECRET]);
  const rows = (await atRest(inner)).filter(([[table]]) => table !== "meta");
  const ivs = rows.map(([, value]) => Buffer.from(value.subarray(9, 21)).toString("hex"));
  assert.equal(new Set(ivs).size, 51);
  assert.equal(new Set(rows.map(([, value]) => Buffer.from(value.subarray(21)).toString("hex"))).size, 51);
});

describe("S7: rows cannot be swapped, changed or brought from elsewhere", () => {
  const rows = [
    [["log", "s", 1], "one"],
    [["log", "s", 2], "two"],
    [["views", "s", 1], "view"],
    [["log", "t", 1], "another session"],
    [["meta", "session", "x"], "name x"],
    [["meta", "session", "y"], "name y"],
  ];
  const damages = {
    "two rows of a table": (value) => value(["log", "s", 2]),
    "rows of two tables": (value) => value(["views", "s", 1]),
    "rows of two sessions": (value) => value(["log", "t", 1]),
    "one bit": (value) => flipped(value(["log", "s", 1]), -1),
    "one bit of the IV": (value) => flipped(value(["log", "s", 1]), 9),
    "one bit of the id of its key": (value) => flipped(value(["log", "s", 1]), 3),
    "the end": (value) => value(["log", "s", 1]).slice(0, -1),
    "nothing left": () => new Uint8Array(),
    "a row in the clear": () => text('{"role":"user"}'.repeat(9)),
  };
  const flipped = (value, at) => value.map((byte, i) => (i === (at + value.length) % value.length ? byte ^ 1 : byte));
  for (const [what, damage] of Object.entries(damages)) {
    test(what, async () => {
      const inner = memoryStore();
      await put(encryptedStore(inner, { encryptionKey }), ...rows, [["sessions", "s"], "row"], [["sessions", "t"], "row"]);
      const value = (key) => inner.read([key])[0];
      await inner.commit({ ...strict, puts: [[["log", "s", 1], damage(value)]] });
      const store = encryptedStore(inner, { encryptionKey });
      assert.deepEqual(kinds(await store.read([["log", "s", 1], ["log", "s", 2]])), ["damaged", "two"]);
      assert.deepEqual(kinds((await store.scan(["log", "s"], everything)).map(([, value]) => value)), ["damaged", "two"]);
    });
  }

  test("two names", async () => {
    const inner = memoryStore();
    await put(encryptedStore(inner, { encryptionKey }), ...rows);
    await inner.commit({ ...strict, puts: [[["meta", "session", "x"], inner.read([["meta", "session", "y"]])[0]]] });
    const store = encryptedStore(inner, { encryptionKey });
    assert.deepEqual(kinds(await store.read([["meta", "session", "x"], ["meta", "session", "y"]])), ["damaged", "name y"]);
  });

  test("the key of another session", async () => {
    const inner = memoryStore();
    await put(encryptedStore(inner, { encryptionKey }), ...rows, [["sessions", "s"], "row"]);
    const [[ofS], [copyOfS], [ofT, wrapped], [, copyOfT]] = inner.scan(["meta", "keys", "of"], everything);
    assert.deepEqual([ofS[3], copyOfS[3], ofT[3]], ["s", "s", "t"]);
    await inner.commit({ ...strict, puts: [[ofS, wrapped]] });
    const read = async () => kinds(await encryptedStore(inner, { encryptionKey }).read([["log", "s", 1], ["log", "t", 1]]));
    assert.deepEqual(await read(), ["one", "another session"], "its copy is there");
    await inner.commit({ ...strict, puts: [[copyOfS, copyOfT]] });
    assert.deepEqual(await read(), ["damaged", "another session"]);
  });
});

describe("keys that do not fit are told, and nothing is written", () => {
  for (const [what, begin, key] of [
    ["another key", (inner) => put(encryptedStore(inner, { encryptionKey }), [["log", "s", 1], "one"]), () => otherKey],
    ["a store begun without encryption", (inner) => inner.commit({ ...strict, puts: [[["jobs", "s", "j"], text("x")]] }), () => otherKey],
  ]) {
    test(what, async () => {
      const inner = memoryStore();
      await begin(inner);
      const before = await atRest(inner);
      const store = encryptedStore(inner, { encryptionKey: key() });
      const wrong = refused("invalid_option", "encryptionKey");
      await assert.rejects(store.read([["log", "s", 1]]), wrong);
      await assert.rejects(store.scan(["log"], everything), wrong);
      await assert.rejects(put(store, [["log", "s", 2], "two"]), wrong);
      await assert.rejects(openSession({ store, id: "a" }), refused("invalid_option"));
      assert.deepEqual(await atRest(inner), before);
    });
  }

  test("D21: a store whose root key is gone says so: it was not begun without encryption", async () => {
    const inner = memoryStore();
    await put(encryptedStore(inner, { encryptionKey }), [["log", "s", 1], "one"]);
    const roots = inner.scan(["meta", "keys", "root"], everything).map(([key]) => key);
    assert.equal(roots.length, 2);
    await inner.commit({ ...strict, deletes: roots });
    const before = await atRest(inner);
    await assert.rejects(encryptedStore(inner, { encryptionKey }).read([["log", "s", 1]]), (error) => refused("store_corrupt")(error) && /root key/.test(error.message));
    assert.deepEqual(await atRest(inner), before);
  });

  test("D21: a store that another one begins just now was not begun without encryption", async () => {
    const inner = memoryStore();
    let first = true;
    const late = {
      ...inner,
      async scan(...args) {
        const found = inner.scan(...args);
        if (first) await put(encryptedStore(inner, { encryptionKey }), [["log", "s", 1], "one"], [["jobs", "s", "j"], "job"]);
        first = false;
        return found;
      },
    };
    assert.deepEqual(kinds(await encryptedStore(late, { encryptionKey }).read([["log", "s", 1]])), ["one"]);
  });

  test("an encrypted store that is opened without its key", async () => {
    const inner = memoryStore();
    await (await openSession({ id: "a", store: encryptedStore(inner, { encryptionKey }) })).append({ role: "user", content: "hi" });
    await assert.rejects(openSession({ id: "a", store: inner }), refused("store_corrupt"));
  });

  test("what is no key", async () => {
    const [signing, onlyEncrypt] = [
      await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]),
      await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt"]),
    ];
    for (const bad of [undefined, null, "secret", new Uint8Array(32), signing, onlyEncrypt]) {
      assert.throws(() => encryptedStore(memoryStore(), { encryptionKey: bad }), refused("invalid_option", "encryptionKey"));
      if (bad) assert.throws(() => indexedDbStore({ encryptionKey: bad }), refused("invalid_option", "encryptionKey"));
    }
    const both = { encryptionKey, previousEncryptionKey: signing };
    assert.throws(() => encryptedStore(memoryStore(), both), refused("invalid_option", "previousEncryptionKey"));
    const alone = { previousEncryptionKey: encryptionKey };
    assert.throws(() => indexedDbStore(alone), refused("invalid_option", "previousEncryptionKey"));
    const loose = { ...memoryStore(), caps: { ...memoryStore().caps, cas: false } };
    assert.throws(() => encryptedStore(loose, { encryptionKey }), refused("invalid_option", "store"));
  });
});

test("rotation: the key of before opens the store once more, and then no longer", async () => {
  const inner = memoryStore();
  await put(encryptedStore(inner, { encryptionKey }), [["log", "s", 1], "one"], [["meta", "session", "x"], "name"]);
  const old = encryptedStore(inner, { encryptionKey });
  const values = async (store) => (await store.read([["log", "s", 1], ["meta", "session", "x"]])).map(String);
  const expected = [text("one"), text("name")].map(String);
  assert.deepEqual(await values(old), expected);
  const both = { encryptionKey: otherKey, previousEncryptionKey: encryptionKey };
  // Two tabs at once: one of them changes it, the other finds it changed.
  const changed = [encryptedStore(inner, both), encryptedStore(inner, both)];
  assert.deepEqual(await Promise.all(changed.map(values)), [expected, expected]);
  await put(changed[0], [["log", "s", 2], "two"]);
  assert.deepEqual(await values(encryptedStore(inner, { encryptionKey: otherKey })), expected);
  await assert.rejects(values(encryptedStore(inner, { encryptionKey })), refused("invalid_option", "encryptionKey"));
  // Who had it open before writes no name with the old key's consent.
  await assert.rejects(put(old, [["meta", "session", "y"], "late"]), refused("invalid_option", "encryptionKey"));
});

describe("S9: what remains of a deleted session cannot be read", () => {
  const gone = [["sessions", "s"], ["meta", "session", "s"]];

  /** Copies of rows as they were at rest, put back after the deletion: what a disk may keep. */
  async function shredded() {
    const inner = memoryStore();
    const store = encryptedStore(inner, { encryptionKey });
    await put(store, [["sessions", "s"], "row"], [["log", "s", 1], SECRET], [["log", "t", 1], "kept"], [["sessions", "t"], "row"]);
    const remains = inner.scan(["log", "s"], everything);
    await store.commit({ ...strict, deletes: gone });
    return { inner, store, remains };
  }

  test("its key is deleted in the commit that deletes its row, and no other", async () => {
    const { inner, store } = await shredded();
    assert.deepEqual(inner.scan(["meta", "keys", "of"], everything).map(([key]) => key[3]), ["t", "t"]);
    for (const reader of [store, encryptedStore(inner, { encryptionKey })]) {
      assert.deepEqual(await reader.read([["log", "s", 1], ["log", "s", 2]]), [undefined, undefined]);
      assert.deepEqual(await reader.scan(["log", "s"], everything), []);
      assert.deepEqual((await reader.scan(["log"], everything)).map(([key]) => key), [["log", "t", 1]]);
      // Its keys are still to be seen, so that the rows can be removed.
      assert.equal((await reader.scan(["log", "s"], { ...everything, keysOnly: true })).length, 1);
    }
  });

  test("a session that begins under the same id has another key", async () => {
    const { inner, store, remains } = await shredded();
    await put(store, [["sessions", "s"], "new"], [["log", "s", 2], "new"]);
    await inner.commit({ ...strict, puts: remains });
    assert.deepEqual((await store.scan(["sessions", "s"], everything)).map(([, value]) => value), [text("new")]);
    assert.deepEqual(kinds(await store.read([["log", "s", 1], ["log", "s", 2]])), ["damaged", "new"]);
  });

  test("a deletion that is refused shreds nothing", async () => {
    const inner = memoryStore();
    const store = encryptedStore(inner, { encryptionKey });
    await put(store, [["sessions", "s"], "row"], [["log", "s", 1], SECRET]);
    const expect = [{ key: ["sessions", "s"], version: 7 }];
    await assert.rejects(store.commit({ ...strict, expect, deletes: gone }), refused("conflict"));
    const again = encryptedStore(inner, { encryptionKey });
    assert.deepEqual(await again.read([["log", "s", 1]]), [text(SECRET)]);
  });

  test("D4: a session's row that goes alone is written anew, and its key stays, whoever was there before", async () => {
    const inner = memoryStore();
    const store = encryptedStore(inner, { encryptionKey });
    await put(store, [["sessions", "s"], "row"], [["log", "s", 1], SECRET]);
    // Damaged, mended by another handle meanwhile, and gone by then.
    for (const value of [new Uint8Array([1, 2, 3]), undefined, "gone"]) {
      if (value instanceof Uint8Array) await inner.commit({ ...strict, puts: [[["sessions", "s"], value]] });
      if (value === "gone") await store.commit({ ...strict, deletes: [["sessions", "s"]] });
      await store.commit({ ...strict, deletes: [["sessions", "s"]] });
      await put(store, [["sessions", "s"], "mended"]);
      for (const reader of [store, encryptedStore(inner, { encryptionKey })]) {
        assert.deepEqual(await reader.read([["log", "s", 1], ["sessions", "s"]]), [text(SECRET), text("mended")]);
      }
    }
  });

  test("another tab that still holds the key cannot write with it", async () => {
    const inner = memoryStore();
    const [one, two] = [encryptedStore(inner, { encryptionKey }), encryptedStore(inner, { encryptionKey })];
    await put(one, [["sessions", "s"], "row"], [["log", "s", 1], "one"]);
    await two.read([["log", "s", 1]]);
    await one.commit({ ...strict, deletes: [["sessions", "s"], ["log", "s", 1]] });
    await put(two, [["log", "s", 2], "late"]);
    assert.deepEqual(await encryptedStore(inner, { encryptionKey }).read([["log", "s", 2]]), [text("late")]);
  });

  test("session.close({ delete: true }) leaves no key and no row behind, but those of other sessions", async () => {
    const inner = memoryStore();
    const store = encryptedStore(inner, { encryptionKey });
    const sessions = [];
    for (const id of ["a", "b"]) {
      const session = await openSession({ id, store });
      await session.append({ role: "user", content: `${SECRET} of ${id}` });
      sessions.push(session);
    }
    assert.equal(inner.scan(["meta", "keys", "of"], everything).length, 4);
    await sessions[0].close({ delete: true });
    assert.equal(inner.scan(["meta", "keys", "of"], everything).length, 2);
    assert.deepEqual((await listSessions(store)).map(({ id }) => id), ["b"]);
    await sessions[1].close({ delete: true });
    assert.deepEqual((await atRest(inner)).map(([key]) => key), [["meta", "keys", "root", 1], ["meta", "keys", "root", 1, "copy"]]);
  });
});

test("a store that was emptied under its users is used again: nothing is sealed with keys that are gone", async () => {
  const inner = memoryStore();
  const store = encryptedStore(inner, { encryptionKey });
  await put(store, [["sessions", "s"], "row"], [["log", "s", 1], "one"], [["meta", "session", "x"], "name"]);
  await inner.commit({ ...strict, deletes: (await atRest(inner)).map(([key]) => key) });
  assert.deepEqual(await store.read([["log", "s", 1]]), [undefined]);
  await put(store, [["log", "s", 1], "two"], [["meta", "session", "x"], "name 2"]);
  const again = encryptedStore(inner, { encryptionKey });
  assert.deepEqual(await again.read([["log", "s", 1], ["meta", "session", "x"]]), [text("two"), text("name 2")]);
});

test("the keyring is nobody else's: neither read, nor written, nor seen", async () => {
  const store = encryptedStore(memoryStore(), { encryptionKey });
  await put(store, [["meta", "a"], "1"], [["log", "s", 1], "one"], [["meta", "z"], "2"]);
  assert.deepEqual((await store.scan(["meta"], everything)).map(([key]) => key), [["meta", "a"], ["meta", "z"]]);
  const first = { limit: 1, maxBytes: 1 };
  assert.deepEqual((await store.scan(["meta"], { ...first, after: ["meta", "a"] })).map(([key]) => key), [["meta", "z"]]);
  const own = ["meta", "keys", "root", 1];
  await assert.rejects(store.read([own]), refused("invalid_option"));
  await assert.rejects(store.scan(["meta", "keys"], everything), refused("invalid_option"));
  await assert.rejects(put(store, [own, "mine"]), refused("invalid_option"));
  await assert.rejects(store.commit({ ...strict, deletes: [own] }), refused("invalid_option"));
});

test("a signal of lost data comes through", async () => {
  const inner = { ...memoryStore(), dataLoss: async () => "cleared" };
  assert.equal(await encryptedStore(inner, { encryptionKey }).dataLoss(), "cleared");
  assert.equal(encryptedStore(memoryStore(), { encryptionKey }).dataLoss, undefined);
});
