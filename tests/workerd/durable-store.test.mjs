/** The store of Durable Objects in workerd passes the suite that every store passes. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { load } from "../support/bundle.mjs";
import { startDurable } from "../support/durable.mjs";

let worker;
before(async () => {
  worker = await startDurable();
});
after(() => worker?.dispose());

for (const suite of ["conformance", "conformance with a bucket"]) {
  test(suite, async (t) => {
    const names = await worker.names(suite);
    assert.ok(names.length > 20);
    for (const name of names) await t.test(name, async () => assert.equal(await worker.run(suite, name), undefined));
  });
}

test("what is no Durable Object with SQLite is refused with what to do", async () => {
  const wrong = await worker.wrong();
  assert.equal(wrong["no SQLite"].code, "store_unavailable");
  assert.match(wrong["no SQLite"].message, /new_sqlite_classes.*only a class with SQLite/s);
  for (const name of ["no context", "the environment", "an unknown option", "a bucket that is none"]) {
    assert.equal(wrong[name].code, "invalid_option", `${name}: ${wrong[name].message}`);
  }
});

test("keys sort as bytes in the contract's order, and come back", async () => {
  const { compareKeys, decodeKey, encodeKey, pastKey, rangeOf, startsWith } = await load(`
    export { compareKeys, startsWith } from "./js/store/keys.ts";
    export { decodeKey, encodeKey, pastKey, rangeOf } from "./js/store/durable/key.ts";
  `);
  const unit = fc.oneof(fc.constantFrom(0, 1, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff), fc.nat(0xffff));
  const text = fc.array(unit, { maxLength: 4 }).map((units) => String.fromCharCode(...units));
  const number = fc.oneof(fc.nat(), fc.maxSafeNat(), fc.constantFrom(0, -0, 2 ** 53 - 1));
  const key = fc.array(fc.oneof(text, number), { minLength: 1, maxLength: 4 });
  const sign = (order) => Math.sign(order);
  fc.assert(
    fc.property(key, key, (a, b) => {
      assert.deepEqual(decodeKey(encodeKey(a)), a.map((part) => (part === 0 ? 0 : part)));
      const order = (a, b) => sign(Buffer.compare(a, b));
      assert.equal(order(encodeKey(a), encodeKey(b)), sign(compareKeys(a, b)));
      const { low, high } = rangeOf(a, {});
      for (const other of [b, [...a, ...b]]) {
        const bytes = encodeKey(other);
        assert.equal(order(bytes, low) >= 0 && order(bytes, high) < 0, startsWith(other, a), JSON.stringify([a, other]));
        const after = order(bytes, pastKey(encodeKey(a))) >= 0;
        assert.equal(after, compareKeys(other, a) > 0);
      }
    }),
    { numRuns: 2_000 },
  );
  const long = ["log", "長".repeat(20_000)];
  assert.deepEqual(decodeKey(encodeKey(long)), long);
});
