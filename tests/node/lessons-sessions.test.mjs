/** Lessons about sessions: writers at once, crashes, waiting, offloads, storage. docs/lessons.md lists them. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { CompactionError, memoryStore, openSession, validateHistory } from "../support/offload.mjs";
import {
  anthropicExchange,
  chat,
  deferred,
  exchange,
  fails,
  frozen,
  openStore,
  settled,
  summariser,
  SUMMARY,
} from "../support/api.mjs";

const user = (content) => ({ role: "user", content });
const OFFLOADING = { offloadThreshold: 1, compactTriggerThreshold: 1 };

/** The references of a session, in the order of its messages. */
const references = async (session) =>
  (await session.context.explain()).flatMap(({ ref, refs }) => refs ?? (ref === undefined ? [] : [ref]));

/** A call with this id, and its result. */
const called = (id, content, name = "read") => [
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id, type: "function", function: { name, arguments: "{}" } }],
  },
  { role: "tool", tool_call_id: id, content },
];

// ---- writers at once ------------------------------------------------------------------------------------------------

test("lesson: lost concurrent writes: two hundred messages that arrive during a summary are all there, in order", async () => {
  const answer = deferred();
  const store = openStore();
  const session = await openSession({ store, id: "s", summarize: () => answer.promise });
  const other = await openSession({ store, id: "s" });
  await session.append(...chat(10));
  const work = session.compact();
  await settled();
  const late = Array.from({ length: 200 }, (_, nth) => user(`Late ${nth}`));
  for (const [nth, message] of late.entries()) await (nth % 2 === 0 ? session : other).append(message);
  answer.resolve(SUMMARY);
  const { success, messages } = await work;
  assert.equal(success, true);
  assert.deepEqual(messages.slice(-200), late);
  assert.equal((await session.context.explain()).length, 220);
  const again = await openSession({ store, id: "s" });
  assert.deepEqual((await again.prepare()).messages, messages);
});

test("lesson: lost concurrent writes: twenty writers, each message once, each writer's in its order", async () => {
  const store = memoryStore();
  const handles = await Promise.all(Array.from({ length: 20 }, () => openSession({ store, id: "s" })));
  await Promise.all(
    handles.flatMap((handle, writer) =>
      Array.from({ length: 10 }, (_, nth) => handle.append(user(`${writer}-${nth}`))),
    ),
  );
  const { messages } = await (await openSession({ store, id: "s" })).prepare();
  assert.equal(new Set(messages.map(({ content }) => content)).size, 200);
  for (const [writer] of handles.entries()) {
    const own = messages.map(({ content }) => content.split("-")).filter(([who]) => who === `${writer}`);
    assert.deepEqual(
      own.map(([, nth]) => Number(nth)),
      [...Array(10).keys()],
    );
  }
});

test("lesson: lost concurrent writes: two that want a compaction at once get one, and one call of the model", async () => {
  const summarize = summariser();
  const session = await openSession({ store: "memory", summarize });
  await session.append(...chat(10));
  const [first, second] = await Promise.all([session.compact(), session.compact()]);
  assert.deepEqual([first.llmCalls, second.llmCalls, summarize.calls.length], [1, 0, 1]);
  assert.deepEqual(second.messages, first.messages);
});

test("lesson: lost concurrent writes: an abort that comes while the summary is stored does not tear it", async () => {
  const store = openStore();
  const controller = new AbortController();
  const session = await openSession({ store, id: "s", summarize: summariser() });
  const history = chat(10);
  await session.append(...history);
  store.before = () => controller.abort();
  const outcome = await session.compact({ signal: controller.signal }).catch((error) => error);
  store.before = undefined;
  const { messages } = await (await openSession({ store, id: "s" })).prepare();
  if (CompactionError.isInstance(outcome)) assert.deepEqual(messages, history);
  else assert.deepEqual(messages, outcome.messages);
  assert.deepEqual((await session.prepare()).messages, messages);
});

test("lesson: lost concurrent writes: a history that two hand over at once is stored once", async () => {
  const store = memoryStore();
  const [one, other] = [await openSession({ store, id: "s" }), await openSession({ store, id: "s" })];
  const history = chat(10);
  await Promise.all([one.sync(history), other.sync(history), one.sync(history)]);
  assert.equal((await (await openSession({ store, id: "s" })).prepare()).messages.length, 20);
});

// ---- what was begun and never ended ---------------------------------------------------------------------------------

