/** What must hold for a file store whose process or disk fails: checks that broken stores are held against too. */

import assert from "node:assert/strict";
import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { generator } from "./random.mjs";
import { batch, contents, failAt, journalOf, killAt, LEFT, LITTERING, loadStore, NOTES, QUICK, release, reset, stopAt, UNTIDY, watchPower } from "./file-store.mjs";

const HEAD = ["sessions", "s"];
const row = (i) => ["log", "s", i];
const textOf = (i) => `${i} ${"text ".repeat(60)}`;
/** So small that the journal is written anew every few batches. */
const SMALL = { rewriteBytes: 1_500 };
const BATCHES = 10;
/** One in so many of all power cuts is tried, and all of them with `CC_KILLS`. It has no divisor in common with the numbers
 *  of what is left, of notes and of ways to go on, so that all of those meet. */
const SHARE = 8;

/** They make more changes of the disk than so many, and writes. */
const CHANGES = 40;
const WRITES = 20;

/** Batch `i` of a session of which the last three messages are kept. */
export function batchOf(i) {
  return batch({
    expect: [{ key: HEAD, version: i === 0 ? null : i }],
    puts: [
      [HEAD, textOf(i)],
      [row(i), textOf(i)],
    ],
    deletes: i >= 3 ? [row(i - 3)] : [],
  });
}

/** What a store holds after `count` batches. */
export function model(count) {
  const rows = {};
  if (count > 0) rows[JSON.stringify(HEAD)] = textOf(count - 1);
  for (let i = Math.max(0, count - 3); i < count; i++) rows[JSON.stringify(row(i))] = textOf(i);
  return rows;
}

/** Commits the batches from `from` on, two at a time; `told` says how many were acknowledged. Throws the first failure. */
async function work(store, told, from = 0, to = BATCHES) {
  for (let i = from; i < to; i += 2) {
    const both = [i, i + 1].map(async (at) => {
      await store.commit(batchOf(at));
      told.acknowledged = Math.max(told.acknowledged, at + 1);
    });
    const results = await Promise.allSettled(both);
    for (const { status, reason } of results) if (status === "rejected") throw reason;
  }
}

async function countOf(store) {
  const [head] = await store.read([HEAD]);
  assert.equal(head?.damaged, undefined);
  return head ? Number.parseInt(new TextDecoder().decode(head)) + 1 : 0;
}

/** How many batches are in `store`, which must be what so many leave; of those acknowledged, all. */
export async function whole(store, acknowledged, what) {
  const found = await contents(store).catch((error) => assert.fail(`${what}: ${error.message}`));
  const count = await countOf(store);
  assert.ok(count >= acknowledged, `${what}: ${count} batches are there, ${acknowledged} were acknowledged`);
  assert.deepEqual(found, model(count), `${what}: a mix`);
  return count;
}

/** Opens what is left: it is whole, and goes on. */
async function goesOn({ fileStore }, directory, acknowledged, what) {
  const store = fileStore(directory, SMALL);
  const count = await whole(store, acknowledged, what);
  await store.commit(batchOf(count)).catch((error) => assert.fail(`${what}, one more: ${error.message}`));
  await store.close();
  const again = fileStore(directory);
  assert.equal(await whole(again, count + 1, `${what}, then one more`), count + 1);
  await again.close();
}

/** What is done with what is left. The power is cut twice: as before, when what was written since is synced. */
const AFTERWARDS = {
  "looked at": async (library, directory, acknowledged, what) => {
    const store = library.fileStore(directory, SMALL);
    const count = await whole(store, acknowledged, what);
    await store.close();
    await goesOn(library, directory, count, `${what}, again`);
  },
  "gone on with": goesOn,
  "gone on with twice": async (library, directory, acknowledged, what, left) => {
    const cut = left === undefined ? undefined : await watchPower(library.disk, directory);
    const told = { acknowledged };
    const store = library.fileStore(directory, SMALL);
    const count = await whole(store, acknowledged, what);
    await work(store, told, count, count + 1).catch((error) => assert.fail(`${what}, one more: ${error.message}`));
    await release(library.disk);
    reset(library.disk);
    const next = cut ? `${directory}.next` : directory;
    await cut?.(left, next);
    await goesOn(library, next, told.acknowledged, `${what}, then again`);
  },
};

