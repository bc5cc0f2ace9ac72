/** Two copies of a store of which the second one is slow, fails or is behind (D23). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { fails } from "../support/api.mjs";
import { checkSame, Model, Process, SESSION } from "../support/mirror.mjs";
import { collect, disks, library, moment, over, session } from "../support/mirror-pairs.mjs";

test("D23: who comes second to the second copy overtakes nobody", async () => {
  const pair = disks();
  const model = new Model();
  const slow = new Process();
  let go;
  const held = new Promise((resolve) => (go = resolve));
  const second = pair[1].open(slow);
  const late = library.mirrorStore(pair[0].open(slow), {
    ...second,
    commit: async (batch) => {
      if (batch.puts.some(([key]) => key[0] === "log" && key[2] === 1)) await held;
      return second.commit(batch);
    },
  });
  await model.append(late);
  const waiting = model.append(late);
  for (let turns = 0; turns < 200; turns++) await undefined;
  const other = over(pair);
  assert.ok(await model.append(other));
  assert.ok(await model.append(other));
  const expected = pair[1].contents();
  go();
  assert.ok(await waiting);
  assert.deepEqual(pair[1].contents(), expected);
  assert.deepEqual(await model.missing(other), []);
  checkSame(...pair);
});

test("D23: who sees the second copy later than the first does not take the first for behind", async () => {
  const pair = disks();
  const model = new Model();
  const second = pair[1].open();
  let [isHeld, go] = [false];
  const held = new Promise((resolve) => (go = resolve));
  const late = library.mirrorStore(pair[0].open(), {
    ...second,
    read: async (keys) => {
      if (isHeld) await held;
      return second.read(keys);
    },
  });
  const told = [];
  late.notices((notice) => told.push(notice));
  const other = over(pair);
  assert.ok(await model.append(late));
  assert.ok(await model.append(other));
  isHeld = true;
  const waiting = model.append(late);
  for (let turns = 0; turns < 200; turns++) await undefined;
  // Between its looks at the two copies.
  for (let nth = 0; nth < 4; nth++) assert.ok(await model.append(other));
  go();
  const more = async () => {
    for (let nth = 0; nth < 20; nth++) assert.ok(await model.append(other));
  };
  await Promise.all([waiting, more()]);
  await moment();
  assert.deepEqual(told, []);
  assert.deepEqual(await model.missing(other), []);
  assert.ok(await model.append(late));
  checkSame(...pair);
  const [mark] = await pair[0].open().read([["meta", "mirror", 0]]);
  assert.ok(JSON.parse(new TextDecoder().decode(mark)).seq < 100, "the first copy was begun anew");
});

/** `store`, with what it tells in `told`. */
function listened(store, told) {
  store.notices((notice) => told.push(notice));
  return store;
}

test("D23: another process begins between any two calls of a new pair: both go on as one pair, and tell of no repair", async () => {
  for (let at = 0, isOver = false; !isOver; at++) {
    const [pair, told] = [disks(), []];
    const model = new Model();
    let calls = 0;
    const begins = (store) => {
      const before = (name) => async (...given) => {
        if (calls++ === at) for (let nth = 0; nth < 2; nth++) assert.ok(await model.append(listened(over(pair), told)), `${at}`);
        return store[name](...given);
      };
      return { ...store, read: before("read"), scan: before("scan"), commit: before("commit") };
    };
    const late = listened(library.mirrorStore(...pair.map((disk) => begins(disk.open()))), told);
    await late.read([SESSION]);
    assert.ok(await model.append(late), `${at}`);
    isOver = calls <= at;
    assert.deepEqual(await model.missing(late), [], `${at}`);
    assert.deepEqual(told, [], `${at}`);
    checkSame(...pair);
  }
});

test("D23: a new pair that begins in two processes at once tells of no repair", async () => {
  for (let at = 0, isOver = false; !isOver; at++) {
    const [pair, told] = [disks(), []];
    const model = new Model();
    let calls = 0;
    // The first process stands still at one of its calls, while the other one opens the pair and appends.
    let go;
    const held = new Promise((resolve) => (go = resolve));
    const stands = (store) => {
      const before = (name) => async (...given) => {
        if (calls++ === at) await held;
        return store[name](...given);
      };
      return { ...store, read: before("read"), scan: before("scan"), commit: before("commit") };
    };
    const one = listened(library.mirrorStore(...pair.map((disk) => stands(disk.open()))), told);
    const other = listened(over(pair), told);
    const beginning = model.append(one);
    for (let turns = 0; turns < 200; turns++) await undefined;
    assert.ok(await model.append(other), `${at}`);
    go();
    assert.ok(await beginning, `${at}`);
    isOver = calls <= at;
    await Promise.all([one.close(), other.close()]);
    assert.deepEqual(await model.missing(listened(over(pair), told)), [], `${at}`);
    assert.deepEqual(told, [], `${at}`);
    checkSame(...pair);
  }
});

