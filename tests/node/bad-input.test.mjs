/** Whatever an app hands over by mistake: an error with its place, or handled; never a crash or a half-written session. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import * as library from "../support/offload.mjs";
import { chat, exchange, fails, frozen, openStore, runtime, SUMMARY } from "../support/api.mjs";
import { VERSION } from "../support/version.mjs";

const { compact, openSession, version } = library;

const cyclic = { role: "user", content: "x" };
cyclic.self = { inside: [cyclic] };
const deep = (levels) => {
  let value = "end";
  for (let level = 0; level < levels; level++) value = level % 2 ? [value] : { value };
  return { role: "user", content: "x", extra: value };
};
const sparse = ["a"];
sparse[2] = "c";
const boom = new Error("boom");
const call = (id, args) => ({ id, type: "function", function: { name: "read", arguments: args } });
class Custom {
  role = "user";
  content = "x";
}

/** Name, message, code, field. */
const REFUSED = [
  ["null", null, "invalid_message", ""],
  ["undefined", undefined, "invalid_message", ""],
  ["a text", "hello", "invalid_message", ""],
  ["a number", 5, "invalid_message", ""],
  ["a BigInt", 5n, "invalid_message", ""],
  ["a function", () => {}, "invalid_message", ""],
  ["a symbol", Symbol("message"), "invalid_message", ""],
  ["an array", [], "invalid_message", ""],
  ["no role", { content: "x" }, "invalid_message", "role"],
  ["an unknown role", { role: "robot", content: "x" }, "invalid_message", "role"],
  ["a role that is a number", { role: 1, content: "x" }, "invalid_message", "role"],
  ["content that is a number", { role: "user", content: 5 }, "invalid_message", "content"],
  ["content that is an object", { role: "user", content: { text: "x" } }, "invalid_message", "content"],
  ["a block that is a text", { role: "user", content: ["x"] }, "invalid_message", "content[0]"],
  ["a block without a type", { role: "user", content: [{ text: "x" }] }, "invalid_message", "content[0].type"],
  [
    "calls that are no array",
    { role: "assistant", tool_calls: {} },
    "invalid_message",
    "tool_calls",
  ],
  [
    "a call without an id",
    { role: "assistant", tool_calls: [{ type: "function", function: { name: "read", arguments: "{}" } }] },
    "invalid_message",
    "tool_calls[0].id",
  ],
  [
    "arguments that are an object",
    { role: "assistant", tool_calls: [call("a", "{}"), call("b", { path: "x" })] },
    "invalid_message",
    "tool_calls[1].function.arguments",
  ],
  ["a result without an id", { role: "tool", content: "x" }, "invalid_message", "tool_call_id"],
  ["a cycle", cyclic, "unsupported_value", "self.inside[0]"],
  ["a BigInt inside", { role: "user", content: "x", id: 5n }, "unsupported_value", "id"],
  ["a function inside", { role: "user", content: "x", run: [() => {}] }, "unsupported_value", "run[0]"],
  ["a symbol inside", { role: "user", content: "x", tag: Symbol("tag") }, "unsupported_value", "tag"],
  ["a symbol as a key", { role: "user", content: "x", a: { [Symbol("tag")]: 1 } }, "unsupported_value", "a"],
  ["a Map", { role: "user", content: "x", data: new Map([[1, 2]]) }, "unsupported_value", "data"],
  ["a Map as the message", new Map([["role", "user"]]), "unsupported_value", ""],
  ["a class instance", new Custom(), "unsupported_value", ""],
  ["a class instance inside", { role: "user", content: "x", a: { b: new Custom() } }, "unsupported_value", "a.b"],
  ["a sparse array", { role: "user", content: "x", list: sparse }, "unsupported_value", "list"],
  ["10,000 levels", deep(10_000), "unsupported_value", undefined],
  ["101 levels", deep(101), "unsupported_value", undefined],
  ["a key with a lone surrogate", { role: "user", content: "x", "\ud800": 1 }, "unsupported_value", ""],
  [
    "a getter that throws",
    {
      role: "user",
      get content() {
        throw boom;
      },
    },
    "unsupported_value",
    "",
  ],
  [
    "a getter that throws the second time",
    {
      role: "user",
      reads: 0,
      get content() {
        if (this.reads++ > 0) throw boom;
        return "x";
      },
    },
    "unsupported_value",
    "",
  ],
  [
    "a Proxy that throws",
    new Proxy({ role: "user", content: "x" }, { ownKeys: () => { throw boom; } }),
    "unsupported_value",
    "",
  ],
];

