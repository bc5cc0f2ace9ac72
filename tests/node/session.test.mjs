/** Sessions: what they keep, hand out, tell and delete. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { indexedDbStore, memoryStore, openSession, validateHistory, withDocumentedNames } from "../support/offload.mjs";
import { chat, exchange, fails, frozen, openStore, RECORD, runtime, summariser, SUMMARY } from "../support/api.mjs";

/** Options under which 20 exchanges of 2,000 characters are offloaded. */
const SMALL = { contextWindow: 24_000, maxOutputTokens: 1_000 };
const exchanges = (count, from = 0) => Array.from({ length: count }, (_, nth) => exchange(from + nth, 2_000)).flat();
const references = (messages) => messages.flatMap((message) => JSON.stringify(message).match(/off_[0-9a-z]{26}/g) ?? []);

test("a session hands out the app's own objects, and changes none of them", async () => {
  const session = await openSession(frozen({ store: memoryStore() }));
  const history = frozen([...chat(3), ...exchange(1)]);
  await session.append(...history);
  assert.equal(session.context.format, "openai-chat");
  const { messages, edits, usage, system, result } = await session.prepare();
  assert.equal(messages.length, history.length);
  messages.forEach((message, index) => assert.equal(message, history[index]));
  assert.deepEqual([edits, system, result], [[], undefined, undefined]);
  assert.deepEqual(usage, session.context.usage());
});

test("the format is the one that the messages are read as", async () => {
  const session = await openSession({ store: "memory" });
  assert.equal(session.context.format, "openai-chat");
  await session.append({ role: "user", content: "Plain so far." });
  assert.equal(session.context.format, "openai-chat");
  await session.append({ role: "assistant", content: [{ type: "tool_use", id: "a", name: "read", input: {} }] });
  assert.equal(session.context.format, "anthropic");
  const given = await openSession({ store: "memory", format: "anthropic" });
  assert.equal(given.context.format, "anthropic");
});

test("an id is made when none is given, and is each session's own", async () => {
  const [one, other] = await Promise.all([openSession({ store: "memory" }), openSession({ store: "memory" })]);
  assert.match(one.id, /^session_/);
  assert.notEqual(one.id, other.id);
  assert.equal((await openSession({ store: "memory", id: "chat 会话 👍/../1" })).id, "chat 会话 👍/../1");
});

test("where there is no IndexedDB a session is kept in memory, and says so; a store that was passed is an error", async () => {
  assert.equal(typeof indexedDB, "undefined");
  for (const place of [{ store: "indexeddb" }, { store: "indexeddb", id: "named" }]) {
    const lines = [];
    const session = await openSession({ ...place, contextWindow: 200_000, logger: (...line) => lines.push(line) });
    await session.append(...chat(1));
    assert.equal((await session.prepare()).messages.length, 2);
    assert.equal(session.archive.durability, "none");
    const told = [[], []];
    const [left] = [0, 1].map((nth) => session.on("warning", (warning) => told[nth].push(warning)));
    left();
    await null;
    assert.deepEqual([told[0], told[1].map(({ code, durable }) => [code, durable])], [[], [["store_unavailable", "none"]]]);
    assert.ok(lines.some(([level, line]) => level === "warn" && line === told[1][0].message));
  }
  const asked = await openSession({ store: "memory", contextWindow: 200_000 });
  asked.on("warning", () => assert.fail("memory was asked for"));
  await asked.append(...chat(1));
  assert.equal(asked.archive.durability, "none");
  await assert.rejects(openSession({ store: indexedDbStore() }), fails("store_unavailable"));
});