test("D23: the second copy takes no commit without the one before it", async () => {
  const pair = disks();
  const model = new Model();
  const begun = over(pair);
  await model.append(begun);
  const two = pair[1].open();
  let isLate = true;
  // While one process compares the copies, another one dies between its two commits.
  const scan = async (...given) => {
    if (given[0][0] === "sessions" && isLate) {
      isLate = false;
      const process = new Process();
      const dying = { ...pair[1].open(process), commit: () => (process.dieAt = 0, process.step()) };
      await Promise.race([model.append(library.mirrorStore(pair[0].open(process), dying), process), process.died]);
      pair[1].rows.report(SESSION);
    }
    return two.scan(...given);
  };
  const store = library.mirrorStore(pair[0].open(), { ...two, scan });
  await model.append(store);
  await store.check();
  assert.equal(isLate, false);
  assert.ok(await model.append(store));
  assert.deepEqual(await model.missing(store), []);
  checkSame(...pair);
});

test("D23: the second copy fails: the append is indeterminate, later ones write nothing, and a retry writes once", async () => {
  const pair = disks();
  const two = pair[1].open();
  let isFull = false;
  const second = {
    ...two,
    commit: async (batch) => {
      if (isFull && batch.puts.length > 0) throw new library.CompactionError("quota_exceeded", "the disk is full");
      return two.commit(batch);
    },
  };
  const opened = await session(library.mirrorStore(pair[0].open(), second));
  await opened.append({ role: "user", content: "one" });
  isFull = true;
  await assert.rejects(opened.append({ role: "user", content: "two" }), fails("indeterminate"));
  const contents = pair[0].contents();
  await assert.rejects(opened.append({ role: "user", content: "three" }), fails("quota_exceeded"));
  assert.deepEqual(pair[0].contents(), contents);
  isFull = false;
  await opened.append({ role: "user", content: "four" });
  // What was indeterminate was written, as it may be; what was refused was not.
  const texts = (await collect(opened.archive.history())).map(({ content }) => content);
  assert.deepEqual(texts, ["one", "two", "four"]);
  assert.deepEqual(pair[1].contents(), pair[0].contents());
});

test("D23: with `first`, an append does not wait, and the mirror says how far the second is behind", async () => {
  const pair = disks();
  const model = new Model();
  const two = pair[1].open();
  let go;
  const held = new Promise((resolve) => (go = resolve));
  const waiting = { ...two, commit: async (batch) => (batch.puts.length > 0 ? held.then(() => two.commit(batch)) : two.commit(batch)) };
  const store = library.mirrorStore(pair[0].open(), waiting, { acknowledge: "first" });
  for (let nth = 0; nth < 5; nth++) assert.ok(await model.append(store));
  assert.ok(store.behind >= 5, `${store.behind}`);
  go();
  await store.close();
  assert.equal(store.behind, 0);
  checkSame(...pair);
  pair[0].lose();
  const again = over(pair, { acknowledge: "first" });
  assert.deepEqual(await model.missing(again), []);
  assert.match(await again.dataLoss(), /last commits/);
});

test("D23: a failing second copy is told as a warning with `first`, and catches up", async () => {
  const pair = disks();
  const two = pair[1].open();
  let isGone = true;
  const second = { ...two, commit: async (batch) => (isGone ? Promise.reject(new Error("no network")) : two.commit(batch)) };
  const store = library.mirrorStore(pair[0].open(), second, { acknowledge: "first" });
  const opened = await session(store);
  await opened.append({ role: "user", content: "one" });
  await moment();
  assert.deepEqual(opened.told.map(({ code }) => code), ["store_unavailable"]);
  assert.match(opened.told[0].message, /second copy: no network/);
  isGone = false;
  await opened.append({ role: "user", content: "two" });
  await moment();
  await store.close();
  assert.deepEqual(pair[1].contents(), pair[0].contents());
});
