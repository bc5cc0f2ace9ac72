/** `context-compactor/fetch` in the real clients of OpenAI and Anthropic (E17, E20, E21). */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { memoryStore, openSession } from "context-compactor";
import { compactingFetch } from "context-compactor/fetch";
import { holds, logOf, OPTIONS, provider, SUMMARIES } from "../support/agents.mjs";
import { OLDER, PROTOCOLS, runAgent } from "../support/agent-loops.mjs";

const chat = PROTOCOLS["openai chat"];

/** A compacting fetch whose warnings fail the test, unless they are wanted. */
function compacting(context, options = {}, warnings = []) {
  const fetch = compactingFetch({ ...OPTIONS, logger: (level, message) => level === "warn" && warnings.push(message), ...options });
  context.after(async () => {
    await fetch.close();
    if (!options.faulty) assert.deepEqual(warnings, []);
  });
  return fetch;
}

const plain = (value) => JSON.parse(JSON.stringify(value));

/** The conversation without what is sent beside it, and without the last answer, which was not sent again. */
const sentOf = (messages) => plain(messages.filter(({ role }) => role !== "system").slice(0, -1));

for (const [name, protocol] of Object.entries(process.env.CC_MAJORS === "all" ? { ...PROTOCOLS, ...OLDER } : PROTOCOLS)) {
  for (const stream of [false, true]) {
    const how = `${name}, ${stream ? "streamed" : "whole"}`;

    test(`E17, E21: ${how}: an agent dies without it, and ends its work with it`, async (context) => {
      const server = await provider(context);
      await assert.rejects(runAgent(protocol, protocol.client(server.url, "without"), { stream }), { status: 400 });
      const died = server.figures("without");
      assert.ok(died.calls >= 20 && died.calls <= 26 && died.refused === 1, JSON.stringify(died));

      const fetch = compacting(context, { thread: "one" });
      const messages = await runAgent(protocol, protocol.client(server.url, "with", fetch), { stream });
      holds(server.figures("with"));
      assert.deepEqual(plain(await logOf(await fetch.session("one"))), sentOf(messages));
    });

    test(`E17, E20: ${how}: only summaries make room, and the agent's own model writes them`, async (context) => {
      const server = await provider(context);
      const fetch = compacting(context, SUMMARIES);
      await runAgent(protocol, protocol.client(server.url, "a", fetch), { stream });
      const figures = server.figures("a");
      holds(figures);
      assert.ok(figures.summaries >= 1);
      for (const { body } of server.requests.filter(({ kind }) => kind === "summary")) {
        assert.deepEqual([body.model, body.tools, body.stream], ["small", undefined, undefined]);
      }
    });
  }

  test(`E17, E20: ${name}: the provider says "too long" at call 30: one retry with less`, async (context) => {
    const server = await provider(context, { overflowAt: 30 });
    const fetch = compacting(context);
    await runAgent(protocol, protocol.client(server.url, "a", fetch));
    holds(server.figures("a"), { refusals: 1 });
    const [refused, again] = server.requests.filter(({ kind }) => kind === "agent").slice(29, 31);
    assert.equal(refused.status, 400);
    assert.ok(again.tokens < refused.tokens, `${again.tokens} after ${refused.tokens}`);
  });

  test(`E17, E21: ${name}: a restart in the middle, JSON between turns, parallel calls`, async (context) => {
    const server = await provider(context, { parallel: 2 });
    const store = memoryStore();
    const client = (fetch) => protocol.client(server.url, "a", fetch);
    const before = compacting(context, { store, thread: "one" });
    const half = await runAgent(protocol, client(before), { turns: 15, between: plain });
    await before.close();
    const after = compacting(context, { store, thread: "one" });
    const messages = await runAgent(protocol, client(after), { messages: plain(half), between: plain });
    holds(server.figures("a"), { total: 31 });
    assert.deepEqual(plain(await logOf(await after.session("one"))), sentOf(messages));
  });
}