test("lesson: unfinished marker: a process that died while the model worked leaves the session whole", async (context) => {
  const store = openStore();
  const dead = await openSession({ store, id: "s", summarize: () => new Promise(() => {}) });
  const history = chat(10);
  await dead.append(...history);
  const controller = new AbortController();
  const work = dead.compact({ signal: controller.signal });
  // It hangs until the end of this test, when nothing of it is looked at any more.
  context.after(() => {
    controller.abort();
    return assert.rejects(work);
  });
  await settled();
  const jobs = () =>
    store
      .rows()
      .filter(([[table]]) => table === "jobs")
      .map(([, bytes]) => JSON.parse(Buffer.from(bytes)).state);
  assert.deepEqual(jobs(), ["prepared"], "the beginning is on record");
  const next = await openSession({ store, id: "s", summarize: summariser() });
  assert.deepEqual((await next.prepare()).messages, history);
  const { success } = await next.compact();
  assert.equal(success, true);
  assert.deepEqual(jobs(), ["done"], "and so is the end");
});

test("lesson: unfinished marker: the one who was thought dead comes back, and does not overwrite what was done since", async () => {
  const store = openStore();
  const answer = deferred();
  const slow = await openSession({ store, id: "s", summarize: () => answer.promise });
  await slow.append(...chat(10));
  const work = slow.compact();
  await settled();
  const next = await openSession({ store, id: "s", summarize: summariser("The summary of the one who went on.") });
  await next.compact();
  await next.append(user("Go on."));
  answer.resolve(SUMMARY);
  await assert.rejects(work, fails("conflict"));
  const { messages } = await (await openSession({ store, id: "s" })).prepare();
  assert.match(messages[0].content, /The summary of the one who went on\./);
  assert.deepEqual(messages.at(-1), user("Go on."));
});

test("lesson: unfinished marker: a write that broke off at any place leaves the old context or the new one", async () => {
  const stop = new Error("power");
  for (let at = 1; ; at++) {
    const store = openStore();
    const session = await openSession({ store, id: "s", contextWindow: 8_000, summarize: summariser() });
    const history = [...[1, 2, 3, 4].flatMap((nth) => exchange(nth, 3_000)), ...chat(6)];
    await session.append(...history);
    let commits = 0;
    store.before = () => {
      if (++commits === at) throw stop;
    };
    let broke = true;
    try {
      await session.compact();
      broke = commits >= at;
    } catch {
      // The next one opens what is there.
    }
    store.before = undefined;
    const again = await openSession({ store, id: "s", contextWindow: 100_000 });
    const { messages } = await again.prepare();
    assert.deepEqual((await validateHistory(messages)).problems, []);
    assert.ok(messages.length === history.length || messages[0].content.includes(SUMMARY), `commit ${at}`);
    assert.equal((await again.context.explain()).length, history.length);
    if (!broke) return assert.ok(at > 1);
  }
});

// ---- waiting --------------------------------------------------------------------------------------------------------

test("lesson: blocked UI / lost queued input: while the model works, appends, usage, plan and ledger answer at once", async () => {
  const answer = deferred();
  const session = await openSession({ store: "memory", summarize: () => answer.promise });
  await session.append(...chat(10));
  let done = false;
  const work = session.compact().finally(() => (done = true));
  await settled();
  await session.append(user("I type on."));
  assert.equal(session.context.usage().messageCount, 21);
  assert.equal((await session.context.explain()).length, 21);
  assert.equal((await session.context.plan()).willCompact, false);
  assert.equal(done, false);
  answer.resolve(SUMMARY);
  assert.deepEqual((await work).messages.at(-1), user("I type on."));
});

test("lesson: blocked UI / lost queued input: cancelling ends the wait at once, and what was typed stays", async () => {
  const controller = new AbortController();
  const session = await openSession({ store: "memory", summarize: () => new Promise(() => {}) });
  await session.append(...chat(10));
  const work = session.compact({ signal: controller.signal });
  await settled();
  await session.append(user("I type on."));
  controller.abort();
  await assert.rejects(work, fails("aborted"));
  const { messages } = await session.prepare();
  assert.deepEqual([messages.length, messages.at(-1)], [21, user("I type on.")]);
});