test("s1_1_a_session_offloads old results, keeps the rest, and reads them back", async () => {
  const session = await openSession({ store: memoryStore(), ...SMALL });
  const history = frozen(exchanges(20));
  await session.append(...history);
  const { messages, edits, usage } = await session.prepare();
  assert.equal(edits[0].kind, "offload");
  assert.equal(edits[0].indices.length, 10);
  assert.ok(edits[0].indices.every((index) => index < 40 && history[index].role === "tool"));
  const found = references(messages);
  assert.equal(found.length, 10);
  assert.equal(usage.offloadCount, 10);
  messages.forEach((message, index) => {
    if (!edits[0].indices.includes(index)) assert.equal(message, history[index]);
    else assert.equal(message.content, `Tool result is at: ${found[edits[0].indices.indexOf(index)]}`);
  });
  const original = history[edits[0].indices[3]].content;
  assert.equal(await session.recall.read(found[3]), original);
  assert.equal(await session.recall.read(found[3], { offset: 10, limit: 5 }), original.slice(10, 15));
  assert.equal(await session.recall.read(found[3], { offset: 1e6 }), "");
  assert.equal((await validateHistory(messages)).valid, true);
  const again = await session.prepare();
  assert.deepEqual(again.edits, []);
  again.messages.forEach((message, index) => assert.equal(message, messages[index]));
  const entry = (await session.context.explain())[edits[0].indices[3]];
  assert.deepEqual([entry.fate, entry.ref], ["offloaded", found[3]]);
  assert.match(entry.sha256, /^[0-9a-f]{64}$/);
});

test("s1_6_read gives out what this session issued and nothing else", async () => {
  const store = memoryStore();
  const first = await openSession({ store, id: "first", ...SMALL });
  await first.append(...exchanges(20));
  const [reference] = references((await first.prepare()).messages);
  const second = await openSession({ store, id: "second", ...SMALL });
  await second.append(...chat(1));
  for (const ref of [reference, "off_aaaaaaaaaaaaaaaaaaaaaaaaaa", "../secrets", "", "sessions", "__proto__"]) {
    await assert.rejects(second.recall.read(ref), fails("not_found"), ref);
  }
});

test("s1_9_offloads_that_a_summary_replaced are retired and still readable", async () => {
  const session = await openSession({ store: memoryStore(), ...SMALL, summarize: summariser() });
  const history = exchanges(20);
  await session.append(...history);
  const [reference] = references((await session.prepare()).messages);
  const { deletedFiles, success } = await withDocumentedNames(session).compact();
  assert.equal(success, true);
  assert.ok(deletedFiles.includes(reference));
  assert.equal(await session.recall.read(reference), history[2].content);
});

test("s1_4_a_summary follows when offloading frees too little, and waits for its cooldown", async () => {
  const summarize = summariser();
  const session = await openSession({ store: "memory", contextWindow: 8_000, summarize: { call: summarize, contextWindow: 32_000 } });
  await session.append(...chat(30));
  const { result, messages } = await session.prepare();
  assert.deepEqual([result.trigger, result.success, summarize.calls.length], ["auto", true, 1]);
  assert.equal(messages[0].content, `[Compressed History]\n\n${SUMMARY}${RECORD}`);
  await session.append(...chat(1, 100));
  assert.equal((await session.prepare()).result, undefined);
  assert.equal(summarize.calls.length, 1);
});

test("prepare with trigger overflow acts whatever the estimate says", async () => {
  const session = await openSession({ store: "memory", summarize: summariser() });
  await session.append(...exchanges(6));
  const { edits, result } = await session.prepare({ force: true });
  assert.ok(edits.some(({ kind }) => kind === "offload"));
  assert.equal(result.trigger, "overflow");
});

test("what cannot be made to fit is context_overflow, and the session goes on", async () => {
  const session = await openSession({ store: "memory", ...SMALL });
  await session.append({ role: "user", content: "word ".repeat(40_000) });
  await session.pins.add(0);
  await assert.rejects(session.prepare(), fails("context_overflow", { message: /the largest message is 0/, index: 0 }));
  assert.equal((await session.context.explain()).length, 1);
  await session.append(...chat(1));
});

test("a failed summary leaves the session as it was, and says so in the result", async () => {
  const boom = new Error("boom");
  const store = openStore();
  const session = await openSession({ store, ...SMALL, contextWindow: 20_000, summarize: { call: async () => { throw boom; }, attempts: 1 } });
  const history = chat(80);
  await session.append(...history);
  const { result, messages } = await session.prepare();
  assert.deepEqual([result.success, result.error.code, result.error.cause], [false, "summary_failed", boom]);
  messages.forEach((message, index) => assert.equal(message, history[index]));
  const { error } = await session.compact();
  assert.equal(error.cause, boom);
  assert.ok(!store.rows().some(([key]) => key[0] === "views"));
});