/**
 * A process that is killed at each of its changes of the disk in turn, or cut off by a power cut: with each of `lefts`
 * and `notes`, and each way to go on. Of this product, one in `every` is tried.
 */
async function killEverywhere(library, folder, lefts = [undefined], notes = ["kept"], every = 1) {
  const counts = { cuts: 0, pages: 0, ways: 0, tried: 0 };
  let nth = 0;
  for (let at = 1; ; at++) {
    const directory = join(folder, `kill-${at}`);
    await mkdir(directory);
    const cut = Array.isArray(lefts) && lefts[0] === undefined ? undefined : await watchPower(library.disk, directory);
    const died = killAt(library.disk, at);
    const told = { acknowledged: 0 };
    const done = await Promise.race([
      died.then(() => false),
      work(library.fileStore(directory, SMALL), told).then(() => true),
    ]);
    await release(library.disk);
    reset(library.disk);
    const pages = (await cut?.pages()) ?? 0;
    counts.cuts++;
    counts.pages = Math.max(counts.pages, pages);
    for (const left of Array.isArray(lefts) ? lefts : lefts(pages, at)) {
      for (const note of notes) {
        for (const [how, goOn] of Object.entries(AFTERWARDS)) {
          counts.ways++;
          if (++nth % every !== 0) continue;
          counts.tried++;
          const copy = join(folder, "copy");
          await (cut ? cut(left, copy, note) : cp(directory, copy, { recursive: true }));
          await goOn(library, copy, told.acknowledged, `killed at change ${at}, left ${left}, note ${note}, ${how}`, left);
          await release(library.disk);
          for (const path of [copy, `${copy}.names`, `${copy}.next`]) await rm(path, { recursive: true, force: true });
        }
      }
    }
    for (const path of [directory, `${directory}.names`]) await rm(path, { recursive: true, force: true });
    if (done) {
      assert.ok(at > CHANGES, `only ${at} changes`);
      return counts;
    }
  }
}

/** So many pages that are not synced are there or not in every way; of more, so many ways are drawn. */
const EXHAUSTIVE = 10;
const DRAWN = 1_000;
/** One in so many of all ways is tried in `npm test`, which is seconds; no divisor in common with the numbers of the rest. */
const PAGES_SHARE = 37;

/** Every set of `pages` pages, each with a file that is as long as it was, and with one that ends behind the last of them. */
function* setsOf(pages, seed) {
  const random = generator(seed);
  const sets = pages <= EXHAUSTIVE ? 2 ** pages : DRAWN;
  for (let nth = 0; nth < sets; nth++) {
    const isIn = (at) => (pages <= EXHAUSTIVE ? (nth >> at) & 1 : random(2));
    const there = new Set(Array.from({ length: pages }, (_, at) => at).filter(isIn));
    for (const isShort of [false, true]) yield Object.assign(new Pages(there), { isShort });
  }
}

/** Pages that a power cut leaves; in a later cut, those of the same numbers. */
class Pages extends Set {
  toString() {
    return `pages [${[...this]}]${this.isShort ? ", short" : ""}`;
  }
}

/** All that a power cut may leave of a journal, page by page: one in `every` of all cuts × sets of pages × notes × ways to go on. */
export function cutPages(library, folder, every = PAGES_SHARE) {
  return killEverywhere(library, folder, setsOf, NOTES, every);
}