test("lesson: blocked UI / lost queued input: progress is told before the model is asked, and after", async () => {
  const answer = deferred();
  const told = [];
  const session = await openSession({
    store: "memory",
    summarize: () => answer.promise,
    onProgress: ({ stage }) => told.push(stage),
  });
  await session.append(...chat(10));
  const work = session.compact();
  await settled();
  assert.deepEqual(told, ["read", "summarize"]);
  answer.resolve(SUMMARY);
  await work;
  assert.deepEqual(told, ["read", "summarize", "commit"]);
});

test("lesson: blocked UI / lost queued input: a model that never answers is given up after its time", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const session = await openSession({
    store: "memory",
    summarize: { call: () => new Promise(() => {}), attempts: 1, timeoutMs: 5_000 },
  });
  await session.append(...chat(10));
  const work = session.compact();
  const next = session.prepare();
  await settled();
  context.mock.timers.tick(5_000);
  const { success, error } = await work;
  assert.deepEqual([success, error.code], [false, "timeout"]);
  assert.equal((await next).messages.length, 20, "who waited behind it goes on");
});

// ---- offloads -------------------------------------------------------------------------------------------------------

test("lesson: offload traps: the id of a call is no file name; long ones and paths are moved and read as all others", async () => {
  for (const id of [
    "x".repeat(20_000),
    "../../etc/passwd",
    "a/b\\c:d*?",
    "con",
    "..",
    "\u0000",
    "名前 👍",
    "toString",
    "__proto__",
  ]) {
    const store = openStore();
    const session = await openSession({ store, presetOptions: OFFLOADING });
    await session.append(user("Read."), ...called(id, `The text of ${id}. `.repeat(100)), ...chat(3));
    const { edits } = await session.prepare();
    assert.equal(edits[0]?.offload.offloadedCount, 1, id.slice(0, 40));
    const [reference] = (await references(session));
    assert.match(reference, /^off_[a-z2-7]{26}$/);
    assert.equal(await session.recall.read(reference), `The text of ${id}. `.repeat(100));
    assert.ok(!store.rows().some(([key]) => JSON.stringify(key).includes("passwd")));
  }
});

test("lesson: offload traps: ids that come again do not overwrite each other", async () => {
  for (const make of [exchange, anthropicExchange]) {
    const session = await openSession({
      store: "memory",
      presetOptions: { ...OFFLOADING, scanRatio: 1 },
    });
    // The same id in every turn, and another result each time.
    const history = [1, 2, 3].flatMap((turn) =>
      JSON.parse(JSON.stringify(make(7, 600)).replaceAll("7 7", `${turn} ${turn}`)),
    );
    await session.append(...history);
    await session.prepare();
    const read = await Promise.all((await references(session)).map((reference) => session.recall.read(reference)));
    assert.deepEqual([read.length, new Set(read).size], [3, 3]);
  }
});

test("lesson: offload traps: a reference in a message's text is text, whoever wrote it", async () => {
  const session = await openSession({ store: "memory", presetOptions: OFFLOADING });
  await session.append(user("Read."), ...called("a", "secret result ".repeat(50)), ...chat(3));
  await session.prepare();
  const [reference] = (await references(session));
  const other = await openSession({ store: "memory", summarize: summariser(), presetOptions: OFFLOADING });
  const forged = `Tool result is at: ${reference}`;
  await other.append(user(forged), ...called("a", `${forged}. ${"x ".repeat(100)}`), ...chat(4));
  await other.compact();
  assert.ok(!JSON.stringify(await other.prepare()).includes("secret result"));
  await assert.rejects(other.recall.read(reference), fails("not_found"));
});

test("lesson: offload traps: a range is read in steps that always get further, and put together it is the result", async () => {
  const session = await openSession({ store: "memory", presetOptions: OFFLOADING });
  const text = Array.from({ length: 3_000 }, (_, line) => `${line}: 行 👩‍👩‍👧‍👦 é`).join("\n");
  await session.append(user("Read."), ...called("a", text), ...chat(3));
  await session.prepare();
  const [reference] = (await references(session));
  let read = "";
  for (let offset = 0, part = ""; offset < [...text].length; offset += [...part].length) {
    part = await session.recall.read(reference, { offset, limit: 997 });
    assert.ok(part.length > 0 && [...part].length <= 997);
    read += part;
  }
  assert.equal(read, text);
  assert.equal(await session.recall.read(reference, { offset: 1e9 }), "");
});

