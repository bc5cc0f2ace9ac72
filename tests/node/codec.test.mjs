/** What is stored comes back deeply equal: a message goes through a session and a second one that is opened on it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore, openSession } from "../support/offload.mjs";
import fc from "fast-check";
import { chat, frozen } from "../support/api.mjs";

/** The messages as a session opened again hands them out. `prepare` would mend what providers refuse; a compaction
 *  with nothing to do hands out what is stored. */
async function reloaded(messages) {
  const store = memoryStore();
  const options = { store, id: "codec", format: "openai-chat" };
  const first = await openSession(options);
  await first.append(...messages);
  await first.close();
  const second = await openSession(options);
  return (await second.compact()).messages;
}

const message = (extra) => frozen({ role: "user", content: "x", extra });

const VALUES = {
  "bytes": new Uint8Array([0, 1, 127, 128, 255]),
  "no bytes": new Uint8Array(),
  "many bytes": Uint8Array.from({ length: 100_000 }, (_, at) => at % 256),
  "a part of a buffer": new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
  "a date": new Date("2024-02-29T12:34:56.789Z"),
  "a date before 1970": new Date(-1),
  "a date far away": new Date(8.64e15),
  "a URL": new URL("https://user@example.org:8080/a%20b?q=1#名前"),
  "undefined in an object": { a: undefined, b: 1 },
  "undefined in an array": [undefined, 1, undefined],
  "NaN": Number.NaN,
  "infinities": [Infinity, -Infinity],
  "minus zero": [-0, 0],
  "the limits of numbers": [5e-324, 1.7976931348623157e308, 2 ** 53, -(2 ** 53), 0.1, 1e21, 123456789012345680000],
  "texts that look like numbers": ["1", "01", "1e3", "-0", "NaN", "9007199254740993", "null", "true"],
  "keys that look like numbers": { 10: "a", 9: "b", "01": "c", "-1": "d" },
  "a lone surrogate": "\ud83d",
  "lone surrogates around pairs": "\udc00👍\ud800\ud800\udc00\udfff",
  "emoji and scripts": "👨‍👩‍👧‍👦 🇩🇪 é é 上下文 한국어 עברית العربية \u202e",
  "control characters": "\u0000\u0001\b\t\n\f\r\u001b\u007f\u0085\u2028\u2029\ufeff",
  "an own __proto__": JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1, "toString": null}'),
  "an own __proto__ beside a date": Object.defineProperty({ at: new Date(0) }, "__proto__", {
    value: { polluted: true },
    enumerable: true,
    configurable: true,
    writable: true,
  }),
  "a $cc key": { $cc: "bytes", v: "AAAA" },
  "a $cc key of another kind": { $cc: { $cc: "undefined" }, v: new Date(0) },
  "a $cc key alone": { $cc: undefined },
  "a $cc key in an escape": { $cc: "object", v: { $cc: "url", v: "x" } },
  "empty things": [{}, [], "", null, [[]], [{}]],
  "100 levels less what is around": Array.from({ length: 90 }).reduce((inner) => [inner], "deep"),
  "a toJSON that is a text": { toJSON: "not a function" },
};

for (const [name, value] of Object.entries(VALUES)) {
  test(`codec: ${name}`, async () => {
    const [back] = await reloaded([message(value)]);
    assert.deepStrictEqual(back, message(value));
    // deepStrictEqual looks at neither.
    assert.deepEqual(Object.keys(back), ["role", "content", "extra"]);
    assert.equal({}.polluted, undefined);
  });
}

test("codec: an invalid date", async () => {
  const [back] = await reloaded([message(new Date(Number.NaN))]);
  assert.ok(back.extra instanceof Date && Number.isNaN(back.extra.getTime()));
});

test("codec: a Buffer comes back as bytes", async () => {
  const [back] = await reloaded([message(Buffer.from("bytes"))]);
  assert.deepStrictEqual(back.extra, new Uint8Array(Buffer.from("bytes")));
});

test("codec: the same value at two places is no cycle", async () => {
  const shared = { at: new Date(0) };
  const [back] = await reloaded([message([shared, shared])]);
  assert.deepStrictEqual(back.extra, [shared, shared]);
});

test("codec: an object without a prototype comes back as a plain one", async () => {
  const [back] = await reloaded([message(Object.assign(Object.create(null), { a: 1 }))]);
  assert.deepStrictEqual(back.extra, { a: 1 });
});

test("codec: what is handed out again after a reload is the same object each time", async () => {
  const store = memoryStore();
  const first = await openSession({ store, id: "same" });
  await first.append(...chat(2));
  const second = await openSession({ store, id: "same" });
  const [once, twice] = [await second.prepare(), await second.prepare()];
  once.messages.forEach((one, index) => assert.equal(one, twice.messages[index]));
});

// ---- any value ------------------------------------------------------------------------------------------------------

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  // Any UTF-16 units: lone surrogates among them.
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
  fc.constantFrom("$cc", "v", "__proto__", "constructor", "undefined", "-0"),
);
const key = fc.oneof(
  { weight: 5, arbitrary: fc.string({ unit: "grapheme", maxLength: 8 }) },
  fc.constantFrom("$cc", "v", "__proto__", "toString", "0", "10"),
);
const { value: anything } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    text,
    fc.double(),
    fc.integer(),
    fc.boolean(),
    fc.constantFrom(null, undefined, -0, Number.NaN),
    fc.date({ noInvalidDate: true }),
    fc.uint8Array(),
    fc.webUrl().map((url) => new URL(url)),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map((entries) => {
      const object = {};
      for (const [name, item] of entries) {
        const property = { value: item, enumerable: true, configurable: true, writable: true };
        Object.defineProperty(object, name, property);
      }
      return object;
    }),
  ),
}));

test("codec: any message comes back deeply equal", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(text, anything), { minLength: 1, maxLength: 4 }), async (pairs) => {
      const messages = pairs.map(([content, extra], index) => ({ role: index % 2 ? "assistant" : "user", content, extra }));
      assert.deepStrictEqual(await reloaded(frozen(messages)), messages);
    }),
    { numRuns: 150 },
  );
});
