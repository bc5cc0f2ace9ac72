/** Two copies of a store: what one of them loses comes back from the other, whatever comes between two commits (D23). */

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { encryptedStore, memoryStore, mirrorStore, salvage } from "context-compactor";
import { storeConformance } from "context-compactor/testing";
import { fileStore } from "context-compactor/node";
import { exchange, fails } from "../support/api.mjs";
import { bundle } from "../support/bundle.mjs";
import { edit, folder, journalOf } from "../support/file-store.mjs";
import { frail } from "../support/frail.mjs";
import { checkSame, loadMirror, Model, Process, run, SESSION } from "../support/mirror.mjs";
import { collect, disks, library, moment, over, session } from "../support/mirror-pairs.mjs";
import { openSession } from "../support/offload.mjs";

/** Seeds of the simulation; `npm run soak -- --only mirror` takes more. */
const SEEDS = Number(process.env.CC_MIRROR_SEEDS ?? 80);

let encryptionKey;
before(async () => {
  encryptionKey = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
});

const encrypted = (store) => encryptedStore(store, { encryptionKey });
const everything = { limit: 10_000, maxBytes: 1 << 30 };

describe("D23: what a store promises", () => {
  const pairs = {
    "memory and memory": () => mirrorStore(memoryStore(), memoryStore()),
    "memory and memory, the second later": () => mirrorStore(memoryStore(), memoryStore(), { acknowledge: "first" }),
    "encrypted over both": () => encrypted(mirrorStore(memoryStore(), memoryStore())),
    "each of them encrypted": () => mirrorStore(encrypted(memoryStore()), encrypted(memoryStore())),
  };
  for (const [name, make] of Object.entries(pairs)) {
    describe(name, () => {
      for (const check of storeConformance(async () => make())) test(check.name, check.run);
    });
  }

  test("two directories", async (context) => {
    const parent = await folder(context);
    let count = 0;
    const make = async () => mirrorStore(fileStore(join(parent, `${++count}a`)), fileStore(join(parent, `${count}b`)));
    for (const { name, run } of storeConformance(make)) await context.test(name, run);
  });

  test("rows that both copies report as damaged", async (context) => {
    const copies = new Map();
    const make = async () => {
      const two = [frail(memoryStore()), frail(memoryStore())];
      const store = mirrorStore(...two);
      copies.set(store, two);
      return store;
    };
    const damage = (store, key) => copies.get(store).forEach((copy) => copy.report(key));
    for (const { name, run } of storeConformance(make, { damage })) await context.test(name, run);
  });
});

test("D23: either copy is lost after any number of appends, and made again", async () => {
  for (let count = 1; count <= 6; count++) {
    for (const at of [0, 1]) {
      const pair = disks();
      const first = await session(over(pair));
      const said = Array.from({ length: count }, (_, nth) => exchange(nth)).flat();
      for (let nth = 0; nth < count; nth++) await first.append(...exchange(nth));
      await first.close();
      pair[at].lose();
      const store = over(pair);
      const again = await session(store);
      assert.deepEqual(await collect(again.archive.history()), said);
      await again.append(...exchange(count));
      await moment();
      assert.deepEqual(again.told.map(({ kind }) => kind), ["repaired"], JSON.stringify(again.told));
      assert.equal((await again.archive.verify()).ok, true);
      await again.close();
      assert.deepEqual(pair[1].contents(), pair[0].contents());
      pair[1 - at].lose();
      const last = await session(over(pair));
      assert.deepEqual(await collect(last.archive.history()), [...said, ...exchange(count)]);
    }
  }
});

test("D23: each row of each table, damaged in either copy, comes back from the other", async () => {
  const pair = disks();
  const begun = await session(over(pair));
  for (let nth = 0; nth < 3; nth++) await begun.append(...exchange(nth, 9_000));
  await begun.compact();
  const said = await collect(begun.archive.history());
  await begun.close();
  const keys = pair[0].keys();
  assert.ok(new Set(keys.map(([table]) => table)).size >= 4, "tables");
  const whole = pair.map((disk) => disk.contents());
  for (const at of [0, 1]) {
    for (const key of keys) {
      pair[at].rows.report(key);
      const store = over(pair);
      const opened = await session(store);
      assert.deepEqual(await collect(opened.archive.history()), said, JSON.stringify(key));
      const { lost } = await store.check();
      assert.equal(lost, 0);
      await moment();
      assert.ok(opened.told.every(({ kind }) => kind === "repaired"), JSON.stringify(opened.told));
      // The mirror's own mark is kept twice, and written with every commit.
      if (key[1] !== "mirror") assert.ok(opened.told.length > 0, JSON.stringify(key));
      await opened.close();
      assert.deepEqual(pair.map((disk) => disk.contents()), whole, JSON.stringify(key));
    }
  }
});