test("s1_11_a_commit_that_fails_throws_with_the_cause, and everything is intact", async () => {
  const store = openStore();
  const session = await openSession({ store, id: "full", ...SMALL, summarize: summariser() });
  const history = frozen(chat(10));
  await session.append(...history);
  const rows = () => store.rows().filter(([key]) => key[0] !== "jobs").length;
  const before = rows();
  const boom = new Error("the disk is gone");
  store.before = (batch) => {
    if (batch.puts.some(([key]) => key[0] === "views")) throw boom;
  };
  await assert.rejects(session.compact(), fails("store_unavailable", { cause: boom }));
  const { messages } = await session.prepare();
  messages.forEach((message, index) => assert.equal(message, history[index]));
  assert.equal(rows(), before);
  store.before = undefined;
  // What the model answered was kept: it is not asked again.
  const { success, llmCalls } = await session.compact();
  assert.deepEqual([success, llmCalls], [true, 0]);
});

test("an append that fails is not part of the session", async () => {
  const store = openStore();
  const session = await openSession({ store });
  await session.append(...chat(1));
  store.before = () => {
    throw Object.assign(new Error("full"), { code: "quota_exceeded" });
  };
  await assert.rejects(session.append(...chat(1, 1)), fails("quota_exceeded"));
  store.before = undefined;
  assert.equal(session.context.usage().messageCount, 2);
  assert.deepEqual(await session.sync([...(await session.prepare()).messages, ...chat(1, 1)]), { appended: 2, recognized: 2 });
});

// ---- /context and /compact (S1.13) ----------------------------------------------------------------------------------

test("s1_13_context_usage counts messages, calls and offloads, and its categories add up", async () => {
  const session = await openSession({ store: "memory", systemPrompt: "You are brief. ".repeat(20), tokenCounter: () => 100 });
  await session.append(...exchange(1), ...chat(1));
  await session.prepare({ tools: [{ type: "function", function: { name: "read" } }] });
  const usage = withDocumentedNames(session).getContextUsage();
  assert.deepEqual([usage.messageCount, usage.toolCallCount, usage.offloadCount], [6, 1, 0]);
  // Six messages, the system prompt and the tools.
  assert.equal(usage.usedTokens, 800);
  assert.deepEqual([usage.maxTokens, usage.threshold], [200_000, 150_000]);
  assert.ok(Math.abs(usage.percent - 0.4) < 0.01, `${usage.percent}`);
  const sum = (kind) => usage.categories.filter((one) => one.kind === kind).reduce((all, one) => all + one.tokens, 0);
  assert.equal(sum("used"), 800);
  assert.equal(sum("used") + sum("free") + sum("buffer"), 200_000);
});

test("s5_14_the system prompt may be a function: it is called for every prepare, and counted", async () => {
  let calls = 0;
  const session = await openSession({ store: "memory", systemPrompt: () => `Prompt ${"x ".repeat(200 * ++calls)}` });
  await session.append(...chat(1));
  const first = await session.prepare();
  const second = await session.prepare();
  assert.deepEqual([first.system.length, second.system.length], [407, 807]);
  assert.ok(second.usage.usedTokens > first.usage.usedTokens + 50);
});

test("s3_5_the system prompt is the same before a compaction and after it", async () => {
  const systemPrompt = "You are careful. 한국어 ";
  const session = await openSession({ store: "memory", summarize: summariser(), systemPrompt });
  await session.append(...chat(10));
  const systems = [(await session.prepare()).system];
  assert.equal((await session.compact()).success, true);
  for (let round = 0; round < 2; round++) systems.push((await session.prepare()).system);
  assert.deepEqual(systems, [systemPrompt, systemPrompt, systemPrompt]);
});

test("tools are counted as they are sent; code among them is no error", async () => {
  const session = await openSession({ store: "memory" });
  await session.append(...chat(1));
  const bare = (await session.prepare()).usage.usedTokens;
  const definition = { type: "function", function: { name: "read", description: "Reads a file. ".repeat(50) } };
  const counted = (await session.prepare({ tools: frozen([definition]) })).usage.usedTokens;
  assert.ok(counted > bare + 100);
  const withCode = (await session.prepare({ tools: [{ ...definition, execute: async () => "x" }] })).usage.usedTokens;
  assert.equal(withCode, counted);
});