/** A disk that fails once, at each of its uses in turn: a typed error says what is stored, and the store goes on. */
async function failEverywhere(library, folder, code, expected) {
  for (let at = 1; ; at++) {
    const directory = join(folder, `fail-${at}`);
    const failing = failAt(library.disk, at, code);
    const told = { acknowledged: 0 };
    const store = library.fileStore(directory, SMALL);
    const error = await work(store, told).then(
      () => undefined,
      (error) => error,
    );
    const what = `${code} at use ${at}, ${failing.failed()?.name}`;
    const done = !failing.failed();
    reset(library.disk);
    const count = await whole(store, told.acknowledged, what);
    if (error) assert.ok(expected.includes(error.code), `${what}: ${error.code} ${error.message}`);
    if (error?.code !== "indeterminate") assert.equal(count, told.acknowledged, `${what}: ${error?.message}`);
    await store.commit(batchOf(count)).catch((error) => assert.fail(`${what}, then one more: ${error.message}`));
    // What the system could not write it may have forgotten: nothing more goes there.
    if (error?.code === "indeterminate" && failing.failed().name === "datasync") assert.notEqual(await journalOf(directory), failing.failed().path, what);
    await store.close();
    await goesOn(library, directory, count + 1, what);
    if (done) return assert.ok(at > WRITES, `only ${at} uses`);
    await rm(directory, { recursive: true });
  }
}

/** The store of one process, and of another one, which is sound. */
async function twice(library, folder, options, others = options) {
  const other = await loadStore([QUICK, UNTIDY]);
  return [library.fileStore(folder, options), other.fileStore(folder, others), other];
}

/** The same in every store, an empty one that is opened now among them; returns it. */
async function agreed(library, folder, stores) {
  const fresh = library.fileStore(folder);
  const found = await contents(fresh);
  for (const store of stores) assert.deepEqual(await contents(store), found, "what the processes see");
  for (const store of [fresh, ...stores]) await store.close();
  return found;
}

const note = (name) => batch({ puts: [[["meta", name], name]] });