test("D23: killed at every call of a commit, then the power fails or a copy is lost", async () => {
  const faults = {
    nothing: () => {},
    "the first is lost": ([one]) => one.lose(),
    "the second is lost": ([, two]) => two.lose(),
    "the power of both fails": (pair) => pair.forEach((disk) => disk.cut()),
    "the power of the first fails": ([one]) => one.cut(),
    "the power of the second fails": ([, two]) => two.cut(),
  };
  for (const [fault, make] of Object.entries(faults)) {
    for (let at = 1, isKilled = true; isKilled; at++) {
      const pair = disks();
      const model = new Model();
      const begun = over(pair);
      for (let nth = 0; nth < 3; nth++) await model.append(begun);
      await begun.close();
      const process = new Process();
      process.dieAt = at;
      await Promise.race([model.append(over(pair, {}, process), process), process.died]);
      isKilled = process.isDead;
      make(pair);
      for (let opening = 0; opening < 2; opening++) {
        const store = over(pair);
        assert.deepEqual(await model.missing(store), [], `killed at call ${at}, then ${fault}`);
        assert.ok(await model.append(store));
        await store.close();
        checkSame(...pair);
      }
    }
  }
});

test("D23: two writers over one pair of directories", async (context) => {
  const parent = await folder(context);
  const open = () => session(mirrorStore(fileStore(join(parent, "a")), fileStore(join(parent, "b"))));
  await (await open()).append({ role: "user", content: "begun" });
  const writers = await Promise.all([open(), open()]);
  const texts = writers.map((_, of) => Array.from({ length: 8 }, (_, nth) => `writer ${of}: ${nth}`));
  const write = async (writer, own) => {
    for (const content of own) await writer.append({ role: "user", content });
  };
  await Promise.all(writers.map((writer, of) => write(writer, texts[of])));
  for (const name of ["a", "b"]) {
    const alone = await session(fileStore(join(parent, name)));
    const found = (await collect(alone.archive.history())).map(({ content }) => content);
    for (const own of texts) assert.deepEqual(found.filter((text) => own.includes(text)), own, name);
    assert.equal(found.length, 17, name);
    assert.deepEqual(alone.told, [], name);
  }
});

test("D23: what both copies have lost is told, also where neither of them tells of losses", async () => {
  const pair = disks();
  const silent = ({ dataLoss, ...store }) => store;
  const model = new Model();
  const two = pair[1].open();
  const late = { ...two, commit: async (batch) => (batch.puts.some(([key]) => key[0] === "log" && key[2] > 0) ? new Promise(() => {}) : two.commit(batch)) };
  const store = library.mirrorStore(silent(pair[0].open()), silent(late), { acknowledge: "first" });
  await model.append(store);
  await moment();
  for (let nth = 0; nth < 3; nth++) assert.ok(await model.append(store));
  pair[0].lose();
  const again = library.mirrorStore(silent(pair[0].open()), silent(pair[1].open()), { acknowledge: "first" });
  assert.equal((await model.missing(again)).length, 3);
  assert.match(await again.dataLoss?.(), /last commits/);
  const session = await openSession({ id: "other", store: library.mirrorStore(...disks().map((disk) => silent(disk.open()))), contextWindow: 32_000 });
  await session.append({ role: "user", content: "hello" });
});

test("D23: what is erased is in neither copy, also where the second was away", async () => {
  const pair = disks();
  const model = new Model();
  const store = over(pair);
  for (let nth = 0; nth < 3; nth++) await model.append(store);
  const process = new Process();
  const other = over(pair, { acknowledge: "first" }, process);
  await other.read([SESSION]);
  process.dieAt = process.steps + 7;
  await Promise.race([model.erase(other), process.died]);
  const again = over(pair);
  await model.append(again);
  checkSame(...pair);
});

