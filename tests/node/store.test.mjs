/** The memory store passes the suite, and the suite finds what broken stores do wrong. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { load } from "../support/bundle.mjs";
import { frail } from "../support/frail.mjs";
import { mutants } from "../support/store-mutants.mjs";

const { CompactionError, compareKeys, indexedDbStore, memoryStore, storeConformance } = await load(`
  export { CompactionError } from "./js/errors.ts";
  export { compareKeys } from "./js/store/keys.ts";
  export { indexedDbStore } from "./js/store/indexeddb.ts";
  export { memoryStore } from "./js/store/memory.ts";
  export { storeConformance } from "./js/store/conformance.ts";
`);

/** The same store with methods that take their time. */
function asynchronous(store) {
  const later =
    (method) =>
    async (...values) => {
      const result = method(...values);
      await new Promise(setImmediate);
      return result;
    };
  return { caps: store.caps, read: later(store.read), scan: later(store.scan), commit: later(store.commit) };
}

describe("memory store", () => {
  for (const { name, run } of storeConformance(async () => memoryStore())) test(name, run);

  test("methods are synchronous", () => {
    const store = memoryStore();
    store.commit({
      expect: [],
      puts: [[["meta", "a"], Uint8Array.of(7)]],
      deletes: [],
      durability: "strict",
    });
    assert.deepEqual(store.read([["meta", "a"]]), [Uint8Array.of(7)]);
    assert.deepEqual(store.scan(["meta"], { limit: 1, maxBytes: 1 }), [[["meta", "a"], Uint8Array.of(7)]]);
  });
});

describe("a store with asynchronous methods", () => {
  for (const { name, run } of storeConformance(async () => asynchronous(memoryStore()))) test(name, run);
});

describe("D13: a store that reports damage", () => {
  const damage = (store, key) => store.report(key);
  for (const { name, run } of storeConformance(async () => frail(memoryStore()), { damage })) test(name, run);
});

describe("D13: the checks of damage can fail", () => {
  const told = "damage: a damaged row is told as damaged, and costs no other";
  const used = "damage: a damaged row can be expected, replaced and deleted";
  const none = { expect: [], puts: [], deletes: [], durability: "strict" };
  const isDamaged = (value) => value?.damaged !== undefined;
  const wrong = {
    "it does not say that it tells": [told, (store) => ({ ...store, caps: { ...store.caps, reportsDamage: false } })],
    "it hands out the bytes": [told, (store) => ({ ...store, report: (key) => store.flip(key) })],
    "it takes the row for none": [
      told,
      (store) => ({ ...store, read: (keys) => store.read(keys).map((value) => (isDamaged(value) ? undefined : value)) }),
    ],
    "a scan passes over the row": [
      told,
      (store) => ({ ...store, scan: (...given) => store.scan(...given).filter(([, value]) => !isDamaged(value)) }),
    ],
    "it throws for the row": [
      told,
      (store) => ({
        ...store,
        read(keys) {
          const values = store.read(keys);
          if (values.some(isDamaged)) throw new CompactionError("store_corrupt", "a row is damaged");
          return values;
        },
      }),
    ],
    "it forgets the version": [
      used,
      (store) => ({
        ...store,
        report(key) {
          const [value] = store.read([key]);
          store.commit({ ...none, deletes: [key] });
          store.commit({ ...none, puts: [[key, value]] });
          store.report(key);
        },
      }),
    ],
    "what is replaced stays damaged": [
      used,
      (store) => {
        const damaged = [];
        const report = (key) => (damaged.push(key), store.report(key));
        const commit = (batch) => (store.commit(batch), damaged.forEach((key) => store.report(key)));
        return { ...store, report, commit };
      },
    ],
  };
  for (const [what, [caughtBy, make]] of Object.entries(wrong)) {
    test(`${what}: caught by: ${caughtBy}`, async () => {
      const cases = storeConformance(async () => make(frail(memoryStore())), { damage: (store, key) => store.report(key) });
      await assert.rejects(cases.find(({ name }) => name === caughtBy).run());
    });
  }
});

describe("the suite can fail", () => {
  for (const [mutant, { caughtBy, make }] of Object.entries(mutants)) {
    test(`${mutant} is caught by: ${caughtBy}`, async () => {
      const failed = [];
      for (const { name, run } of storeConformance(async () =>
        make(memoryStore, { CompactionError, compareKeys }),
      )) {
        await run().catch(() => failed.push(name));
      }
      assert.ok(failed.includes(caughtBy), `failed: ${failed.join("; ") || "nothing"}`);
    });
  }

  test("every check catches a mutant", () => {
    const checks = storeConformance(async () => memoryStore()).map(({ name }) => name);
    const caught = new Set(Object.values(mutants).map(({ caughtBy }) => caughtBy));
    assert.deepEqual(
      checks.filter((name) => !caught.has(name)),
      [],
    );
  });
});

test("without IndexedDB, every method of its store says what to do", async () => {
  const store = indexedDbStore();
  const unavailable = (error) =>
    CompactionError.isInstance(error) &&
    error.code === "store_unavailable" &&
    error.message.includes('"memory"');
  await assert.rejects(store.read([["meta", "a"]]), unavailable);
  await assert.rejects(store.scan(["meta"], { limit: 1, maxBytes: 1 }), unavailable);
  const puts = [[["meta", "a"], new Uint8Array()]];
  await assert.rejects(store.commit({ expect: [], puts, deletes: [], durability: "strict" }), unavailable);
  await store.close();
});