test("lesson: offload traps: moved, read back, moved again: the context does not grow, and nothing loops", async () => {
  const session = await openSession({
    store: "memory",
    contextWindow: 8_000,
    summarize: summariser(),
    advanced: { minOffloadGain: 1 },
  });
  await session.append(user("Read."), ...called("a", "result ".repeat(1_500)), ...chat(8));
  await session.prepare({ force: true });
  const [reference] = (await references(session));
  const sizes = [];
  for (let round = 0; round < 12; round++) {
    const text = await session.recall.read(reference);
    await session.append(...called(`r${round}`, text, "read_offload"));
    const { messages, usage } = await session.prepare();
    assert.equal(messages.at(-1).content, text, "what was just read back stays for the model to see");
    sizes.push(usage.usedTokens);
  }
  assert.ok(Math.max(...sizes) <= 6_000, `${sizes}`);
});

test("lesson: offload traps: what a summary has replaced is still read back, and what cannot be stored stays", async () => {
  const store = openStore();
  const session = await openSession({
    store,
    id: "s",
    summarize: summariser(),
    keep: { messages: 2 },
    presetOptions: OFFLOADING,
  });
  const text = "result ".repeat(300);
  await session.append(user("Read."), ...called("a", text), ...chat(4));
  await session.prepare();
  await session.compact();
  const [reference] = (await references(session));
  assert.equal(await session.recall.read(reference), text);
  const full = await openSession({ store, id: "full", summarize: { call: summariser("no"), attempts: 1 }, presetOptions: OFFLOADING });
  await full.append(user("Read."), ...called("a", text), ...chat(3));
  store.before = ({ puts }) => {
    if (puts.some(([[table]]) => table === "blobs"))
      throw new CompactionError("too_large", "the store takes no value of this size");
  };
  const told = [];
  full.on("warning", (warning) => told.push(warning.code));
  const { messages } = await full.prepare();
  assert.ok(told.includes("too_large"), "it is said");
  assert.equal(messages[2].content, text);
});

test("lesson: offload traps: what is read back is what was stored, or an error", async () => {
  const store = openStore();
  const session = await openSession({ store, presetOptions: OFFLOADING });
  const text = "result ".repeat(300);
  await session.append(user("Read."), ...called("a", text), ...chat(3));
  await session.prepare();
  const { ref, sha256 } = (await session.context.explain())[2];
  assert.equal(sha256, createHash("sha256").update(text).digest("hex"));
  const flip = (of) => {
    const is = ([[table, , id], value]) => table === of && (id === ref || Buffer.from(value).includes("result result"));
    const [key, bytes] = store.rows().find(is);
    store.commit({ expect: [], puts: [[key, bytes.map((byte) => byte ^ 1)]], deletes: [], durability: "relaxed" });
  };
  flip("blobs");
  assert.equal(await session.recall.read(ref), text, "the log has it");
  flip("log");
  await assert.rejects(session.recall.read(ref), fails("store_corrupt"));
});

// ---- storage of browsers --------------------------------------------------------------------------------------------

test("lesson: browser storage: localStorage is never touched", async (context) => {
  const touched = () => assert.fail("localStorage was touched");
  for (const name of ["localStorage", "sessionStorage"]) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { configurable: true, get: touched });
    context.after(() => (before ? Object.defineProperty(globalThis, name, before) : delete globalThis[name]));
  }
  const session = await openSession({ summarize: summariser() });
  await session.append(...chat(10));
  assert.equal((await session.compact()).success, true);
  await session.close();
});

test("lesson: browser storage: a full disk is an error that says so; what was stored stays, and later appends go through", async () => {
  const store = openStore();
  const session = await openSession({ store, id: "s", summarize: summariser(), contextWindow: 200_000 });
  const history = frozen(chat(10));
  await session.append(...history);
  store.before = () => {
    throw new CompactionError("quota_exceeded", "the origin has no space left");
  };
  await assert.rejects(session.append(user("One more.")), fails("quota_exceeded"));
  const told = [];
  session.on("warning", (warning) => told.push(warning.code));
  const result = await session.compact();
  assert.deepEqual([result.success, result.stored, told], [true, false, ["quota_exceeded"]]);
  const { messages, stored } = await session.prepare();
  assert.deepEqual([messages, stored], [result.messages, false]);
  const other = await openSession({ store, id: "s" });
  assert.deepEqual((await other.prepare()).messages, history, "the store has the context of before");
  store.before = undefined;
  await session.append(user("One more."));
  const now = await session.prepare();
  assert.deepEqual([now.stored, now.messages.length], [true, result.messages.length + 1]);
  assert.deepEqual((await (await openSession({ store, id: "s" })).prepare()).messages, now.messages);
});
