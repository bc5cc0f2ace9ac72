/** Rows of two copies whose versions are not alike: what is damaged, cut off or lost then is not taken for another (D23). */

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { fails } from "../support/api.mjs";
import { checkSame, Disk, loadMirror, Process } from "../support/mirror.mjs";

let library;
before(async () => {
  library = await loadMirror();
});

const disks = () => [new Disk(library), new Disk(library)];
const over = ([one, two], options, process) => library.mirrorStore(one.open(process), two.open(process), options);
const text = (value) => (value && !value.damaged ? new TextDecoder().decode(value) : value);
/** Puts a row, expected or not. */
const put = (store, key, value, expect = []) =>
  store.commit({ expect, puts: [[key, new TextEncoder().encode(value)]], deletes: [], durability: "strict" });

/** Puts rows in a pair whose second copy takes nothing meanwhile. */
async function putBehind(pair, puts) {
  const second = { ...pair[1].open(), commit: (batch) => (batch.puts.length > 0 ? new Promise(() => {}) : pair[1].open().commit(batch)) };
  const store = library.mirrorStore(pair[0].open(), second, { acknowledge: "first" });
  for (const [key, value] of puts) await put(store, key, value);
}

test("D23: a row is damaged where the second is to have it from: an older one is not taken for it, and the loss is told", async () => {
  for (const key of [["meta", "a"], ["sessions", "s"], ["blobs", "s", 1]]) {
    const pair = disks();
    const begun = over(pair);
    for (const of of [key, ["meta", "other"]]) await put(begun, of, "old");
    await begun.close();
    await putBehind(pair, [[key, "new"], [["meta", "other"], "new"]]);
    pair[0].rows.report(key);
    const store = over(pair, { acknowledge: "first" });
    assert.ok((await store.read([key]))[0].damaged, JSON.stringify(key));
    assert.equal((await store.check()).lost, 1);
    assert.match(await store.dataLoss(), /1 rows are damaged in the first copy/);
    await store.close();
    pair[0].lose();
    const last = over(pair);
    const values = await last.read([key, ["meta", "other"]]);
    assert.deepEqual(values.map(text), [undefined, "new"], JSON.stringify(key));
  }
});

test("D23: a row is damaged where the second is to have it from, and the second has it already: it comes back from there", async () => {
  const rows = Array.from({ length: 40 }, (_, i) => [["log", "s", i], `row ${i}`]);
  let isTried = false;
  for (let call = 1; !isTried; call++) {
    const pair = disks();
    const begun = over(pair);
    await put(begun, ["meta", "a"], "begun");
    await begun.close();
    await putBehind(pair, rows);
    const process = new Process();
    process.dieAt = call;
    await Promise.race([over(pair, {}, process).check(), process.died]);
    assert.ok(process.isDead, "it was never killed in the middle");
    const count = Object.keys(pair[1].contents()).length;
    if (count === 1) continue;
    isTried = true;
    assert.ok(count < 41, `${count}`);
    pair[0].rows.report(["log", "s", 0]);
    const store = over(pair);
    assert.equal((await store.check()).lost, 0);
    assert.equal(await store.dataLoss(), undefined);
    assert.deepEqual((await store.read(rows.map(([key]) => key))).map(text), rows.map(([, value]) => value));
    checkSame(...pair);
  }
});

test("D23: killed at every call while an older row is brought to its version, then the first is lost: it is there as it was", async () => {
  const key = ["meta", "a"];
  for (const again of [Infinity, 6, 14, 22]) {
    for (let call = 1, isKilled = true; isKilled; call++) {
      const pair = disks();
      const begun = over(pair);
      for (const value of ["0", "1"]) await put(begun, key, value);
      await begun.close();
      await putBehind(pair, ["2", "3", "4", "5"].map((value) => [key, value]));
      const process = new Process();
      process.dieAt = call;
      await Promise.race([over(pair, {}, process).check(), process.died]);
      isKilled = process.isDead;
      pair[0].lose();
      // And while it is made what it was.
      const next = new Process();
      next.dieAt = again;
      await Promise.race([over(pair, {}, next).check(), next.died]);
      const store = over(pair);
      const value = text((await store.read([key]))[0]);
      assert.ok(["1", "5"].includes(value), `killed at call ${call}, then ${again}: ${value}`);
      await put(store, key, "6", [{ key, version: Number(value) + 1 }]);
      await store.close();
      checkSame(...pair);
      for (const disk of pair) assert.ok(disk.has(key, Number(value) + 2), `the version after call ${call}`);
      assert.deepEqual(pair.flatMap((disk) => disk.keys()).filter((own) => own[2] === "kept"), []);
    }
  }
});

test("D23: a row that the second has lost has the same version in both when it is put and not expected", async () => {
  for (const acknowledge of ["both", "first"]) {
    const pair = disks();
    const key = ["jobs", "s", "j"];
    const store = over(pair, { acknowledge });
    for (const value of ["1", "2", "3"]) await put(store, key, value);
    await store.close();
    pair[1].rows.commit({ expect: [], puts: [], deletes: [key], durability: "strict" });
    const again = over(pair, { acknowledge });
    await put(again, ["jobs", "s", "new"], "1");
    await put(again, key, "4");
    await again.close();
    pair[0].lose();
    const last = over(pair, { acknowledge });
    // Who knows the first one must not take this one for it.
    await assert.rejects(put(last, key, "stale", [{ key, version: 1 }]), fails("conflict"));
    await put(last, key, "5", [{ key, version: 4 }]);
    await put(last, ["jobs", "s", "new"], "2", [{ key: ["jobs", "s", "new"], version: 1 }]);
  }
});