test("D23: a copy is made again page by page, and goes on where it was stopped", async () => {
  const pair = disks();
  const one = pair[0].open();
  const puts = Array.from({ length: 1_000 }, (_, i) => [["log", "s", i], new Uint8Array(20).fill(i)]);
  await one.commit({ expect: [], puts, deletes: [], durability: "strict" });
  const process = new Process();
  process.dieAt = 160;
  await Promise.race([over(pair, {}, process).check(), process.died]);
  const half = Object.keys(pair[1].contents()).length;
  assert.ok(half > 0 && half < 1_000, `${half}`);
  const controller = new AbortController();
  const store = over(pair);
  const checking = store.check({ signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(checking, /enough/);
  const { rows, lost } = await store.check();
  assert.deepEqual([rows, lost], [1_000, 0]);
  assert.deepEqual(pair[1].contents(), pair[0].contents());
  await store.close();
});

test("D23: versions are those of before in a copy that was made again", async () => {
  const pair = disks();
  const store = over(pair);
  const model = new Model();
  for (let nth = 0; nth < 150; nth++) await model.append(store);
  await store.close();
  pair[0].lose();
  const again = over(pair);
  assert.ok(await model.append(again, undefined, 1), "the next append is the first try");
  checkSame(...pair);
});

test("D23: killed at every call of mending the session's row: the next append gives it the same version in both copies", async () => {
  for (const at of [0, 1]) {
    for (const isOtherLost of [false, true]) {
      for (let call = 1, isKilled = true; isKilled; call++) {
        const pair = disks();
        const model = new Model();
        const begun = over(pair);
        for (let nth = 0; nth < 4; nth++) await model.append(begun);
        await begun.close();
        pair[at].rows.report(SESSION);
        const process = new Process();
        process.dieAt = call;
        await Promise.race([over(pair, {}, process).check(), process.died]);
        isKilled = process.isDead;
        if (isOtherLost) pair[1 - at].lose();
        const store = over(pair);
        assert.ok(await model.append(store));
        await store.close();
        checkSame(...pair);
        pair[0].lose();
        const again = over(pair);
        assert.ok(await model.append(again, undefined, 1), `killed at call ${call}: the next append is the first try`);
        assert.deepEqual(await model.missing(again), []);
        await again.close();
        checkSame(...pair);
      }
    }
  }
});

test("D23: two stores that are no copies of each other are refused, and stay as they are", async () => {
  const pair = disks();
  const batch = { expect: [], puts: [[SESSION, new Uint8Array(1)]], deletes: [], durability: "strict" };
  for (const disk of pair) await disk.open().commit(batch);
  const before = pair.map((disk) => disk.contents());
  await assert.rejects(over(pair).read([SESSION]), fails("invalid_option"));
  const [some, others] = [disks(), disks()];
  for (const two of [some, others]) await new Model().append(over(two));
  await assert.rejects(over([some[0], others[1]]).read([SESSION]), fails("invalid_option"));
  assert.deepEqual(pair.map((disk) => disk.contents()), before);
  assert.throws(() => mirrorStore(memoryStore(), {}), fails("invalid_option"));
  assert.throws(() => mirrorStore(memoryStore(), memoryStore(), { acknowledge: "none" }), fails("invalid_option"));
  const same = memoryStore();
  assert.throws(() => mirrorStore(same, same), fails("invalid_option"));
});

test("D23: a pair that was not used is closed without more, and its calls then reject with `closed`", async () => {
  const closed = [];
  const [one, two] = ["first", "second"].map((name) => ({ ...memoryStore(), close: () => void closed.push(name) }));
  const store = mirrorStore(one, two);
  await store.close();
  assert.deepEqual(closed, ["first", "second"]);
  for (const call of [() => store.read([SESSION]), () => store.dataLoss(), () => store.check()]) await assert.rejects(call(), fails("closed"));
});

test("D23, H13: what two copies need is loaded with the first call, and again where that failed", async (context) => {
  const parent = await folder(context);
  const later = join(parent, "later.mjs");
  const plugin = {
    name: "later",
    setup: ({ onResolve }) => onResolve({ filter: /\/mirror\.js$/ }, ({ kind }) => (kind === "dynamic-import" ? { path: later, external: true } : undefined)),
  };
  const outfile = join(parent, "bundle.mjs");
  const source = `export { memoryStore } from "./js/store/memory.ts"; export { mirrorStore } from "./js/store/mirror.ts";`;
  await bundle(source, outfile, { platform: "node", plugins: [plugin] });
  const { memoryStore, mirrorStore } = await import(pathToFileURL(outfile).href);
  const store = mirrorStore(memoryStore(), memoryStore());
  assert.deepEqual([store.behind, store.caps.cas], [0, true]);
  await assert.rejects(store.read([SESSION]), ({ code, message }) => code === "store_unavailable" && /loaded/.test(message));
  await bundle(`export { Mirror } from "./js/store/mirror/mirror.ts";`, later, { platform: "node" });
  assert.deepEqual(await store.read([SESSION]), [undefined]);
  await store.close();
});

test("D23: the pair promises what the better copy does, and nothing where one can only be read", () => {
  const [synced, none] = [{ ...memoryStore(), caps: { ...memoryStore().caps, durable: "synced" } }, memoryStore()];
  assert.equal(mirrorStore(none, synced).caps.durable, "synced");
  assert.equal(mirrorStore(none, synced, { acknowledge: "first" }).caps.durable, "none");
  assert.equal(mirrorStore(synced, none, { acknowledge: "first" }).caps.durable, "synced");
  const store = mirrorStore(synced, none);
  synced.caps.durable = "none";
  assert.equal(store.caps.durable, "none");
});

test("D23: two directories: one of them is removed, a value of the other is damaged, and all is there", async (context) => {
  const parent = await folder(context);
  const [a, b] = ["a", "b"].map((name) => join(parent, name));
  const open = () => session(mirrorStore(fileStore(a), fileStore(b)));
  const said = [0, 1, 2].map((nth) => ({ role: "user", content: `secret ${nth} `.repeat(200) }));
  const first = await open();
  for (const message of said) await first.append(message);
  await first.close();
  await edit(await journalOf(a), (bytes) => {
    bytes[bytes.indexOf("secret 1") + 300] ^= 1;
  });
  const store = mirrorStore(fileStore(a), fileStore(b));
  const healed = await session(store);
  assert.deepEqual(await collect(healed.archive.history()), said);
  await moment();
  assert.deepEqual(healed.told.map(({ kind }) => kind), ["repaired"]);
  await store.close();
  await rm(b, { recursive: true });
  const again = mirrorStore(fileStore(a), fileStore(b));
  const { lost } = await again.check();
  assert.equal(lost, 0);
  await again.close();
  const alone = await session(fileStore(b));
  assert.deepEqual(await collect(alone.archive.history()), said);
  assert.deepEqual(alone.told, []);
});

test(`D23: ${SEEDS} seeds of kills, power cuts, damage and lost copies`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await run(library, seed).catch((error) => {
      throw new Error(`seed ${seed}: ${error.message}`, { cause: error });
    });
  }
});

