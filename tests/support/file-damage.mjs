/** What must hold for a file store whose files are damaged: checks that broken stores are held against too. */

import assert from "node:assert/strict";
import { appendFile, cp, readdir, readFile, rm, stat, truncate, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { batch, contents, edit, journalOf, killAt, release, reset, stopAt, watchPower } from "./file-store.mjs";
import { generator } from "./random.mjs";

/** So many bits are flipped, each alone; with `CC_FLIPS=all`, every bit that there is. */
const FLIPS = process.env.CC_FLIPS ?? "1000";
const ROUNDS_OF_DAMAGE = Number(process.env.CC_DAMAGES ?? 60);
const SESSIONS = 5;
const ROUNDS = 7;

const put = (key, text, durability = "strict") => batch({ puts: [[key, text]], durability });
const note = (directory) => join(directory, "acknowledged");
const isDamaged = (value) => value?.damaged !== undefined;

/** Opens the store for `work`. */
async function using({ fileStore }, directory, work, options) {
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
async function goesOn(library, directory, rows, what) {
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
function message(s, i, version = i === 0 ? null : i) {
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
async function fiveSessions(library, directory) {
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
function places(bytes, rows) {
  return Object.entries(rows).map(([key, text]) => {
    const from = bytes.lastIndexOf(text);
    assert.ok(from > 0, key);
    return { key, from, to: from + Buffer.byteLength(text) };
  });
}

/** Zeros, other bytes or other bits somewhere behind the first line, or no end. */
function harmed(bytes, random, kinds) {
  const start = bytes.indexOf("\n") + 1;
  for (let times = random(3); times >= 0; times--) {
    const at = start + random(Math.max(1, bytes.length - start));
    const to = Math.min(bytes.length, at + 1 + random(3_000));
    const kind = random(kinds);
    if (kind === 0) bytes.fill(0, at, to);
    else if (kind === 1) for (let i = at; i < to; i++) bytes[i] = random(256);
    else if (kind === 2) bytes[at] ^= 1 << random(8);
    else bytes = bytes.subarray(0, random(4) ? bytes.length : at);
  }
  return bytes;
}

const damagedOf = (rows) => Object.keys(rows).filter((key) => isDamaged(rows[key])).sort();

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
    const all = FLIPS === "all";
    for (let nth = 0; nth < (all ? bits : Number(FLIPS)); nth++) {
      const bit = all ? nth : random(bits);
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

  "D15: records that were acknowledged cannot be read": async (library, folder) => {
    const [base, directory] = [join(folder, "base"), join(folder, "store")];
    const VERSIONS = 4;
    // What was deleted may be back.
    const deleted = {};
    await using(library, base, async (store) => {
      for (let i = 0; i < VERSIONS; i++) {
        for (let s = 0; s < SESSIONS; s++) {
          const { puts, ...others } = message(s, i);
          if (i === 0) deleted[JSON.stringify(puts[1][0])] = new TextDecoder().decode(puts[1][1]);
          await store.commit({ puts, ...others });
        }
      }
    });
    const rows = await using(library, base, contents);
    const bytes = await readFile(await journalOf(base));
    const values = places(bytes, rows);
    // Once the end is cut off, else it is zeros for about two records.
    const harms = [];
    for (let at = bytes.indexOf("\n") + 1; at < bytes.length; at += 397) {
      harms.push([at, Infinity], [at, Math.min(at + 1_200, bytes.length)]);
    }
    for (const [nth, [from, to]] of harms.entries()) {
      const what = `${to === Infinity ? "nothing" : "zeros"} from ${from}`;
      await rm(directory, { recursive: true, force: true });
      await cp(base, directory, { recursive: true });
      const journal = await journalOf(directory);
      if (to === Infinity) await truncate(journal, from);
      else await edit(journal, (bytes) => void bytes.fill(0, from, to));
      const harmed = await readFile(journal);
      const unharmed = values.filter(({ key, from: at, to: end }) => key.startsWith('["log"') && (end < from - 40 || at > to + 700));
      const check = async (store, what) => {
        const found = await contents(store).catch((error) => assert.fail(`${what}: ${error.stack}`));
        // A value is what it was, or damaged, or missing: never an older one.
        for (const [key, value] of Object.entries(found)) if (!isDamaged(value)) assert.equal(value, rows[key] ?? deleted[key], `${what}: ${key}`);
        for (const { key } of unharmed) assert.equal(found[key], rows[key], `${what}: ${key}`);
        return found;
      };
      const tells = (nth >> 1) % 2 === 0;
      const options = (nth >> 2) % 2 ? { rewriteBytes: Infinity } : { rewriteBytes: 1 };
      const lost = await using(library, directory, async (store) => {
        const found = await check(store, what);
        const lost = tells ? await store.dataLoss() : undefined;
        const missing = Object.keys(rows).filter((key) => found[key] === undefined);
        if (missing.length > 0 && tells) assert.match(lost ?? "", /records cannot be read/, `${what}: ${missing}`);
        if (tells) assert.equal(await store.dataLoss(), undefined, `${what}: told twice`);
        return { found, lost };
      }, { rewriteBytes: Infinity });
      await using(library, directory, async (store) => {
        // Sessions go on, at a version that none of those had which are missing.
        const key = ["sessions", "s0"];
        await store.commit(put(key, rows['["sessions","s0"]']));
        await assert.rejects(store.commit({ ...put(key, "late"), expect: [{ key, version: VERSIONS }] }), { code: "conflict" }, what);
        for (let i = 0; i < 20; i++) await store.commit(put(["meta", "more"], `${"x".repeat(900)} ${i}`));
        rows['["meta","more"]'] = `${"x".repeat(900)} 19`;
      }, options);
      await using(library, directory, async (store) => {
        const found = await check(store, `${what}, and more`);
        assert.equal(found['["meta","more"]'], rows['["meta","more"]']);
        const expected = damagedOf(lost.found).filter((key) => key !== '["sessions","s0"]');
        assert.deepEqual(damagedOf(found), expected, `${what}: what is damaged stays so`);
        const told = await store.dataLoss();
        if (tells) assert.equal(told, undefined, `${what}: told again`);
        else if (Object.keys(lost.found).length < values.length) assert.match(told ?? "", /records cannot be read/, what);
        if (options.rewriteBytes === 1 && (expected.length > 0 || told)) {
          assert.deepEqual((await readFile(join(directory, "damaged-000000000001"))).subarray(0, harmed.length), harmed, what);
        }
        assert.equal(await store.dataLoss(), undefined, `${what}: told twice`);
      });
      delete rows['["meta","more"]'];
    }
  },

  "D15: whatever is damaged, again and again, the store opens and goes on": async (library, folder) => {
    const [base, directory] = [join(folder, "base"), join(folder, "store")];
    await fiveSessions(library, base);
    const rows = await using(library, base, contents);
    for (let seed = 1; seed <= ROUNDS_OF_DAMAGE; seed++) {
      const random = generator(seed);
      await rm(directory, { recursive: true, force: true });
      await cp(base, directory, { recursive: true });
      for (let round = 0; round < 3; round++) {
        const what = `seed ${seed}, round ${round}`;
        const options = { rewriteBytes: random(2) ? 1 : Infinity };
        const noted = await readFile(note(directory));
        // Another process has it open, and goes on; what is cut under it, it reports.
        const other = random(2) ? library.fileStore(directory) : undefined;
        await other?.read([["meta", "a"]]);
        await edit(await journalOf(directory), (bytes) => harmed(bytes, random, other ? 3 : 4));
        // The note may be older.
        if (random(3) === 0) await writeFile(note(directory), noted.subarray(0, random(2) * noted.length));
        const key = `["meta","round ${round}"]`;
        await using(library, directory, async (store) => {
          const found = await contents(store).catch((error) => assert.fail(`${what}: ${error.stack}`));
          for (const [key, text] of Object.entries(found)) {
            if (key.startsWith('["sessions"') && !isDamaged(text)) assert.match(text, /^row \d of \d: (its fields ){9}$/, what);
          }
          if (random(2)) await store.dataLoss();
          await store.commit(put(["sessions", "s0"], rows['["sessions","s0"]']));
          for (let i = 0; i < 4; i++) await store.commit(put(JSON.parse(key), `${i} ${what} ${"x".repeat(random(900))}`));
          await other?.commit(put(["meta", "other"], what));
          for (const one of other ? [other, store] : []) assert.equal((await contents(one))['["meta","other"]'], what);
          await other?.close();
        }, options);
        await using(library, directory, async (store) => {
          const found = await contents(store).catch((error) => assert.fail(`${what}, and more: ${error.stack}`));
          if (other) assert.equal(found['["meta","other"]'], what, `${what}, and more`);
          assert.match(String(found[key]), new RegExp(`^3 ${what}`), `${what}, and more`);
          assert.equal(found['["sessions","s0"]'], rows['["sessions","s0"]'], `${what}, and more`);
        });
      }
    }
  },

  "D15: what another process counts is not void": async (library, folder) => {
    const directory = join(folder, "store");
    const a = library.fileStore(directory);
    await a.commit(put(["log", "s", 0], "A"));
    await a.commit(put(["log", "s", 1], "B ".repeat(300), "relaxed"));
    const journal = await journalOf(directory);
    await edit(journal, (bytes) => void bytes.fill(0, bytes.length - 300, bytes.length - 200));
    // This one cannot know whether it was written: it looks like what a power cut leaves.
    const b = library.fileStore(directory);
    assert.deepEqual(await contents(b), { '["log","s",0]': "A" });
    await a.commit(put(["log", "s", 2], "C"));
    for (const store of [a, b]) {
      const found = await contents(store);
      assert.deepEqual(damagedOf(found), ['["log","s",1]']);
      assert.equal(found['["log","s",2]'], "C");
    }
    await b.commit(put(["log", "s", 3], "D"));
    assert.equal((await contents(a))['["log","s",3]'], "D");
    // And what another one found void is so for everyone.
    await a.commit(put(["log", "s", 4], "E ".repeat(300), "relaxed"));
    await edit(journal, (bytes) => void bytes.fill(0, bytes.length - 300, bytes.length - 200));
    const c = library.fileStore(directory);
    await c.commit(put(["log", "s", 5], "F"));
    for (const store of [a, b, c]) {
      const found = await contents(store);
      assert.deepEqual([found['["log","s",4]'], found['["log","s",5]']], [undefined, "F"]);
      await store.close();
    }
  },

  "D15: a relaxed commit of a store that was closed is vouched for": async (library, folder) => {
    const directory = join(folder, "store");
    await using(library, directory, async (store) => {
      for (let i = 0; i < 5; i++) await store.commit(put(["log", "s", i], `${i} relaxed`, "relaxed"));
    });
    await edit(await journalOf(directory), (bytes) => void bytes.write("?", bytes.indexOf("2 relaxed") + 3));
    const found = await using(library, directory, contents);
    assert.equal(Object.keys(found).length, 5);
    assert.deepEqual(damagedOf(found), ['["log","s",2]']);
  },

  "D15: a bit of the first line or of the note is flipped": async (library, folder) => {
    const directory = join(folder, "store");
    await using(library, directory, (store) => store.commit(put(["meta", "a"], "1")));
    const files = [[await journalOf(directory), 90], [note(directory), 72]];
    const kept = await Promise.all(files.map(([path]) => readFile(path)));
    assert.deepEqual([kept[0].indexOf("\n") + 1, kept[1].length], [90, 72]);
    for (const [nth, [path, length]] of files.entries()) {
      for (let bit = 0; bit < length * 8; bit++) {
        const bytes = Buffer.from(kept[nth]);
        bytes[bit >> 3] ^= 1 << (bit & 7);
        await writeFile(path, bytes);
        const what = `${path}: bit ${bit & 7} of ${bit >> 3}`;
        await using(library, directory, async (store) => {
          assert.deepEqual(await contents(store).catch((error) => assert.fail(`${what}: ${error.message}`)), { '["meta","a"]': "1" });
          assert.equal(await store.dataLoss(), undefined, what);
        });
      }
      await writeFile(path, kept[nth]);
    }
  },

  "D15: what was written anew is vouched for without a note": async (library, folder) => {
    const directory = join(folder, "store");
    const options = { rewriteBytes: 1 };
    await using(library, directory, async (store) => {
      for (let i = 0; i < 9; i++) await store.commit(batch({ puts: [[["log", "s", 0], "a"], [["log", "s", 1], `b${"b".repeat(200)}`]] }));
    }, options);
    await rm(note(directory));
    await edit(await journalOf(directory), (bytes) => void bytes.write("?", bytes.lastIndexOf("bbb")));
    const found = await using(library, directory, contents, options);
    assert.equal(found['["log","s",0]'], "a");
    assert.deepEqual(damagedOf(found), ['["log","s",1]']);
  },

  "D15: the first line is gone": async (library, folder) => {
    const directory = join(folder, "store");
    await fiveSessions(library, directory);
    const rows = await using(library, directory, contents);
    await edit(await journalOf(directory), (bytes) => void bytes.fill(0, 0, 60));
    await goesOn(library, directory, rows, "without a first line");
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