test("s1_13_compact takes instructions", async () => {
  const summarize = summariser();
  const session = await openSession({ store: "memory", summarize: { call: summarize, instructions: "In English." } });
  await session.append(...chat(10));
  await session.compact({ instructions: "  Name every file.  " });
  const asked = JSON.stringify(summarize.calls[0].request);
  assert.ok(asked.includes("In English.") && asked.includes("Name every file."));
  const nothing = await session.compact();
  assert.deepEqual([nothing.success, nothing.llmCalls], [true, 0]);
  assert.match(nothing.reason, /Nothing to compress/);
});

test("lesson: a later compaction loses an earlier kept tail; the fifth one still has every message's fate", async () => {
  const session = await openSession({ store: "memory", summarize: summariser() });
  for (let round = 0; round < 5; round++) {
    await session.append(...chat(10, round * 10));
    const { success, ledger, messages } = await session.compact();
    assert.equal(success, true);
    assert.deepEqual(ledger.map(({ index }) => index), [...Array((round + 1) * 20).keys()]);
    assert.equal(messages.filter(({ content }) => content.startsWith("[Compressed History]")).length, 1);
  }
});

test("plan says what prepare then does, and changes nothing", async () => {
  const store = openStore();
  const session = await openSession({ store, ...SMALL });
  await session.append(...exchanges(20));
  const before = store.text();
  const plan = await session.context.plan();
  assert.equal(store.text(), before);
  assert.equal(plan.willCompact, true);
  const { edits } = await session.prepare();
  assert.deepEqual(plan.edits[0].indices, edits[0].indices);
  assert.equal(plan.edits[0].freedTokens, edits[0].freedTokens);
});

// ---- sync -----------------------------------------------------------------------------------------------------------

test("sync recognises messages by identity and appends the rest", async () => {
  const session = await openSession({ store: "memory" });
  const history = frozen(chat(3));
  assert.deepEqual(await session.sync(history.slice(0, 4)), { appended: 4, recognized: 0 });
  assert.deepEqual(await session.sync(history), { appended: 2, recognized: 4 });
  assert.deepEqual(await session.sync(history), { appended: 0, recognized: 6 });
  const { messages } = await session.prepare();
  messages.forEach((message, index) => assert.equal(message, history[index]));
});

test("sync recognises a history after a round trip through JSON", async () => {
  const session = await openSession({ store: "memory" });
  const history = [...exchange(1), { role: "user", content: "Go on.", name: undefined }];
  await session.append(...history);
  const copy = JSON.parse(JSON.stringify(history));
  assert.deepEqual(await session.sync([...copy, ...chat(1)]), { appended: 2, recognized: 5 });
  const { messages } = await session.prepare();
  assert.equal(messages.length, 7);
});

test("sync reports where the past was changed, and appends nothing", async () => {
  const session = await openSession({ store: "memory", onDiverged: "throw" });
  const history = chat(3);
  await session.sync(history);
  const changed = history.with?.(2, { role: "user", content: "Something else" }) ?? [
    ...history.slice(0, 2),
    { role: "user", content: "Something else" },
    ...history.slice(3),
  ];
  await assert.rejects(session.sync([...changed, ...chat(1)]), fails("diverged", { index: 2 }));
  await assert.rejects(session.sync(history.slice(0, 3)), fails("diverged", { index: 3 }));
  assert.equal(session.context.usage().messageCount, 6);
  assert.deepEqual(await session.sync([...history, ...chat(1)]), { appended: 2, recognized: 6 });
});

test("sync after a compaction compares with the whole log", async () => {
  const session = await openSession({ store: "memory", summarize: summariser(), onDiverged: "throw" });
  const history = chat(10);
  await session.sync(history);
  await session.compact();
  assert.deepEqual(await session.sync(JSON.parse(JSON.stringify(history))), { appended: 0, recognized: 20 });
  const changed = structuredClone(history);
  changed[1].content = "Something else";
  await assert.rejects(session.sync(changed), fails("diverged", { index: 1 }));
});