for (const [name, message, code, field] of REFUSED) {
  test(`bad input: ${name} is refused with its place, and nothing was written`, async () => {
    const good = chat(2);
    const messages = [...good, message, ...chat(1)];
    const expected = { index: 4, ...(field === undefined ? {} : { field }) };
    await assert.rejects(compact(messages), fails(code, expected));
    // Roles, and more, are judged by format; without one, nothing is a history.
    for (const work of ["estimateTokens", "splitMessages", "buildSummaryPrompt", "extractiveSummary", "planCompaction"]) {
      await assert.rejects(async () => library[work](messages, { format: "openai-chat" }), fails(code, expected), work);
    }
    const store = openStore();
    const session = await openSession({ store, id: "bad" });
    await session.append(...good);
    const before = store.text();
    await assert.rejects(session.append(...chat(1), message), fails(code, { ...expected, index: 2 }));
    await assert.rejects(session.sync(messages), fails(code, { ...expected, index: 4 }));
    assert.equal(store.text(), before);
    const { messages: prepared } = await session.prepare();
    prepared.forEach((kept, index) => assert.equal(kept, good[index]));
    await session.append(...chat(1));
    await session.close();
  });
}

test("bad input: what a getter threw is the error's cause", async () => {
  const getter = { role: "user", get content() { throw boom; } };
  await assert.rejects(compact([getter]), fails("unsupported_value", { cause: boom, index: 0 }));
});

test("bad input: a hole in the history is refused with its place", async () => {
  const messages = chat(2);
  delete messages[1];
  await assert.rejects(compact(messages), fails("invalid_message", { index: 1 }));
  for (const work of ["splitMessages", "detectFormat", "validateHistory", "repairHistory", "planCompaction"]) {
    await assert.rejects(library[work](messages), fails("invalid_message", { index: 1 }), work);
  }
  const store = openStore();
  const first = await openSession({ store, id: "holes" });
  await first.append(...chat(2));
  const session = await openSession({ store, id: "holes" });
  await assert.rejects(session.sync(messages), fails("invalid_message", { index: 1 }));
  // Not what is known: the session holds no object of its messages yet.
  await assert.rejects(session.sync(new Array(4)), fails("invalid_message", { index: 0 }));
});

test("bad input: the history itself is no array", async () => {
  for (const history of [undefined, null, {}, "text", 5, new Set()]) {
    await assert.rejects(compact(history), fails("invalid_message"));
    for (const work of ["splitMessages", "detectFormat", "validateHistory", "repairHistory", "planCompaction"]) {
      await assert.rejects(library[work](history), fails("invalid_message"), work);
    }
    const session = await openSession({ store: "memory" });
    await assert.rejects(session.sync(history), fails("invalid_message"));
  }
});

test("bad input: an empty history is nothing to do", async () => {
  const result = await compact([]);
  assert.deepEqual(result.messages, []);
  assert.equal(result.success, true);
  assert.match(result.reason, /Nothing to compress/);
  assert.equal(library.estimateTokens([]), 0);
  assert.deepEqual(await library.splitMessages([]), { toCompress: [], toPreserve: [], boundary: 0, requested: 0 });
  assert.deepEqual(await library.repairHistory([]), { messages: [], changes: [] });
  await assert.rejects(() => library.detectFormat([]), fails("unknown_format"));
  assert.equal((await library.planCompaction([])).willCompact, false);
  const session = await openSession({ store: "memory" });
  await session.append();
  assert.deepEqual((await session.prepare()).messages, []);
  assert.deepEqual(await session.sync([]), { appended: 0, recognized: 0 });
});

test("bad input: arguments that are not JSON are kept, and never sent (S1.15)", async () => {
  const broken = exchange(1);
  broken[1].tool_calls[0].function.arguments = '{"path": ';
  const history = frozen([...broken, { role: "user", content: "Go on." }]);
  const session = await openSession({ store: "memory" });
  await session.append(...history);
  const warnings = [];
  session.on("warning", (warning) => warnings.push(warning));
  const { messages } = await session.prepare();
  assert.ok(!messages.some((message) => message.tool_calls || message.role === "tool"));
  assert.equal(messages[0], history[0]);
  assert.ok(warnings.length > 0);
  assert.equal((await compact(history)).success, true);
});

test("bad input: a lone surrogate is handled, and comes back as it was", async () => {
  const store = openStore();
  const torn = { role: "user", content: "half \ud83d of an emoji", "note": "\udc00" };
  const first = await openSession({ store, id: "torn" });
  await first.append(torn);
  await first.close();
  const again = await openSession({ store, id: "torn" });
  const [message] = (await again.prepare()).messages;
  // Providers answer 400 to it: what is sent has U+FFFD in its place.
  assert.equal(message.content, "half \ufffd of an emoji");
});

