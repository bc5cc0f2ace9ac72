/** What must hold for a file store where faults come together: what seeds of the simulation found, each in small. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { goesOn, isDamaged, note, put, using } from "./file-damage.mjs";
import { contents, edit, journalOf, loadStore, release, reset, stopAt } from "./file-store.mjs";

const [A, B] = ['["log","s",0]', '["log","s",1]'];

export const seedChecks = {
  "D15: an end of a journal that is void stays so, whatever is noted later": async (library, folder) => {
    const [directory, cut] = [join(folder, "store"), join(folder, "cut")];
    await using(library, directory, (store) => store.commit(put(["log", "s", 0], "A")));
    const [noted, { length }] = [await readFile(note(directory)), await readFile(await journalOf(directory))];
    const store = library.fileStore(directory);
    await store.commit(put(["log", "s", 1], "B ".repeat(2_500)));
    // The journal has its end, and the next one has no name yet.
    const stopped = stopAt(library.disk, (name) => name === "link");
    void store.purge();
    await stopped.reached;
    await cp(directory, cut, { recursive: true });
    await release(library.disk);
    reset(library.disk);
    const bytes = await readFile(await journalOf(cut));
    assert.match(bytes.toString("latin1", length + 5_000), /"sealed":true/);
    for (const from of [length, length + 400]) {
      await rm(directory, { recursive: true });
      await cp(cut, directory, { recursive: true });
      await edit(await journalOf(directory), (bytes) => void bytes.fill(0, from, from + 4_096));
      await writeFile(note(directory), noted);
      await goesOn(library, directory, { [A]: "A" }, `zeros from ${from - length}`);
      assert.equal(await using(library, directory, (store) => store.dataLoss()), undefined);
    }
  },

  "D15: a bit of what a journal begins with, before anybody has noted how far it is": async (library, folder) => {
    const directory = join(folder, "store");
    await using(library, directory, async (store) => {
      await store.commit(put(["log", "s", 0], "A"));
      await store.purge();
    });
    const bytes = await readFile(await journalOf(directory));
    assert.match(bytes.toString("latin1"), /"base":true/);
    for (let at = bytes.indexOf("\n") + 1; at < bytes.indexOf("}\n"); at++) {
      await writeFile(await journalOf(directory), bytes);
      await edit(await journalOf(directory), (bytes) => void (bytes[at] ^= 1 << at % 8));
      await rm(note(directory));
      assert.deepEqual(await using(library, directory, contents), { [A]: "A" }, `byte ${at}`);
    }
  },

  "D15: what is damaged between the write of one process and its note is not void for another": async (library, folder) => {
    const other = await loadStore();
    const [store, busy] = [library.fileStore(folder), other.fileStore(folder)];
    await busy.commit(put(["log", "s", 0], "A"));
    assert.deepEqual(await contents(store), { [A]: "A" });
    const syncing = stopAt(other.disk, (name) => name === "datasync");
    const written = busy.commit(put(["log", "s", 1], "B ".repeat(2_500)));
    await syncing.reached;
    await edit(await journalOf(folder), (bytes) => void bytes.fill(0, bytes.length - 4_096));
    await store.commit(put(["log", "s", 2], "C"));
    syncing.go();
    await written;
    await store.close();
    await busy.close();
    const { [B]: damaged, ...found } = await using(library, folder, contents);
    assert.ok(isDamaged(damaged), "what was acknowledged is gone without a word");
    assert.deepEqual(found, { [A]: "A", '["log","s",2]': "C" });
  },

  "D15: a record that cannot be read is void until another process acknowledges it": async (library, folder) => {
    const other = await loadStore();
    const [store, busy] = [library.fileStore(folder), other.fileStore(folder)];
    await busy.commit(put(["log", "s", 0], "A"));
    const { length } = await readFile(await journalOf(folder));
    const syncing = stopAt(other.disk, (name) => name === "datasync");
    const written = busy.commit(put(["log", "s", 1], "B"));
    await syncing.reached;
    await edit(await journalOf(folder), (bytes) => void bytes.fill(0, length, length + 80));
    assert.deepEqual(await contents(store), { [A]: "A" });
    assert.equal(await store.dataLoss(), undefined, "nobody was told of it");
    syncing.go();
    await written;
    await store.commit(put(["log", "s", 2], "C"));
    assert.match(await store.dataLoss(), /1 of the stored records cannot be read/);
    await store.close();
    await busy.close();
    await goesOn(library, folder, { [A]: "A", '["log","s",2]': "C" }, "behind it");
  },

  "D15: what a power cut tore is void for all who have the store open, whoever writes behind it": async (library, folder) => {
    const other = await loadStore();
    // Of the end, of a value, and of both.
    for (const [from, to] of [[-1], [-4_096], [-4_096, -2_048], [-12_288, -8_192], [-16_384]]) {
      const directory = join(folder, `${from}`, `${to}`);
      await using(library, directory, (store) => store.commit(put(["log", "s", 0], "A")));
      const noted = await readFile(note(directory));
      await using(library, directory, (store) => store.commit(put(["log", "s", 1], "B ".repeat(10_000))));
      await writeFile(note(directory), noted);
      await edit(await journalOf(directory), (bytes) => void bytes.fill(0, bytes.length + from, to && bytes.length + to));
      const stores = [library.fileStore(directory), other.fileStore(directory)];
      let rows = { [A]: "A" };
      for (const store of stores) assert.deepEqual(await contents(store), rows);
      for (const nth of [2, 3, 4]) {
        await stores[(nth + 1) % 2].commit(put(["log", "s", nth], "C"));
        rows = { ...rows, [`["log","s",${nth}]`]: "C" };
        for (const store of stores) {
          assert.deepEqual(await contents(store), rows);
          assert.equal(await store.dataLoss(), undefined);
        }
      }
      for (const store of stores) await store.close();
      await goesOn(library, directory, rows, `zeros from ${from}`);
    }
  },

  "D15: what a full disk leaves of several records is none of them": async (library, folder) => {
    // The first lacks so many bytes, and others write as many until there is room.
    for (const pieces of [[14], [5, 9], [60], [60, 1, 59], [26]]) {
      const directory = join(folder, pieces.join("-"));
      await using(library, directory, async (store) => {
        await store.commit(put(["log", "s", 0], "A"));
        const writes = [(length) => length - pieces.reduce((sum, piece) => sum + piece), ...pieces.map((piece) => () => piece)];
        library.disk.call = async (name, args, perform, file) => {
          if (name !== "write" || !/journal/.test(file.path) || writes.length === 0) return perform(...args);
          await file.handle.write(args[0].subarray(0, writes.shift()(args[0].length)));
          throw Object.assign(new Error("made by the test"), { code: "ENOSPC" });
        };
        for (const nth of [0, ...pieces.keys()]) {
          await assert.rejects(store.commit(put(["log", "s", 1 + nth], "B")), { code: "quota_exceeded" }, `${pieces}`);
        }
        reset(library.disk);
        await store.commit(put(["log", "s", 9], "C"));
      });
      await goesOn(library, directory, { [A]: "A", '["log","s",9]': "C" }, `${pieces}`);
    }
  },

  "D15: a journal that may lose its name is not said to have been there": async (library, folder) => {
    library.disk.call = (name, args, perform, file) =>
      name === "sync" && file.path === folder ? Promise.reject(Object.assign(new Error("made by the test"), { code: "EIO" })) : perform(...args);
    for (const nth of [1, 2]) {
      await assert.rejects(using(library, folder, contents), { code: "store_unavailable" });
      assert.deepEqual(await readdir(folder), ["journal-000000000001"], `opened ${nth} times`);
    }
    reset(library.disk);
    await goesOn(library, folder, {}, "with names that last");
  },

  "D15: a schema that flipped bits made a newer one": async (library, folder) => {
    const directory = join(folder, "store");
    await using(library, directory, (store) => store.commit(put(["log", "s", 0], "A")));
    const bytes = await readFile(await journalOf(directory));
    const [line] = bytes.toString("latin1").split("\n");
    const [id, sum] = line.split(" ").slice(3);
    const sumOf = (schema) => createHash("sha256").update(id).update(schema).digest("hex").slice(0, 32);
    const write = async (first) => writeFile(await journalOf(directory), Buffer.concat([Buffer.from(first, "latin1"), bytes.subarray(line.length)]));
    for (const other of ["\0", "g", sum[7] === "a" ? "b" : "a"]) {
      await write(line.replace(" 100 ", " 300 ").replace(sum, sum.slice(0, 7) + other + sum.slice(8)));
      assert.deepEqual(await using(library, directory, contents), { [A]: "A" });
      await write(line.replace(" 100 ", " 300 ").replace(id, id.slice(0, 7) + other + id.slice(8)));
      assert.deepEqual(await using(library, directory, contents), { [A]: "A" });
    }
    const newer = `context-compactor journal 300 ${id} ${sumOf("300")}`;
    await write(newer);
    const before = await readFile(await journalOf(directory));
    await assert.rejects(using(library, directory, contents), { code: "schema_too_new" });
    assert.deepEqual(await readFile(await journalOf(directory)), before);
  },
};