test("sync on a session opened again: its messages are the app's own objects from then on", async () => {
  const store = memoryStore();
  const first = await openSession({ store, id: "again" });
  const history = frozen(chat(3));
  await first.append(...history);
  await first.close();
  const second = await openSession({ store, id: "again" });
  const more = frozen([...history, ...chat(1, 3)]);
  assert.deepEqual(await second.sync(more), { appended: 2, recognized: 6 });
  const { messages } = await second.prepare();
  messages.forEach((message, index) => assert.equal(message, more[index]));
});

test("lesson: lost concurrent writes; two handles on one session see each other's messages", async () => {
  const store = memoryStore();
  const one = await openSession({ store, id: "both" });
  const other = await openSession({ store, id: "both" });
  const [a, b, c] = frozen([...chat(1), { role: "user", content: "Go on." }]);
  await one.append(a);
  await other.append(b);
  await one.append(c);
  const { messages } = await one.prepare();
  assert.deepEqual(messages, [a, b, c]);
  assert.ok(messages[0] === a && messages[2] === c);
  assert.deepEqual(await one.sync([a, b, c]), { appended: 0, recognized: 3 });
  assert.deepEqual(await other.sync([a, b, c, ...chat(1)]), { appended: 2, recognized: 3 });
});

// ---- reload ---------------------------------------------------------------------------------------------------------

test("a session opened again has the same context, ledger and format", async () => {
  const store = memoryStore();
  const options = { store, id: "reload", ...SMALL, advanced: { runtime: runtime() } };
  const first = await openSession({ ...options, summarize: summariser() });
  await first.append(...exchanges(20));
  const offloaded = await first.prepare();
  const second = await openSession(options);
  assert.equal(second.context.format, "openai-chat");
  assert.deepEqual((await second.prepare()).messages, offloaded.messages);
  const compacted = await first.compact();
  await first.append(...chat(1));
  const third = await openSession(options);
  const { messages } = await third.prepare();
  assert.deepEqual(messages, [...compacted.messages, ...chat(1)]);
  assert.deepEqual((await third.context.explain()), (await first.context.explain()));
  assert.deepEqual(third.context.usage().messageCount, first.context.usage().messageCount);
  const [reference] = references(offloaded.messages);
  assert.equal(await third.recall.read(reference), exchange(0, 2_000)[2].content);
});

test("another format than the session's is refused when it is opened", async () => {
  const store = memoryStore();
  const first = await openSession({ store, id: "format" });
  await first.append(...exchange(1));
  await assert.rejects(
    openSession({ store, id: "format", format: "anthropic" }),
    fails("invalid_option", { field: "format" }),
  );
});

test("delete removes every row of the session and of no other", async () => {
  const store = openStore();
  const fill = async (id) => {
    const session = await openSession({ store, id, ...SMALL, summarize: summariser() });
    await session.append(...exchanges(20));
    await session.prepare();
    await session.compact();
    return session;
  };
  const kept = await fill("kept");
  const keys = () => store.rows().map(([key]) => JSON.stringify(key));
  const before = keys();
  const doomed = await fill("doomed");
  assert.ok(keys().length >= before.length * 2);
  for (const table of ["sessions", "log", "blobs", "views"]) assert.ok(keys().some((key) => key.includes(table)));
  await doomed.close({ delete: true });
  assert.deepEqual(keys(), before);
  assert.equal((await kept.prepare()).messages.length > 0, true);
  await assert.rejects(doomed.append(...chat(1)), fails("closed"));
  const anew = await openSession({ store, id: "doomed" });
  assert.deepEqual((await anew.context.explain()), []);
});

test("usage and plan count the system prompt before the first prepare", async () => {
  let systemPrompt = "You review changes to a parser. ".repeat(400);
  const session = await openSession({ store: "memory", ...SMALL, systemPrompt: () => systemPrompt });
  await session.append(...chat(2));
  const before = [session.context.usage().usedTokens, (await session.context.plan()).tokens];
  const { usage } = await session.prepare();
  assert.deepEqual(before, [usage.usedTokens, usage.usedTokens]);
  systemPrompt = "Short.";
  assert.ok(session.context.usage().usedTokens < usage.usedTokens / 2, "the prompt as it is now");
});