export const checks = {
  "killed at any moment": (library, folder) => killEverywhere(library, folder),
  "the power is cut at any moment": (library, folder) =>
    killEverywhere(library, folder, LEFT, NOTES, process.env.CC_KILLS ? 1 : SHARE),
  "D12, D21: the power is cut at any moment, and any of the unsynced pages are left": (library, folder) => cutPages(library, folder),
  "the disk fails once": (library, folder) =>
    failEverywhere(library, folder, "EIO", ["store_unavailable", "indeterminate"]),
  "the disk is full once": (library, folder) =>
    failEverywhere(library, folder, "ENOSPC", ["quota_exceeded", "indeterminate"]),
  "a write ends early": (library, folder) => failEverywhere(library, folder, "SHORT", ["store_unavailable", "indeterminate"]),

  "D21: what a failed sync left is not read before it is on the disk": async (library, folder) => {
    const store = library.fileStore(folder);
    await store.commit(batchOf(0));
    const old = await journalOf(folder);
    let broken = true;
    const before = library.disk.call;
    library.disk.call = (name, args, perform, file) => {
      const isSync = name === "sync" || name === "datasync";
      if (broken && isSync) return Promise.reject(Object.assign(new Error("EIO: made by the test"), { code: "EIO" }));
      return before(name, args, perform, file);
    };
    await assert.rejects(store.commit(batchOf(1)), { code: "indeterminate" });
    // Who reads again to see whether it was written gets no answer that a power cut would make untrue.
    await assert.rejects(store.read([HEAD]), { code: "store_unavailable" });
    await assert.rejects(store.scan(["log"], { limit: 9, maxBytes: 9_000 }), { code: "store_unavailable" });
    broken = false;
    assert.equal(await whole(store, 1, "read again"), 2);
    assert.notEqual(await journalOf(folder), old, "it was not written anew");
    reset(library.disk);
    const next = await journalOf(folder);
    failAt(library.disk, 4, "EIO");
    await assert.rejects(store.commit(batchOf(2)), { code: "indeterminate" });
    reset(library.disk);
    await store.close();
    assert.notEqual(await journalOf(folder), next, "it was closed and not written anew");
    await goesOn(library, folder, 3, "afterwards");
  },

  "D21: its directory is on the disk before anything is acknowledged in it, whoever made it": async (library, folder) => {
    const other = await loadStore();
    const synced = new Set();
    for (const { disk } of [library, other]) {
      disk.call = async (name, args, perform, file) => {
        const result = await perform(...args);
        if (name === "sync") synced.add(file.path);
        return result;
      };
    }
    const watched = other.disk.call;
    for (const code of [undefined, "EIO"]) {
      for (let at = 1; ; at++) {
        const base = join(folder, `${code}-${at}`);
        await mkdir(base);
        const directory = join(base, "above", "store");
        synced.clear();
        // Who makes it is killed at any change, or a use of the disk fails.
        const failing = code && failAt(other.disk, at, code);
        const died = code ? new Promise(() => {}) : killAt(other.disk, at);
        const first = other.fileStore(directory).commit(note("first")).catch(() => {});
        const isKilled = await Promise.race([died.then(() => true), first.then(() => false)]);
        other.disk.call = watched;
        await release(other.disk);
        const store = library.fileStore(directory);
        await store.commit(note("second"));
        for (const path of [base, join(base, "above"), directory]) {
          assert.ok(synced.has(path), `${code ?? "killed"} at ${at}: ${path.slice(base.length)} may not be there without power`);
        }
        await store.close();
        if (code ? !failing.failed() : !isKilled) break;
      }
    }
  },

  "D21: what may have been written is not read before it is on the disk": async (library, folder) => {
    const directory = join(folder, "store");
    await mkdir(directory);
    const cut = await watchPower(library.disk, directory);
    const store = library.fileStore(directory);
    await store.commit(batchOf(0));
    const watched = library.disk.call;
    // Behind the write nobody can look at the file, and its syncs fail, the first time or not.
    for (const [nth, fails] of [["stat"], ["stat", "datasync"]].entries()) {
      const left = [...fails];
      let isWritten = false;
      library.disk.call = (name, args, perform, file) => {
        if (isWritten && name === left[0]) return Promise.reject(Object.assign(new Error(`EIO: made by the test, ${left.shift()}`), { code: "EIO" }));
        isWritten ||= name === "write";
        return watched(name, args, perform, file);
      };
      await assert.rejects(store.commit(batchOf(1 + nth)), { code: "indeterminate" });
      assert.equal(await whole(store, 1 + nth, "read again"), 2 + nth);
      assert.equal(left.length, 0);
      library.disk.call = watched;
      const copy = join(folder, `cut-${nth}`);
      await cut(0, copy, "before");
      const next = library.fileStore(copy);
      await whole(next, 2 + nth, `without power, ${fails}`);
      await next.close();
    }
    await store.close();
  },

  "stopped before it writes, it conflicts with what came first": async (library, folder) => {
    const [a, b] = await twice(library, folder);
    await a.commit(batchOf(0));
    const stopped = stopAt(library.disk, (name) => name === "write");
    const late = [a.commit(batchOf(1)), a.commit(note("late"))];
    await stopped.reached;
    await b.commit(batchOf(1));
    await b.commit(note("first"));
    stopped.go();
    await assert.rejects(late[0], { code: "conflict" });
    await late[1];
    await b.commit(note("last"));
    const others = { '["meta","first"]': "first", '["meta","last"]': "last", '["meta","late"]': "late" };
    assert.deepEqual(await agreed(library, folder, [a, b]), { ...others, ...model(2) });
  },

  "a commit does not conflict with one that was refused": async (library, folder) => {
    const [a, b] = await twice(library, folder);
    await a.commit(note("made"));
    // After a read nothing is under way: the first commit is written alone, the others together.
    await a.read([HEAD]);
    const missing = (...names) => names.map((name) => ({ key: ["meta", name], version: null }));
    let writes = 0;
    const stopped = stopAt(library.disk, (name, _, file) => name === "write" && /journal/.test(file.path) && ++writes === 2);
    const ended = Promise.allSettled([
      a.commit(note("alone")),
      a.commit({ ...note("row"), expect: missing("row", "other") }),
      a.commit({ ...note("row"), expect: missing("row") }),
    ]);
    await stopped.reached;
    await b.commit(note("other"));
    stopped.go();
    const [, refused, taken] = await ended;
    assert.equal(refused.reason?.field, '["meta","other"]');
    assert.equal(taken.status, "fulfilled", taken.reason?.message);
    await agreed(library, folder, [a, b]);
  },

  "stopped before it publishes, others publish and go on": async (library, folder) => {
    for (const rewrites of [0, 12]) {
      const directory = join(folder, String(rewrites));
      const [a, b] = await twice(library, directory, SMALL, rewrites > 0 ? SMALL : {});
      await a.commit(note("made"));
      const stopped = stopAt(library.disk, (name) => name === "link" || name === "rename");
      const working = work(a, { acknowledged: 0 }).catch((error) => error);
      await stopped.reached;
      let count = await countOf(b);
      // Both of the batches that wait in the other process have to conflict.
      for (let i = 0; i < 2; i++) await b.commit(batchOf(count++));
      const number = async () => Number((await journalOf(directory)).slice(-12));
      for (const begun = await number(); (await number()) < begun + rewrites; ) await b.commit(batchOf(count++));
      stopped.go();
      assert.equal((await working)?.code, "conflict");
      await a.commit(note("late"));
      await b.commit(batchOf(count++));
      const others = { '["meta","late"]': "late", '["meta","made"]': "made" };
      assert.deepEqual(await agreed(library, directory, [a, b]), { ...others, ...model(count) });
    }
  },

  "stopped while it opens a journal whose name somebody takes who is late": async (library, folder) => {
    const [a, b, other] = await twice(library, folder, SMALL, {});
    const late = await loadStore([QUICK, LITTERING]);
    const c = late.fileStore(folder, SMALL);
    await c.commit(note("made"));
    const publishing = stopAt(late.disk, (name) => name === "link");
    const working = work(c, { acknowledged: 0 }).catch((error) => error);
    await publishing.reached;
    let count = await countOf(b);
    for (let i = 0; i < 2; i++) await b.commit(batchOf(count++));
    const taken = await journalOf(folder);
    const opening = stopAt(library.disk, (name, [path]) => name === "open" && path === taken);
    const first = a.commit(note("opened"));
    await opening.reached;
    const busy = other.fileStore(folder, SMALL);
    while (Number((await journalOf(folder)).slice(-12)) < Number(taken.slice(-12)) + 12) await busy.commit(batchOf(count++));
    publishing.go();
    assert.equal((await working)?.code, "conflict");
    await c.commit(note("late"));
    opening.go();
    await first;
    const others = { '["meta","late"]': "late", '["meta","made"]': "made", '["meta","opened"]': "opened" };
    assert.deepEqual(await agreed(library, folder, [a, b, busy, c]), { ...others, ...model(count) });
  },

  "sealed between reading and writing": async (library, folder) => {
    const [a, b] = await twice(library, folder, SMALL);
    await a.commit(note("made"));
    const stopped = stopAt(library.disk, (name) => name === "write");
    const late = a.commit(note("late"));
    await stopped.reached;
    const sealed = await journalOf(folder);
    let count = 0;
    while ((await journalOf(folder)) === sealed) await b.commit(batchOf(count++));
    stopped.go();
    await late;
    const others = { '["meta","late"]': "late", '["meta","made"]': "made" };
    assert.deepEqual(await agreed(library, folder, [a, b]), { ...others, ...model(count) });
  },

  "others append while the journal is written anew": async (library, folder) => {
    for (const times of [1, 5]) {
      const directory = join(folder, String(times));
      const [a, b] = await twice(library, directory, SMALL);
      await a.commit(note("made"));
      let count = 0;
      // Whenever a new journal is synced, the other process was faster.
      const before = library.disk.call;
      library.disk.call = async (name, args, perform, file) => {
        const result = await before(name, args, perform, file);
        if (name === "sync" && file.path.endsWith(".new") && count++ < times) await b.commit(note(`b${count}`));
        return result;
      };
      await work(a, { acknowledged: 0 });
      reset(library.disk);
      const found = await agreed(library, directory, [a, b]);
      const others = Object.keys(found).filter((key) => key.startsWith('["meta","b'));
      assert.ok(count > times && others.length === times, `${others.length} of ${times}, ${count} attempts`);
      assert.equal(found[JSON.stringify(HEAD)], textOf(BATCHES - 1));
    }
  },
};
