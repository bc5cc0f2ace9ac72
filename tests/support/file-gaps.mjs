/** What must hold for a file store when more is damaged than a bit: records that are gone, and what nobody vouched for. */

import assert from "node:assert/strict";
import { cp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { damagedOf, fiveSessions, goesOn, isDamaged, message, note, places, put, SESSIONS, using } from "./file-damage.mjs";
import { batch, contents, edit, journalOf, stopAt } from "./file-store.mjs";
import { generator } from "./random.mjs";

const ROUNDS_OF_DAMAGE = Number(process.env.CC_DAMAGES ?? 60);

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

export const gapChecks = {
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
    const files = [[await journalOf(directory), 90], [note(directory), 144]];
    const kept = await Promise.all(files.map(([path]) => readFile(path)));
    assert.deepEqual([kept[0].indexOf("\n") + 1, kept[1].length], [90, 144]);
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
    await using(library, directory, async (store) => {
      for (let i = 0; i < 9; i++) await store.commit(batch({ puts: [[["log", "s", 0], "a"], [["log", "s", 1], `b${"b".repeat(200)}`]] }));
      await store.purge();
    });
    await rm(note(directory));
    await edit(await journalOf(directory), (bytes) => void bytes.write("?", bytes.lastIndexOf("bbb")));
    const found = await using(library, directory, contents);
    assert.equal(found['["log","s",0]'], "a");
    assert.deepEqual(damagedOf(found), ['["log","s",1]']);
  },

  "D15: who comes late with a note leaves the newer one of another": async (library, folder) => {
    const directory = join(folder, "store");
    await using(library, directory, (store) => store.commit(put(["meta", "a"], "1")));
    for (const when of ["it opens", "it synced"]) {
      const store = library.fileStore(directory);
      if (when === "it synced") await store.read([["meta", "a"]]);
      // It is stopped with what it is about to note. A directory without a note has to be noted when it is opened.
      else await rm(note(directory));
      const stopped = stopAt(library.disk, (name, _, file) => name === "write" && file.path.endsWith("acknowledged"));
      const work = when === "it synced" ? store.commit(put(["meta", "late"], when)) : store.read([["meta", "a"]]);
      await stopped.reached;
      await using(library, directory, (store) => store.commit(put(["meta", "b"], when)));
      stopped.go();
      await work;
      await store.close();
      const path = await journalOf(directory);
      const bytes = await readFile(path);
      await edit(path, (bytes) => void (bytes[bytes.lastIndexOf(when)] ^= 1));
      assert.deepEqual(damagedOf(await using(library, directory, contents)), ['["meta","b"]'], when);
      await writeFile(path, bytes);
    }
  },

  "D15: what another process acknowledged and is damaged since is missed by who had the store open": async (library, folder) => {
    const directory = join(folder, "store");
    const store = library.fileStore(directory);
    await store.commit(put(["meta", "a"], "1"));
    await using(library, directory, (other) => other.commit(put(["meta", "lost"], "x".repeat(500))));
    const { size } = await stat(await journalOf(directory));
    await edit(await journalOf(directory), (bytes) => void bytes.fill(0, size - 700));
    assert.deepEqual(await contents(store), { '["meta","a"]': "1" });
    await store.commit(put(["meta", "b"], "2"));
    await store.close();
    await using(library, directory, async (next) => {
      assert.match(await next.dataLoss(), /^1 of the stored records cannot be read/);
      assert.deepEqual(await contents(next), { '["meta","a"]': "1", '["meta","b"]': "2" });
      await next.commit(put(["meta", "c"], "3"));
    });
    assert.deepEqual(Object.keys(await using(library, directory, contents)), ['["meta","a"]', '["meta","b"]', '["meta","c"]']);
  },

  "D15: the first line is gone": async (library, folder) => {
    const directory = join(folder, "store");
    await fiveSessions(library, directory);
    const rows = await using(library, directory, contents);
    await edit(await journalOf(directory), (bytes) => void bytes.fill(0, 0, 60));
    await goesOn(library, directory, rows, "without a first line");
  },
};
