/**
 * The stores and the engine on simulated disks, databases and browsers, from seeds: every kind of fault, and what must
 * hold behind it (fault row 22). `CC_STORE_SEEDS` says how many seeds in all, `CC_STORE_SEED` the first, `CC_STORES` which
 * stores (all seeds of each that is named), with `;` between them.
 */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { mutants } from "../support/sim-mutants.mjs";
import { found, runSeeds, shares } from "../support/sim-run.mjs";
import { simulate } from "../support/sim-session.mjs";
import { places, SMALL } from "../support/sim-stores.mjs";
import { Program, World } from "../support/sim-world.mjs";

const { CC_STORE_SEEDS = "300", CC_STORE_SEED = "1", CC_STORES } = process.env;
const chosen = CC_STORES?.split(";") ?? Object.keys(shares);
/** A mutant is found by so many seeds, from that one on that found it when it was made. */
const MOST = 100;

for (const store of chosen) {
  test(`D21: ${store}: what was acknowledged is there or told as lost, nothing is changed, and it goes on`, async (context) => {
    const seeds = Math.ceil(Number(CC_STORE_SEEDS) * (CC_STORES ? 1 : shares[store]));
    const { counts, failures } = await runSeeds(store, Number(CC_STORE_SEED), seeds);
    context.diagnostic(`${seeds} seeds: ${JSON.stringify(counts)}`);
    assert.equal(failures.length, 0, failures.slice(0, 3).join("\n\n"));
  });
}

describe("D21: what is simulated passes the suite that every store passes", () => {
  for (const [store, make] of Object.entries(places).filter(([name]) => !name.includes("encrypted"))) {
    test(`D21: ${store}: the suite of every store`, async () => {
      const program = await Program.load();
      const suite = (place) => place.start().stores.storeConformance;
      const { length } = suite(make(new World(0), program))(() => {});
      assert.ok(length > 20);
      for (let nth = 0; nth < length; nth++) {
        const world = new World(nth);
        const process = make(world, program).start();
        const { name, run } = process.stores.storeConformance(async () => process.store())[nth];
        await world.run(run).catch((error) => assert.fail(`${name}: ${error?.message}`));
      }
    });
  }
});

test("D7: what hangs on a connection that was given up holds nobody up", async () => {
  const program = await Program.load();
  for (const mode of ["readonly", "readwrite"]) {
    const world = new World(0);
    const place = places.indexeddb(world, program);
    const store = place.start().store();
    const key = ["meta", "key"];
    const put = (text) => store.commit({ expect: [], puts: [[key, Buffer.from(text)]], deletes: [], durability: "strict" });
    await world.run(async () => {
      await put("before");
      const troubles = [
        (tx) => (tx.hangs = true),
        (tx) => place.medium.task(tx.owner, () => place.medium.abort(tx, Object.assign(new Error("made by the test"), { name: "UnknownError" }))),
      ];
      place.medium.trouble = (tx) => troubles.shift()?.(tx);
      const hangs = mode === "readonly" ? store.read([key]) : put("hangs");
      const ended = [hangs, store.read([["log", "s", 0]])];
      await Promise.allSettled(ended);
      await put("after");
      assert.equal(new TextDecoder().decode((await store.read([key]))[0]), "after");
    });
  }
});

test("D13: rows of which the index says keys that are not under the prefix are left out of every page, and all others are there", async () => {
  const program = await Program.load();
  const COUNT = 12;
  const saying = [(nth) => ["r$", nth], () => "s", () => 5, () => ["s", -1], () => ["s", 2.5], () => ["s", 2 ** 60], (nth) => ["s", new Date(nth)], (nth) => ["s", [nth]], () => []];
  for (let first = 0; first < COUNT; first++) {
    const says = saying[first % saying.length];
    for (const wrong of [1, 2, 5].map((more) => Array.from({ length: Math.min(more, COUNT - first) }, (_, nth) => first + nth))) {
      const world = new World(0);
      const place = places.indexeddb(world, program);
      const store = place.start().store();
      await world.run(async () => {
        const puts = Array.from({ length: COUNT }, (_, nth) => [["log", "s", nth], Buffer.from(`row ${nth}`)]);
        await store.commit({ expect: [], puts, deletes: [], durability: "strict" });
        for (const nth of wrong) place.medium.mislabel("log", ["s", nth], says(nth));
        const expected = puts.map(([key]) => key).filter(([, , nth]) => !wrong.includes(nth));
        for (const reverse of [false, true]) {
          for (const limit of [1, 3, 100]) {
            const found = [];
            for (let after; ; after = found.at(-1)) {
              const page = await store.scan(["log", "s"], { after, limit, maxBytes: 1 << 20, reverse, keysOnly: false });
              if (page.length === 0) break;
              found.push(...page.map(([key]) => key));
            }
            assert.deepEqual(found, reverse ? expected.toReversed() : expected, `${wrong} in pages of ${limit}`);
          }
        }
      });
    }
  }
});

test("D21: a seed is run again as it was", async () => {
  for (const store of Object.keys(places)) {
    const program = await Program.load(SMALL);
    const counts = async () => {
      const sums = {};
      await simulate(program, store, 7, (what, more = 1) => (sums[what] = (sums[what] ?? 0) + more));
      return sums;
    };
    assert.deepEqual(await counts(), await counts(), store);
  }
});

describe("D21: the simulator finds stores that are wrong", { skip: CC_STORES !== undefined }, () => {
  for (const [name, mutant] of Object.entries(mutants)) {
    test(`D21: ${name}: is found`, async (context) => {
      const by = await found(mutant, MOST);
      assert.ok(by, `no seed of ${MOST} found it`);
      context.diagnostic(`seed ${by.seed}: ${by.why}`);
    });
  }
});
