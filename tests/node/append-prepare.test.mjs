/** `prepare({ append })`: an append and a prepare in one call (P9). Runs against both entries. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { CompactionError, memoryStore, openSession } from "context-compactor";
import { chat, deferred, exchange, fails, runtime } from "../support/api.mjs";

const SMALL = { preset: "offload", contextWindow: 9_000, maxOutputTokens: 1_000, compactAt: { tokens: 3_000 }, summarize: "extractive" };

/** Stores that answer at once and later, and what they were asked. */
function stores() {
  return [memoryStore(), memoryStore()].map((memory, isLater) => {
    const asked = [];
    const calls = (name) => (...given) => {
      asked.push(name);
      return isLater ? Promise.resolve().then(() => memory[name](...given)) : memory[name](...given);
    };
    return { asked, store: { caps: memory.caps, read: calls("read"), scan: calls("scan"), commit: calls("commit") } };
  });
}

const apart = async (session, append, options) => {
  await session.append(...append);
  return session.prepare(options);
};
const together = (session, append, options) => session.prepare({ ...options, append });

/** What a session did, step by step. */
async function history(call, store, options = {}) {
  const seen = [];
  const note = (name) => (data) => seen.push([name, structuredClone(data)]);
  const session = await openSession({
    ...SMALL,
    store,
    systemPrompt: () => (seen.push(["systemPrompt"]), "Be brief."),
    advanced: { runtime: runtime() },
    onProgress: note("onProgress"),
    logger: (level, line) => seen.push([level, line]),
    ...options,
  });
  if (!options.isUnheard) for (const event of ["offload", "compact", "usage", "warning", "change", "progress", "pin"]) session.on(event, note(event));
  for (let nth = 0; nth < 8; nth++) {
    const { result, ...prepared } = await call(session, exchange(nth, nth * 700), { tools: [{ name: `tool ${nth}` }] });
    seen.push(["prepared", prepared, result && { ...result, durationMs: 0 }]);
  }
  await session.close();
  return seen;
}

test("P9 one call gives what two give: prompts, events in their order, and what is stored", async () => {
  for (const nth of [0, 1]) {
    const [one, two] = [stores()[nth], stores()[nth]];
    assert.deepEqual(await history(together, one.store), await history(apart, two.store));
    const rows = async ({ store }) => Promise.all(["meta", "sessions", "log", "blobs", "views"].map((table) => store.scan([table], { limit: 1_000, maxBytes: 1e9 })));
    const bytes = (found) => found.flat().map(([key, value]) => [key.slice(2), value.length]);
    assert.deepEqual(bytes(await rows(one)), bytes(await rows(two)));
  }
});

test("P9 the store is written to once and not read", async () => {
  for (const { store, asked } of stores()) {
    const session = await openSession({ ...SMALL, store });
    await session.prepare({ append: chat(1) });
    asked.length = 0;
    const { messages } = await session.prepare({ append: chat(1, 1) });
    assert.equal(messages.length, 4);
    assert.deepEqual(asked, ["commit"]);
    asked.length = 0;
    await session.append(...chat(1, 2));
    await session.prepare();
    assert.deepEqual(asked, ["commit", "read"]);
    await session.close();
  }
});

test("P9 the app's own objects are handed out, counted and asked about", async () => {
  const counted = new Set();
  const session = await openSession({
    contextWindow: 50_000,
    tokenCounter: ([message]) => (counted.add(message), 10),
    pins: { match: (message) => (counted.add(message), false) },
  });
  const given = [...chat(2), ...exchange(1)];
  const { messages } = await session.prepare({ append: given });
  assert.equal(messages.length, given.length);
  messages.forEach((message, at) => assert.equal(message, given[at]));
  given.forEach((message) => assert.ok(counted.has(message)));
  await session.close();
});

test("P9 an array that changes while the call waits is appended as it was given", async () => {
  const session = await openSession({ contextWindow: 50_000 });
  const given = chat(1);
  const before = session.append({ role: "user", content: "before" });
  const prepared = session.prepare({ append: given });
  given.push({ role: "user", content: "later" });
  await before;
  assert.equal((await prepared).messages.length, 3);
  assert.equal((await session.prepare({ append: [] })).messages.length, 3);
  await session.close();
});

test("P9 a refused message stores and prepares nothing", async () => {
  for (const { store } of stores()) {
    const session = await openSession({ ...SMALL, store });
    await session.append(...chat(1));
    const refused = session.prepare({ append: [{ role: "user", content: "fine" }, { role: "user", content: 5 }] });
    await assert.rejects(refused, (error) => error.code === "invalid_message" && error.index === 1 && error.appended === undefined);
    const cyclic = { role: "user", content: "again" };
    cyclic.self = cyclic;
    await assert.rejects(session.prepare({ append: [cyclic] }), fails("unsupported_value", { index: 0 }));
    assert.equal(session.archive.metadata().totalMessages, 2);
    assert.equal((await session.prepare({ append: chat(1, 1) })).messages.length, 4);
    await session.close();
  }
});