test("E17: two conversations at once keep apart, with and without a name", async (context) => {
  const server = await provider(context);
  for (const thread of [undefined, (_, headers) => headers.get("authorization").replace("Bearer ", "")]) {
    const fetch = compacting(context, { thread });
    const keys = ["a", "b"].map((key) => `${key}${thread ? 1 : 2}`);
    await Promise.all(keys.map((key) => runAgent(chat, chat.client(server.url, key, fetch))));
    for (const key of keys) holds(server.figures(key));
    if (!thread) continue;
    for (const key of keys) {
      const log = await logOf(await fetch.session(key));
      assert.equal(log.length, 121);
      assert.ok(log.filter(({ role }) => role === "tool").every(({ tool_call_id: id }) => id.includes(`_${key}_`)));
    }
  }
});

test("E17: an answer that is asked for again, and a question that is edited, go on in the same session", async (context) => {
  const server = await provider(context, { files: 6 });
  const fetch = compacting(context, { thread: "one" });
  const client = chat.client(server.url, "a", fetch);
  const messages = await runAgent(chat, client);
  const again = await runAgent(chat, client, { messages: messages.slice(0, -1) });
  assert.equal(again.length, messages.length);
  const edited = [...messages.slice(0, 1), { role: "user", content: "Read one file." }];
  await runAgent(chat, client, { messages: edited });
  const { body } = server.requests.at(-1);
  assert.deepEqual(body.messages.map(({ role, content }) => [role, content]), [
    ["system", "You read files."],
    ["user", "Read one file."],
  ]);
});

test("E17: a system prompt is counted and sent, and is no message of the session", async (context) => {
  const server = await provider(context, { files: 1 });
  const fetch = compacting(context, { thread: "one", goal: { id: "g", description: "Find the error." } });
  await runAgent(chat, chat.client(server.url, "a", fetch));
  const session = await fetch.session("one");
  assert.deepEqual((await logOf(session)).map(({ role }) => role), ["user", "assistant", "tool"]);
  assert.ok(session.context.usage().categories.some(({ name, tokens }) => /system/i.test(name) && tokens > 0));
  const [first, second] = server.requests[0].body.messages;
  assert.equal(first.content, "You read files.");
  assert.match(second.content, /Find the error/);
});

test("E20: what the provider counted corrects the estimate, whole and streamed", async (context) => {
  const server = await provider(context, { files: 3 });
  for (const protocol of Object.values(PROTOCOLS)) {
    for (const stream of [false, true]) {
      const fetch = compacting(context, { thread: "one" });
      await runAgent(protocol, protocol.client(server.url, `${stream}`, fetch), { stream });
      await sleep(5);
      const { correction } = (await fetch.session("one")).context.usage();
      assert.deepEqual([correction.reported, correction.model], [server.requests.at(-1).counted, "small"], `${protocol.client.name} ${stream}`);
    }
  }
});

test("E17: what is no conversation of the app's passes as it is", async (context) => {
  const seen = [];
  const fetch = compacting(context, {
    fetch: async (input, init) => {
      seen.push([String(input), init]);
      return Response.json({});
    },
  });
  const body = (value) => ({ method: "POST", body: JSON.stringify(value) });
  const messages = [{ role: "user", content: "hi" }];
  const requests = [
    ["https://x.test/v1/models", undefined],
    ["https://x.test/v1/embeddings", body({ input: ["a", "b"] })],
    ["https://x.test/v1/responses", body({ input: "hi" })],
    ["https://x.test/v1/responses", body({ input: messages, previous_response_id: "resp_1" })],
    ["https://x.test/v1/messages", body({ messages, thread: { type: "continue" } })],
    ["https://x.test/v1/messages/count_tokens", body({ messages })],
    ["https://x.test/v1/chat/completions", { method: "POST", body: new Blob(["{}"]).stream(), duplex: "half" }],
    ["https://x.test/v1/chat/completions", { method: "POST", body: "no JSON" }],
  ];
  for (const [url, init] of requests) {
    await fetch(url, init);
    const [sent, given] = seen.at(-1);
    assert.equal(sent, url);
    assert.equal(given?.body, init?.body);
  }
  assert.equal(seen.length, requests.length);
});