describe("D23: the simulation finds what is wrong", () => {
  const wrong = {
    "the mark is not expected": { file: "mark.ts", from: "return MARK_ROWS.map((key, i) => ({ key, version: this.#versions[i]! }));", to: "return [];" },
    "the first is not synced": { file: "mirror.ts", from: "waits && this.#first.sync()", to: "waits" },
    "what is owed is read": { file: "mirror.ts", from: "if (this.#owed && asked.some", to: "if (false && asked.some" },
  };
  for (const [name, change] of Object.entries(wrong)) {
    test(name, async () => {
      const mutant = await loadMirror([change]);
      for (let seed = 1; seed <= 600; seed++) {
        try {
          await run(mutant, seed);
        } catch {
          return;
        }
      }
      assert.fail("600 seeds found nothing");
    });
  }
});

test("D23: salvage takes what is left of both copies, and writes to neither", async () => {
  const pair = disks();
  const begun = await session(over(pair));
  for (let nth = 0; nth < 3; nth++) await begun.append({ role: "user", content: `said ${nth}` });
  await begun.close();
  for (const [at, seq] of [[0, 0], [1, 1]]) pair[at].rows.report(pair[at].keys().filter(([table]) => table === "log")[seq]);
  const before = pair.map((disk) => disk.batches.length);
  const [found, ...others] = await collect(salvage(over(pair)));
  assert.deepEqual([found.id, found.gaps, others], ["s", [], []]);
  const archive = await new Response(found.archive).text();
  assert.deepEqual([0, 1, 2].map((nth) => archive.includes(`said ${nth}`)), [true, true, true]);
  pair[0].lose();
  assert.equal((await collect(salvage(over(pair)))).length, 1);
  assert.deepEqual(pair.map((disk) => disk.batches.length), [0, before[1]]);
});

test("D23: `mirrorStore` hides what is its own", async () => {
  const store = mirrorStore(memoryStore(), memoryStore());
  const row = [["meta", "mirror", 0], new Uint8Array()];
  await assert.rejects(store.commit({ expect: [], puts: [row], deletes: [], durability: "strict" }), fails("invalid_option"));
  await assert.rejects(store.read([row[0]]), fails("invalid_option"));
  await store.commit({ expect: [], puts: [[["meta", "a"], new Uint8Array(1)]], deletes: [], durability: "strict" });
  assert.deepEqual((await store.scan(["meta"], everything)).map(([key]) => key), [["meta", "a"]]);
});
