/** What must hold for a file store whose files are damaged: checks that broken stores are held against too. */

import assert from "node:assert/strict";
import { appendFile, cp, readdir, readFile, rm, stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { batch, contents, edit, journalOf, killAt, release, reset, stopAt, watchPower } from "./file-store.mjs";
import { generator } from "./random.mjs";

/** So many bits are flipped, each alone; with `CC_FLIPS=all`, every bit that there is. */
const FLIPS = process.env.CC_FLIPS ?? "1000";
/** Bytes in front of the JSON of a record. */
const HEAD = 78;
export const SESSIONS = 5;
const ROUNDS = 7;

export const put = (key, text, durability = "strict") => batch({ puts: [[key, text]], durability });
export const note = (directory) => join(directory, "acknowledged");
export const isDamaged = (value) => value?.damaged !== undefined;

/** Opens the store for `work`. */
export async function using({ fileStore }, directory, work, options) {
  const store = fileStore(directory, options);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Appends as `store` and lets nobody know: what was acknowledged is noted as it was before. */
async function unnoted(library, directory, work) {
  const before = await readFile(note(directory));
  await using(library, directory, work);
  await writeFile(note(directory), before);
}

/** Three more rows, each by a process that finds what `rows` has, and those before. */
export async function goesOn(library, directory, rows, what) {
  const found = () => using(library, directory, contents);
  assert.deepEqual(await found(), rows, what);
  for (const nth of [1, 2, 3]) {
    await using(library, directory, (store) => store.commit(put(["meta", `more ${nth}`], what)));
    rows = { ...rows, [`["meta","more ${nth}"]`]: what };
    assert.deepEqual(await found(), rows, `${what}, ${nth} more`);
  }
}

/** Zeros of 4 KB where page `from` of what was added would be, for every 1 KB of it: what an unsynced page looks like. */
async function withHoles(directory, [from, to], each) {
  const kept = `${directory}.kept`;
  await cp(directory, kept, { recursive: true });
  for (let at = from - 3_072; at < to; at += 1_024) {
    await rm(directory, { recursive: true });
    await cp(kept, directory, { recursive: true });
    await edit(await journalOf(directory), (bytes) => void bytes.fill(0, Math.max(from, at), Math.min(to, at + 4_096)));
    await each(`a hole at ${at - from}`);
  }
  await rm(kept, { recursive: true });
}

/** Message `i` of session `s`, whose row and first messages change with it. */
export function message(s, i, version = i === 0 ? null : i) {
  const [head, row] = [["sessions", `s${s}`], (at) => ["log", `s${s}`, at]];
  return batch({
    expect: version === undefined ? [] : [{ key: head, version }],
    puts: [
      [head, `row ${i} of ${s}: ${"its fields ".repeat(9)}`],
      [row(i), `message ${i} of ${s}: ${"words ".repeat(30)}`],
    ],
    deletes: i >= 3 ? [row(i - 3)] : [],
  });
}

/** A journal with all that one may have: what was written anew, a torn record, one that came late and one that is void. */
export async function fiveSessions(library, directory) {
  const rounds = async (from, to, options) => {
    await using(library, directory, async (store) => {
      for (let i = from; i < to; i++) for (let s = 0; s < SESSIONS; s++) await store.commit(message(s, i));
    }, options);
  };
  const size = async () => (await stat(await journalOf(directory))).size;
  await using(library, directory, async (store) => {
    for (let i = 0; i < 9; i++) await store.commit(put(["meta", "replaced"], "again and again ".repeat(90)));
    await store.commit(batch({ deletes: [["meta", "replaced"]] }));
  });
  await rounds(0, 3, { rewriteBytes: 3_000 });
  await rounds(3, 4);
  const killed = library.fileStore(directory);
  await killed.read([["meta", "torn"]]);
  const died = killAt(library.disk, 1);
  void killed.commit(put(["meta", "torn"], "never whole ".repeat(90)));
  await died;
  await release(library.disk);
  reset(library.disk);
  const bytes = await readFile(await journalOf(directory));
  await rounds(4, 5);
  await appendFile(await journalOf(directory), bytes.subarray(bytes.indexOf("\n") + 1, 1_200));
  await rounds(5, 6);
  const before = await size();
  await unnoted(library, directory, (store) => store.commit(put(["meta", "void"], "unsynced ".repeat(90))));
  await edit(await journalOf(directory), (bytes) => void bytes.fill(0, (before + bytes.length) >> 1, bytes.length - 60));
  await rounds(6, ROUNDS);
}

/** Where the value of each row is that is there. */
export function places(bytes, rows) {
  return Object.entries(rows).map(([key, text]) => {
    const from = bytes.lastIndexOf(text);
    assert.ok(from > 0, key);
    return { key, from, to: from + Buffer.byteLength(text) };
  });
}

export const damagedOf = (rows) => Object.keys(rows).filter((key) => isDamaged(rows[key])).sort();

export const damageChecks = {
  "D1a: a page of zeros in a record that nobody was told of, then others": async (library, folder) => {
    const directory = join(folder, "store");
    await using(library, directory, (store) => store.commit(put(["log", "s", 0], "A")));
    const { size } = await stat(await journalOf(directory));
    await unnoted(library, directory, (store) => store.commit(put(["log", "s", 1], "B ".repeat(4_500))));
    const end = (await stat(await journalOf(directory))).size;
    await withHoles(directory, [size, end], async (what) => {
      const before = await readFile(note(directory));
      await using(library, directory, contents);
      assert.deepEqual(await readFile(note(directory)), before, `${what}: opening alone moves the note`);
      await goesOn(library, directory, { '["log","s",0]': "A" }, what);
      assert.equal(await using(library, directory, (store) => store.dataLoss?.()), undefined, what);
    });
  },

  "D1b: two appends in one write, of which the first has a page of zeros": async (library, folder) => {
    const directory = join(folder, "store");
    await using(library, directory, (store) => store.commit(put(["log", "s", 0], "A")));
    const { size } = await stat(await journalOf(directory));
    let middle;
    await unnoted(library, directory, async (store) => {
      await store.read([["log", "s", 0]]);
      const writes = [];
      const before = library.disk.call;
      library.disk.call = (name, args, perform, file) => {
        if (name === "write" && /journal/.test(file.path)) writes.push(args[0].length);
        return before(name, args, perform, file);
      };
      await Promise.all([
        store.commit(put(["log", "s", 1], "X")),
        store.commit(put(["log", "s", 2], "B1 ".repeat(3_000))),
        store.commit(put(["log", "s", 3], "B2")),
      ]);
      reset(library.disk);
      assert.equal(writes.length, 2);
      middle = size + writes[0];
    });
    const path = await journalOf(directory);
    const second = (await readFile(path)).indexOf("B2");
    await withHoles(directory, [middle, second - 600], (what) => goesOn(library, directory, { '["log","s",0]': "A", '["log","s",1]': "X" }, what));
  },

  "D2, D15: a bit is flipped, anywhere in the files of five sessions": async (library, folder) => {
    const directory = join(folder, "store");
    await fiveSessions(library, directory);
    const journal = await journalOf(directory);
    const [bytes, noted] = [await readFile(journal), await readFile(note(directory))];
    const rows = await using(library, directory, contents);
    assert.equal(Object.keys(rows).length, SESSIONS * 4);
    assert.match(bytes.toString("latin1"), /"base":true/);
    const values = places(bytes, rows);
    const random = generator(7);
    const bits = (bytes.length + noted.length) * 8;
    // The heads of records that stand behind something else are tried in any case.
    const behind = [];
    for (const { index, 1: at, 2: after } of bytes.toString("latin1").matchAll(/\{"at":(\d+),"after":(\d+),/g)) {
      if (Number(at) === index - HEAD && at !== after) for (let byte = index - HEAD; byte < index; byte++) behind.push(byte);
    }
    assert.equal(behind.length, 3 * HEAD);
    const all = FLIPS === "all";
    for (let nth = 0; nth < (all ? bits : Number(FLIPS)); nth++) {
      const bit = all ? nth : nth < behind.length ? behind[nth] * 8 + random(8) : random(bits);
      const at = bit >> 3;
      const what = `bit ${bit & 7} of byte ${at} of ${bytes.length}`;
      const flipped = at < bytes.length ? [journal, bytes, at] : [note(directory), noted, at - bytes.length];
      await writeFile(journal, bytes);
      await writeFile(note(directory), noted);
      const copy = Buffer.from(flipped[1]);
      copy[flipped[2]] ^= 1 << (bit & 7);
      await writeFile(flipped[0], copy);
      const expected = values.filter(({ from, to }) => from <= at && at < to).map(({ key }) => key);
      const same = (found, rows, what) => {
        assert.deepEqual(damagedOf(found), expected, what);
        for (const key of expected) delete found[key];
        const others = Object.fromEntries(Object.entries(rows).filter(([key]) => !expected.includes(key)));
        assert.deepEqual(found, others, what);
      };
      await using(library, directory, async (store) => {
        same(await contents(store).catch((error) => assert.fail(`${what}: ${error.stack}`)), rows, what);
        assert.equal(await store.dataLoss(), undefined, what);
        await store.commit(put(["meta", "more"], what));
        // Its version is known: expected, it is written over, and deleted.
        for (const key of expected.map((key) => JSON.parse(key))) {
          const version = key[0] === "sessions" ? ROUNDS : 1;
          await assert.rejects(store.commit(batch({ expect: [{ key, version: version + 1 }], deletes: [key] })), { code: "conflict" });
          await store.commit({ ...put(key, "over it"), expect: [{ key, version }] });
          await store.commit(batch({ expect: [{ key, version: version + 1 }], deletes: [key] }));
        }
      });
      const after = { ...rows, '["meta","more"]': what };
      expected.splice(0).forEach((key) => delete after[key]);
      same(await using(library, directory, contents), after, `${what}, and more`);
    }
  },

  "D5: a damaged value does not stop the journal from being written anew": async (library, folder) => {
    const directory = join(folder, "store");
    const key = (i) => ["log", "s", i];
    const text = (i, round) => `${i} ${round} ${"text ".repeat(60)}`;
    const options = { rewriteBytes: 10_000 };
    const model = {};
    const set = (store, i, round) => {
      model[JSON.stringify(key(i))] = text(i, round);
      return store.commit(put(key(i), text(i, round)));
    };
    await using(library, directory, async (store) => {
      for (let i = 0; i < 100; i++) await set(store, i, 0);
    });
    await edit(await journalOf(directory), (bytes) => void bytes.write("?", bytes.indexOf("7 0 text") + 50));
    const damaged = await readFile(await journalOf(directory));
    const rows = Object.values(model).join("").length;
    const check = async (store, what) => {
      const found = await contents(store);
      assert.ok(isDamaged(found['["log","s",7]']), what);
      assert.deepEqual({ ...found, '["log","s",7]': "" }, { ...model, '["log","s",7]': "" }, what);
    };
    const keeps = async (what) => {
      const kept = (await readdir(directory)).filter((name) => name.startsWith("damaged-"));
      assert.equal(kept.length, 1, `${what}: ${kept}`);
      assert.deepEqual((await readFile(join(directory, kept[0]))).subarray(0, damaged.length), damaged, what);
    };
    await using(library, directory, async (store) => {
      for (let i = 0; i < 1_000; i++) {
        await set(store, 8 + (i % 90), i);
        const { size } = await stat(await journalOf(directory));
        assert.ok(size < 3 * rows, `${size} bytes after ${i} appends for ${rows} of rows`);
      }
      await check(store, "written anew");
      await keeps("written anew");
    }, options);
    await using(library, directory, async (store) => {
      await check(store, "opened again");
      const suspect = await journalOf(directory);
      library.disk.call = (name, args, perform) =>
        name === "datasync" ? Promise.reject(Object.assign(new Error("made by the test"), { code: "EIO" })) : perform(...args);
      await assert.rejects(store.commit(put(["meta", "synced"], "no")), { code: "indeterminate" });
      reset(library.disk);
      await set(store, 9, "healed");
      assert.notEqual(await journalOf(directory), suspect);
      await store.commit(batch({ deletes: [["meta", "synced"]] }));
      await check(store, "after a sync that failed");
    }, { rewriteBytes: Infinity });
    await using(library, directory, (store) => check(store, "at last"));
    await keeps("at last");
  },

  "D8: what cannot be written is not said to be durable": async (library, folder) => {
    const directory = join(folder, "store");
    await using(library, directory, (store) => store.commit(put(["meta", "a"], "1")));
    library.disk.call = (name, args, perform) => {
      if (name === "open" && (args[1] & 3) === 2) return Promise.reject(Object.assign(new Error("EROFS"), { code: "EROFS" }));
      return perform(...args);
    };
    await using(library, directory, async (store) => {
      assert.deepEqual(await contents(store), { '["meta","a"]': "1" });
      assert.equal(store.caps.durable, "none");
      await assert.rejects(store.commit(put(["meta", "b"], "2")), { code: "store_unavailable" });
    });
    reset(library.disk);
    await using(library, directory, async (store) => {
      await store.commit(put(["meta", "b"], "2"));
      assert.equal(store.caps.durable, "synced");
    });
  },

  "D22: a journal that is written anew has every row": async (library, folder) => {
    const MIB = 1024 * 1024;
    const counts = { 51: 300, 1_001: 20, 5: (4 * MIB + 1) / 5 };
    for (const [count, bytes] of Object.entries(counts)) {
      const directory = join(folder, count);
      const model = {};
      await using(library, directory, async (store) => {
        for (const round of [1, 2, 3]) {
          const puts = Array.from({ length: Number(count) }, (_, i) => [["log", "s", i], `${round} ${i} `.padEnd(bytes, ".")]);
          for (const [key, text] of puts) model[JSON.stringify(key)] = text;
          await store.commit(batch({ puts }));
        }
      }, { rewriteBytes: 1 });
      assert.match(await journalOf(directory), /0{11}[^1]$/);
      assert.deepEqual(await using(library, directory, contents), model, `${count} rows`);
    }
  },

  "D22: a strict commit is synced whatever is written with it": async (library, folder) => {
    for (const kinds of [["relaxed", "strict"], ["strict", "relaxed"], ["relaxed", "strict", "relaxed"]]) {
      const store = library.fileStore(join(folder, kinds.join("-")));
      await store.read([["meta", "a"]]);
      const counts = { write: 0, datasync: 0 };
      library.disk.call = (name, args, perform, file) => {
        const done = () => void (name in counts && /journal/.test(file.path) && counts[name]++);
        return perform(...args).then((result) => (done(), result));
      };
      const first = store.commit(put(["meta", "first"], "", "relaxed"));
      const all = kinds.map((kind, i) =>
        store.commit(put(["meta", `${i}`], "", kind)).then(() => kind === "strict" && assert.equal(counts.datasync, 1, kinds.join())));
      await Promise.all([first, ...all]);
      assert.equal(counts.write, 2, "they are written together");
      reset(library.disk);
      await store.close();
    }
  },

  "D22: what is read after a kill stays, without power too": async (library, folder) => {
    const [directory, left] = [join(folder, "store"), join(folder, "left")];
    await using(library, directory, (store) => store.commit(put(["meta", "a"], "1")));
    const cut = await watchPower(library.disk, directory);
    const watching = library.disk.call;
    const stopped = stopAt(library.disk, (name, _, file) => name === "datasync" && /journal/.test(file.path) && file.handle.written);
    const mark = library.disk.call;
    library.disk.call = (name, args, perform, file) => {
      if (name === "write" && /journal/.test(file.path)) file.handle.written = true;
      return mark(name, args, perform, file);
    };
    const killed = library.fileStore(directory);
    void killed.commit(put(["meta", "b"], "2")).catch(() => {});
    await stopped.reached;
    await release(library.disk);
    library.disk.call = watching;
    const read = await using(library, directory, contents);
    assert.deepEqual(read, { '["meta","a"]': "1", '["meta","b"]': "2" });
    reset(library.disk);
    await cut(0, left);
    assert.deepEqual(await using(library, left, contents), read);
  },

  "D22: what is appended to a file that was removed is not acknowledged": async (library, folder) => {
    const directory = join(folder, "store");
    const store = library.fileStore(directory);
    await store.commit(put(["meta", "a"], "1"));
    await unlinkedWhileWriting(library, directory, store);
    await store.close();
  },
};

/** The journal is removed when the store has looked at it for the last time before it writes. */
async function unlinkedWhileWriting(library, directory, store) {
  const stopped = stopAt(library.disk, (name, _, file) => name === "write" && /journal/.test(file.path));
  const late = store.commit(put(["meta", "b"], "2"));
  await stopped.reached;
  await unlink(await journalOf(directory));
  stopped.go();
  await assert.rejects(late, { code: "store_corrupt" });
  await assert.rejects(store.commit(put(["meta", "c"], "3")), { code: "store_corrupt" });
}
