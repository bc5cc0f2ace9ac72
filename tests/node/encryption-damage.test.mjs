/** Encryption at rest, with damaged rows of keys and of what they seal. */

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { atRest, everything, kinds, makeKey, put, strict } from "../support/encrypted.mjs";
import { frail } from "../support/frail.mjs";
import { encryptedStore, memoryStore, openSession } from "../support/offload.mjs";

let encryptionKey, otherKey;
before(async () => ([encryptionKey, otherKey] = [await makeKey(), await makeKey()]));

describe("D13: a damaged row of a key costs nothing, and one of a session no other", () => {
  /** Two sessions, with the rows of their keys. */
  async function made() {
    const inner = frail(memoryStore());
    const store = encryptedStore(inner, { encryptionKey });
    await put(store, [["sessions", "s"], "row"], [["log", "s", 1], "one"], [["sessions", "t"], "row"], [["log", "t", 1], "two"], [["meta", "session", "x"], "name"]);
    return { inner, keys: inner.scan(["meta", "keys"], everything).map(([key]) => key) };
  }
  const wanted = [["log", "s", 1], ["log", "t", 1], ["meta", "session", "x"]];
  const whole = ["one", "two", "name"];

  test("each row of a key, with each kind of damage", async () => {
    const { inner, keys } = await made();
    assert.equal(keys.length, 6);
    for (const key of keys) {
      for (const damage of ["flip", "flip its head", "cut it", "report", "remove"]) {
        const [before] = inner.read([key]);
        if (damage === "flip") inner.flip(key);
        if (damage === "flip its head") inner.flip(key, 3);
        if (damage === "cut it") inner.change(key, before.slice(0, 20));
        if (damage === "report") inner.report(key);
        if (damage === "remove") inner.commit({ ...strict, deletes: [key] });
        const store = encryptedStore(inner, { encryptionKey });
        assert.deepEqual(kinds(await store.read(wanted)), whole, `${key}: ${damage}`);
        // It is written to, as before.
        await put(store, [["log", "s", 2], "more"], [["meta", "session", "y"], "another"]);
        const again = encryptedStore(inner, { encryptionKey });
        assert.deepEqual(kinds(await again.read([...wanted, ["log", "s", 2], ["meta", "session", "y"]])), [...whole, "more", "another"]);
        await again.commit({ ...strict, deletes: [["log", "s", 2], ["meta", "session", "y"]] });
        inner.heal();
        if (damage === "remove" && !inner.read([key])[0]) inner.commit({ ...strict, puts: [[key, before]] });
      }
    }
  });

  test("D4: a damaged row of a key is written again when it is opened, so that the next damage costs nothing either", async () => {
    const { inner, keys } = await made();
    const before = encryptedStore(inner, { encryptionKey });
    assert.deepEqual(kinds(await before.read(wanted)), whole);
    // Each key has its rows one after the other.
    for (const [i, key] of keys.entries()) {
      const other = keys[i ^ 1];
      for (const damage of [(row) => inner.flip(row), (row) => inner.flip(row, 3), (row) => inner.change(row, new Uint8Array(20)), (row) => inner.report(row)]) {
        damage(key);
        const store = encryptedStore(inner, { encryptionKey });
        const told = [];
        store.notices((notice) => told.push(notice));
        assert.deepEqual(kinds(await store.read(wanted)), whole, `${key}`);
        assert.deepEqual(told.map(({ kind }) => kind), ["repaired"], `${key}`);
        assert.match(told[0].reason, /row of a key was damaged/);
        damage(other);
        assert.deepEqual(kinds(await encryptedStore(inner, { encryptionKey }).read(wanted)), whole, `${key}, then its other row`);
        // Who had it open goes on.
        await put(before, [["log", "s", 2], "more"], [["log", "t", 2], "more"], [["meta", "session", "y"], "another"]);
      }
    }
    assert.deepEqual(inner.scan(["meta", "keys"], everything).map(([key]) => key), keys);
  });

  test("D4: a session tells it as repaired", async () => {
    const inner = frail(memoryStore());
    const open = () => openSession({ id: "chat", contextWindow: 32_000, store: encryptedStore(inner, { encryptionKey }) });
    const begun = await open();
    await begun.append({ role: "user", content: "one" });
    await begun.close();
    inner.flip(inner.scan(["meta", "keys", "of"], everything)[0][0]);
    const opened = await open();
    const told = [];
    opened.on("data-loss", ({ kind, reason }) => told.push([kind, /row of a key/.test(reason)]));
    await new Promise((resolve) => setTimeout(resolve));
    assert.deepEqual(told, [["repaired", true]]);
    assert.equal((await opened.archive.verify()).ok, true);
  });

  test("D4: stopped at each commit of it, and refused: nothing is lost, and the next one goes on", async () => {
    for (const isRefused of [false, true]) {
      for (const nth of [0, 1]) {
        const { inner, keys } = await made();
        for (const [i, key] of keys.entries()) if (i % 2 === nth) inner.flip(key);
        let left = isRefused ? 0 : 1;
        const refusing = { ...inner, commit: (batch) => (batch.puts.length + batch.deletes.length > 0 && left-- <= 0 ? Promise.reject(new Error("read only")) : inner.commit(batch)) };
        assert.deepEqual(kinds(await encryptedStore(refusing, { encryptionKey }).read(wanted)), whole);
        await put(encryptedStore(inner, { encryptionKey }), [["log", "s", 2], "more"], [["log", "t", 2], "more"], [["meta", "session", "y"], "another"]);
        assert.deepEqual(inner.scan(["meta", "keys"], everything).map(([key]) => key), keys);
        for (const key of keys) if (key.at(-1) !== "copy") inner.flip(key);
        assert.deepEqual(kinds(await encryptedStore(inner, { encryptionKey }).read(wanted)), whole);
      }
    }
  });

  test("D4: no key comes back of a session that was deleted meanwhile", async () => {
    for (const at of [0, 1]) {
      const { inner, keys } = await made();
      inner.flip(keys.find((key) => key[3] === "s"));
      let commits = 0;
      const late = {
        ...inner,
        async commit(batch) {
          const isMend = batch.puts.length + batch.deletes.length === 1 && (batch.puts[0]?.[0] ?? batch.deletes[0])[1] === "keys";
          if (isMend && commits++ === at) await encryptedStore(inner, { encryptionKey }).commit({ ...strict, deletes: [["sessions", "s"], ["log", "s", 1]] });
          return inner.commit(batch);
        },
      };
      await encryptedStore(late, { encryptionKey }).read(wanted);
      assert.deepEqual(inner.scan(["meta", "keys", "of"], everything).map(([key]) => key[3]), ["t", "t"]);
      assert.ok(commits > at);
    }
  });

  test("D4: salvage mends nothing", async () => {
    const { inner, keys } = await made();
    inner.flip(keys[0]);
    const before = await atRest(inner);
    const remains = await encryptedStore(inner, { encryptionKey }).remains();
    assert.deepEqual(kinds(await remains.read(wanted)), whole);
    assert.deepEqual(await atRest(inner), before);
  });

  test("both rows of a session's key: its rows are damaged, it is written anew, and it can be deleted", async () => {
    const { inner, keys } = await made();
    for (const key of keys.filter((key) => key[3] === "s")) inner.flip(key);
    const store = encryptedStore(inner, { encryptionKey });
    assert.deepEqual(kinds(await store.read(wanted)), ["damaged", "two", "name"]);
    await put(store, [["log", "s", 1], "again"]);
    assert.deepEqual(kinds(await encryptedStore(inner, { encryptionKey }).read(wanted)), ["again", "two", "name"]);
    await store.commit({ ...strict, deletes: [["sessions", "s"], ["log", "s", 1]] });
    assert.deepEqual(inner.scan(["meta", "keys", "of"], everything).map(([key]) => key[3]), ["t", "t"]);
  });

  test("a key that is missing altogether damages what it sealed, and no more", async () => {
    const { inner, keys } = await made();
    inner.commit({ ...strict, deletes: keys.filter((key) => key[3] === "s") });
    assert.deepEqual(kinds(await encryptedStore(inner, { encryptionKey }).read(wanted)), ["damaged", "two", "name"]);
  });

  test("D19: a row of a session whose own row is gone is damaged as long as the session has a key, whatever its head says", async () => {
    const { inner, keys } = await made();
    inner.commit({ ...strict, deletes: [["sessions", "s"]] });
    // A write that went astray: sealed with the root key.
    inner.change(["log", "s", 1], inner.read([["meta", "session", "x"]])[0]);
    assert.deepEqual(kinds(await encryptedStore(inner, { encryptionKey }).read(wanted)), ["damaged", "two", "name"]);
    inner.commit({ ...strict, deletes: keys.filter((key) => key[3] === "s") });
    assert.deepEqual(kinds(await encryptedStore(inner, { encryptionKey }).read(wanted)), [undefined, "two", "name"]);
  });

  test("keys of a release that wrote no copies get them with the next value", async () => {
    const { inner, keys } = await made();
    const copies = keys.filter((key) => key.at(-1) === "copy");
    assert.equal(copies.length, 3);
    inner.commit({ ...strict, deletes: copies });
    const store = encryptedStore(inner, { encryptionKey });
    assert.deepEqual(kinds(await store.read(wanted)), whole);
    assert.equal(inner.scan(["meta", "keys"], everything).length, 3, "reading writes nothing");
    await put(store, [["log", "s", 2], "more"]);
    const now = inner.scan(["meta", "keys"], everything).map(([key]) => key);
    assert.deepEqual(now.filter((key) => key.at(-1) === "copy"), copies.filter((key) => key[3] !== "t"));
    for (const key of now.filter((key) => key[3] !== "t" && key.at(-1) !== "copy")) inner.flip(key);
    assert.deepEqual(kinds(await encryptedStore(inner, { encryptionKey }).read(wanted)), whole);
  });

  test("a key is changed though one of its rows is damaged", async () => {
    for (const nth of [0, 1]) {
      const { inner, keys } = await made();
      inner.flip(keys.filter((key) => key[2] === "root")[nth]);
      const both = { encryptionKey: otherKey, previousEncryptionKey: encryptionKey };
      assert.deepEqual(kinds(await encryptedStore(inner, both).read(wanted)), whole);
      assert.deepEqual(kinds(await encryptedStore(inner, { encryptionKey: otherKey }).read(wanted)), whole);
      const roots = inner.scan(["meta", "keys", "root"], everything).map(([key]) => key[3]);
      assert.deepEqual(roots, [2, 2]);
    }
  });

  test("a damaged row of a session that goes alone is written anew with the same key; whoever deletes the session shreds it", async () => {
    const { inner } = await made();
    inner.flip(["sessions", "s"]);
    const store = encryptedStore(inner, { encryptionKey });
    await store.commit({ ...strict, deletes: [["sessions", "s"]] });
    assert.deepEqual(kinds(await store.read(wanted)), whole);
    await put(store, [["sessions", "s"], "row"]);
    inner.flip(["sessions", "s"]);
    await store.commit({ ...strict, deletes: [["sessions", "s"], ["meta", "session", "x"]] });
    assert.deepEqual(kinds(await encryptedStore(inner, { encryptionKey }).read(wanted)), [undefined, "two", undefined]);
    assert.deepEqual(inner.scan(["meta", "keys", "of"], everything).map(([key]) => key[3]), ["t", "t"]);
  });
});