test("bad input: a text of 50 MB is counted, kept and sent as the same object", async () => {
  const store = openStore();
  const session = await openSession({ store, contextWindow: 100_000_000 });
  const large = frozen({ role: "user", content: "x".repeat(50_000_000) });
  await session.append(large);
  const { messages, usage } = await session.prepare();
  assert.equal(messages[0], large);
  assert.ok(usage.usedTokens > 1_000_000);
});

test("bad input: 100,000 messages are appended in whole batches", async () => {
  const session = await openSession({ store: "memory", contextWindow: 100_000_000, compactAt: { fraction: 1 } });
  const many = Array.from({ length: 100_000 }, (_, nth) => ({
    role: nth % 2 ? "assistant" : "user",
    content: `Message ${nth}`,
  }));
  await session.append(...many);
  const { messages } = await session.prepare();
  assert.equal(messages.length, many.length);
  assert.ok(messages.every((message, nth) => message === many[nth]));
  assert.equal(session.context.usage().messageCount, many.length);
});

const thrower = () => {
  throw boom;
};
const withGetter = (array, at) => Object.defineProperty(array, at, { get: thrower, enumerable: true });

/** What a store of the app's own may answer a read or a scan with. */
const ANSWERS = [
  ["nothing", () => undefined],
  ["an object", () => ({})],
  ["an array with a getter that throws", (answer) => withGetter([...answer], 0)],
  ["an array whose length throws", () => new Proxy([], { get: (_, name) => (name === "length" ? thrower() : undefined) })],
  ["fewer or more than was asked for", () => new Array(4_000_000_000)],
  ["texts", (answer) => answer.map(() => "text")],
  ["buffers", (answer) => answer.map(() => new ArrayBuffer(8))],
  ["what throws when it is converted", (answer) => answer.map(() => ({ valueOf: thrower, toString: thrower }))],
];

for (const [name, make] of ANSWERS) {
  for (const method of ["read", "scan"]) {
    test(`bad input: a store that answers a ${method} with ${name} is store_corrupt`, async () => {
      const store = openStore();
      const first = await openSession({ store, id: "hostile" });
      await first.append(...chat(2));
      const hostile = { ...store, [method]: (...given) => make(store[method](...given)) };
      await assert.rejects(openSession({ store: hostile, id: "hostile" }), fails("store_corrupt"));
      // The engine has not noticed.
      const again = await openSession({ store, id: "hostile" });
      assert.equal((await again.prepare()).messages.length, 4);
    });
  }
}

test("bad input: entries of a scan are no pairs, or their keys no keys", async () => {
  const bytes = Uint8Array.of(1);
  for (const entry of [5, [], [["log", "a"]], [["log", {}], bytes], [["log", -1], bytes], [["log", 0.5], bytes],
    [withGetter(["log"], 1), bytes], withGetter([["log", "a"]], 1)]) {
    const store = openStore();
    await (await openSession({ store, id: "hostile" })).append(...chat(2));
    const hostile = { ...store, scan: () => [entry] };
    await assert.rejects(openSession({ store: hostile, id: "hostile" }), fails("store_corrupt"));
  }
});

test("bad input: bytes of another realm and of subclasses are bytes", async () => {
  const store = openStore();
  await (await openSession({ store, id: "realm" })).append(...chat(2));
  class Bytes extends Uint8Array {
    get length() {
      throw boom;
    }
  }
  const Foreign = runInNewContext("Uint8Array");
  for (const own of [Foreign, Bytes, Buffer]) {
    const converted = (bytes) => bytes && (own === Buffer ? Buffer.from(bytes) : new own(bytes));
    const other = {
      ...store,
      read: (keys) => store.read(keys).map(converted),
      scan: (...given) => store.scan(...given).map(([key, bytes]) => [key, converted(bytes)]),
    };
    const session = await openSession({ store: other, id: "realm" });
    assert.equal((await session.prepare()).messages.length, 4);
  }
});

test("bad input: headers of the app's own fetch that cannot be read fail the attempt", async () => {
  const response = { status: 200, headers: [withGetter(["retry-after"], 1)], text: async () => "{}" };
  const options = { summarize: { provider: { kind: "openai", model: "m" }, attempts: 1, fetch: async () => response } };
  const { success, error } = await compact(chat(10), options);
  assert.equal(success, false);
  fails("summary_failed", { cause: boom })(error);
});

test("bad input: nothing of the above has hurt the engine", async () => {
  assert.equal(version(), VERSION);
  const result = await compact(chat(10), { summarize: async () => SUMMARY, advanced: { runtime: runtime() } });
  assert.equal(result.success, true);
});