test("E17: a Request and a URL are read too", async (context) => {
  const seen = [];
  const fetch = compacting(context, { thread: "one", fetch: async (input, init) => (seen.push(JSON.parse(init.body)), Response.json({})) });
  const url = new URL("https://x.test/v1/chat/completions");
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
  await fetch(new Request(url, { method: "POST", body }));
  await fetch(url, { method: "POST", body });
  assert.deepEqual(seen, [JSON.parse(body), JSON.parse(body)]);
  assert.equal((await logOf(await fetch.session("one"))).length, 1);
});

test("E20: nothing is buffered: the first piece is there while the model still speaks", async (context) => {
  const server = await provider(context, { files: 0, pauseMs: 30 });
  const fetch = compacting(context);
  const body = { model: "small", messages: [{ role: "user", content: "Say it." }], stream: true, tools: [{ type: "function", function: { name: "f", parameters: {} } }] };
  const started = Date.now();
  const times = [];
  for await (const _ of await chat.client(server.url, "a", fetch).chat.completions.create(body)) times.push(Date.now() - started);
  assert.ok(times.length > 4 && times.at(-1) - times[0] > 60, times.join(" "));
});

test("E20: an abort ends the stream, and the session goes on", async (context) => {
  const server = await provider(context, { files: 0, pauseMs: 20 });
  const fetch = compacting(context, { thread: "one" });
  const client = chat.client(server.url, "a", fetch);
  const body = { model: "small", messages: [{ role: "user", content: "Say it." }], stream: true, tools: [{ type: "function", function: { name: "f", parameters: {} } }] };
  const stream = await client.chat.completions.create(body);
  for await (const _ of stream) stream.controller.abort();
  await sleep(100);
  assert.equal(server.requests[0].isAborted, true);
  await client.chat.completions.create({ ...body, stream: false });
  assert.equal((await logOf(await fetch.session("one"))).length, 1);
});

test("E20: an abort of the app's call ends a summary that it waits for, and no commit", async (context) => {
  const server = await provider(context, { summaryMs: 5_000 });
  const store = memoryStore();
  const fetch = compacting(context, { ...SUMMARIES, store, thread: "one" });
  const client = chat.client(server.url, "a", fetch);
  const control = new AbortController();
  const running = runAgent(chat, client, { signal: control.signal });
  while (!server.requests.some(({ kind }) => kind === "summary")) await sleep(5);
  const started = Date.now();
  control.abort();
  await assert.rejects(running, { name: "Error", message: /abort/i });
  assert.ok(Date.now() - started < 1_000);
  await sleep(50);
  assert.equal(server.requests.find(({ kind }) => kind === "summary").isAborted, true);
  const session = await fetch.session("one");
  assert.equal((await session.archive.verify()).ok, true);
  const sent = server.requests.at(-2).body.messages.length - 1;
  assert.equal((await logOf(session)).length, sent + 2, "what the aborted call brought is in the log");
});

test("E20: a summary that takes its time delays nothing but its own conversation", async (context) => {
  const server = await provider(context, { summaryMs: 1_000, files: 40 });
  const fetch = compacting(context, { ...SUMMARIES });
  const slow = runAgent(chat, chat.client(server.url, "a", fetch));
  while (!server.requests.some(({ kind }) => kind === "summary")) await sleep(5);
  const started = Date.now();
  await chat.call(chat.client(server.url, "b", fetch), [{ role: "user", content: "hi" }], {});
  assert.ok(Date.now() - started < 800, `${Date.now() - started} ms`);
  await slow;
  holds(server.figures("a"), { total: 41 });
});