test("P9 options are checked before anything is stored", async () => {
  const session = await openSession({ contextWindow: 50_000 });
  const wrong = [[{ append: "text" }, "append"], [{ append: { role: "user" } }, "append"], [{ append: chat(1), tool: [] }, "tool"], [{ append: chat(1), tools: "[]" }, "tools"], [{ append: chat(1), force: 1 }, "force"], [{ append: chat(1), signal: {} }, "signal"]];
  for (const [options, field] of wrong) await assert.rejects(session.prepare(options), fails("invalid_option", { field }));
  await assert.rejects(session.step(chat(1), { append: chat(1) }), fails("invalid_option", { field: "append" }));
  assert.equal(session.archive.metadata().totalMessages, 0);
  await session.close();
});

test("P9 an aborted call stores its messages all the same, and says so", async () => {
  for (const { store } of stores()) {
    const session = await openSession({ ...SMALL, store });
    const reason = new Error("stop");
    const aborted = (error) => error.code === "aborted" && error.appended === true && error.cause === reason;
    await assert.rejects(session.prepare({ append: chat(1), signal: AbortSignal.abort(reason) }), aborted);
    assert.equal(session.archive.metadata().totalMessages, 2);
    // While the store writes.
    const controller = new AbortController();
    const commit = store.commit;
    store.commit = (batch) => {
      controller.abort(reason);
      return commit(batch);
    };
    await assert.rejects(session.prepare({ append: chat(1, 1), signal: controller.signal }), aborted);
    store.commit = commit;
    assert.equal((await session.prepare()).messages.length, 4);
    await session.close();
  }
});

test("P9 a signal that is aborted while a model writes ends the compaction, and the messages are there", async () => {
  for (const { store } of stores()) {
    const controller = new AbortController();
    const summarize = async () => {
      controller.abort();
      return "late";
    };
    const session = await openSession({ ...SMALL, store, summarize: { call: summarize, fallback: "none", attempts: 1 } });
    const long = Array.from({ length: 40 }, (_, nth) => ({ role: nth % 2 ? "assistant" : "user", content: `${nth} `.repeat(600) }));
    await assert.rejects(session.prepare({ append: long, signal: controller.signal }), (error) => error.code === "aborted" && error.appended === true);
    assert.equal(session.archive.metadata().totalMessages, 40);
    await session.close();
  }
});

test("P9 an error after the append is that of prepare, marked; one before it is not", async () => {
  for (const { store } of stores()) {
    let prompt = () => {
      throw new Error("no prompt");
    };
    const session = await openSession({ ...SMALL, store, systemPrompt: () => prompt() });
    const failed = await session.prepare({ append: chat(1) }).catch((error) => error);
    assert.ok(CompactionError.isInstance(failed));
    assert.deepEqual([failed.code, failed.field, failed.appended, failed.cause.message], ["invalid_option", "systemPrompt", true, "no prompt"]);
    prompt = () => "Be brief.";
    assert.equal((await session.prepare()).messages.length, 2);
    const commit = store.commit;
    store.commit = () => {
      throw new CompactionError("quota_exceeded", "full");
    };
    const full = await session.prepare({ append: chat(1, 1) }).catch((error) => error);
    assert.deepEqual([full.code, full.appended], ["quota_exceeded", undefined]);
    store.commit = commit;
    assert.equal((await session.prepare({ append: chat(1, 1) })).messages.length, 4);
    await session.close();
    await assert.rejects(session.prepare({ append: chat(1) }), (error) => error.code === "closed" && error.appended === undefined);
  }
});

test("P9 calls that overlap keep their order", async () => {
  const session = await openSession({ contextWindow: 50_000 });
  const say = (content) => ({ role: "user", content });
  const calls = [session.append(say("a")), session.prepare({ append: [say("b")] }), session.append(say("c")), session.prepare({ append: [say("d")] })];
  await Promise.all(calls);
  const { messages } = await session.prepare();
  assert.deepEqual(messages.map(({ content }) => content), ["a", "b", "c", "d"]);
  await session.close();
});

test("P9 messages are appended while another prepare waits for a summary", async () => {
  const [asked, answer] = [deferred(), deferred()];
  const summarize = async () => {
    asked.resolve();
    return answer.promise;
  };
  const session = await openSession({ ...SMALL, summarize });
  await session.append(...Array.from({ length: 40 }, (_, nth) => ({ role: nth % 2 ? "assistant" : "user", content: `${nth} `.repeat(600) })));
  const first = session.prepare();
  await asked.promise;
  const second = session.prepare({ append: [{ role: "user", content: "meanwhile" }] });
  while (session.archive.metadata().totalMessages < 41) await new Promise((resolve) => setTimeout(resolve, 1));
  answer.resolve("## Current Status\nThe user counts.");
  await first;
  const { messages } = await second;
  assert.equal(messages.at(-1).content, "meanwhile");
  await session.close();
});