test("E20: an error of the model is the app's, and the next call goes on", async (context) => {
  const server = await provider(context, { errorAt: 3, files: 5 });
  const client = chat.client(server.url, "a", compacting(context, { thread: "one" }));
  const messages = chat.begin();
  await assert.rejects(runAgent(chat, client, { messages }), { status: 400, code: "invalid_value" });
  await runAgent(chat, client, { messages });
  assert.deepEqual(server.figures("a"), { ...server.figures("a"), calls: 6, refused: 1, problems: [] });
});

test("E20: a prompt that cannot be made to fit is the provider's error, and ours is a warning", async (context) => {
  const server = await provider(context);
  const warnings = [];
  const fetch = compacting(context, { pins: { match: () => true } }, warnings);
  const messages = [{ role: "user", content: "token ".repeat(20_000) }];
  await assert.rejects(chat.call(chat.client(server.url, "a", fetch), messages, {}), { status: 400, code: "context_length_exceeded" });
  assert.equal(server.requests.length, 1);
  assert.match(warnings.join("\n"), /context-compactor\/fetch: the request was sent as it was given: .*window/);
  warnings.length = 0;
});

test("E20: a failure of ours ends no call, unless it is to", async (context) => {
  const server = await provider(context, { files: 2 });
  const store = { ...memoryStore(), commit: () => Promise.reject(new Error("the disk is on fire")) };
  const warnings = [];
  await runAgent(chat, chat.client(server.url, "a", compacting(context, { store, thread: "one" }, warnings)));
  assert.equal(server.figures("a").calls, 3);
  assert.match(warnings[0], /the request was sent as it was given: .*disk is on fire/s);
  warnings.length = 0;

  const strict = compacting(context, { store, thread: "one", strict: true }, warnings);
  await assert.rejects(runAgent(chat, chat.client(server.url, "b", strict)), (error) => /disk is on fire/.test(error.cause.message));
  assert.equal(server.figures("b").calls, 0);
  warnings.length = 0;
});

test("E20: options are checked when the adapter is made, and named", () => {
  const refused = [[{ strict: 1 }, "strict"], [{ recall: "yes" }, "recall"], [{ recall: { tool: true } }, "recall.tool"], [{ windowSize: 1 }, "windowSize"]];
  for (const [options, field] of refused) assert.throws(() => compactingFetch(options), { code: "invalid_option", field });
});

test("E20: of many conversations those that were used last stay open, and every one goes on", async (context) => {
  const messages = (chat, count) => Array.from({ length: count }, (_, at) => ({ role: at % 2 ? "assistant" : "user", content: `${chat}: ${at}` }));
  const sent = [];
  const inner = async (_, { body }) => (sent.push(JSON.parse(body).messages), Response.json({}));
  for (const store of [memoryStore(), undefined]) {
    const fetch = compacting(context, { ...(store ? { store } : {}), thread: (_, headers) => headers.get("x-chat"), fetch: inner });
    for (const count of [1, 3, 5]) {
      for (let chat = 0; chat < 120; chat++) {
        const body = JSON.stringify({ model: "m", messages: messages(chat, count) });
        await fetch("https://x.test/v1/chat/completions", { method: "POST", headers: { "x-chat": `chat-${chat}` }, body });
        assert.deepEqual(sent.pop(), messages(chat, count));
      }
    }
    // Of those that are in memory alone, the oldest are forgotten, and begin again with what the app has.
    for (const chat of [119, 60, 0]) assert.deepEqual(await logOf(await fetch.session(`chat-${chat}`)), store || chat > 20 ? messages(chat, 5) : []);
  }
});

test("E17: the session that fetch kept is one that openSession opens", async (context) => {
  const server = await provider(context, { files: 3 });
  const store = memoryStore();
  const fetch = compacting(context, { store, thread: "one" });
  await runAgent(chat, chat.client(server.url, "a", fetch));
  const session = await openSession({ ...OPTIONS, store, id: "one" });
  assert.equal((await logOf(session)).length, 7);
  const { handle } = session.recall.tools();
  const call = { id: "c", type: "function", function: { name: "recall_search", arguments: '{"query":"module1"}' } };
  assert.match((await handle(call)).content, /module1/);
  await session.close();
});
