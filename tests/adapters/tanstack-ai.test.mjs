/** `context-compactor/tanstack-ai` in TanStack AI itself (E18, E20, E21). */

import { chat, maxIterations, StreamProcessor, toolDefinition } from "@tanstack/ai";
import { createOpenaiChat, createOpenaiChatCompletions } from "@tanstack/ai-openai";
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { z } from "zod";
import { memoryStore, openSession } from "context-compactor";
import { contextCompactor } from "context-compactor/tanstack-ai";
import { DONE, fileText, holds, logOf, OPTIONS, provider, SUMMARIES, SUMMARY, TASK } from "../support/agents.mjs";

/** A compactor whose warnings fail the test, unless they are taken from `warnings`. */
function compactor(context, options = {}, warnings = []) {
  const made = contextCompactor({ ...OPTIONS, logger: (level, message) => level === "warn" && warnings.push(message), ...options });
  context.after(async () => {
    await made.close();
    assert.deepEqual(warnings, []);
  });
  return made;
}

const readFile = toolDefinition({ name: "read_file", description: "Reads a file", inputSchema: z.object({ nth: z.number() }) }).server(({ nth }) => fileText(nth));

const adapterAt = (server, key = "a", make = createOpenaiChatCompletions) => make("gpt-4.1", key, { baseURL: `${server.url}/v1`, maxRetries: 0 });
const user = (content) => [{ role: "user", content }];

/** What is the same in every run. */
const common = { systemPrompts: ["You read files."], tools: [readFile], agentLoopStrategy: maxIterations(100), debug: false };

/** The chunks of a run. */
async function chunksOf(options) {
  const chunks = [];
  for await (const chunk of chat({ ...common, ...options })) chunks.push(chunk);
  return chunks;
}

/** The ways to run an agent: each resolves to its text. */
const WAYS = {
  text: (options) => chat({ ...common, ...options, stream: false }),
  async stream(options) {
    const chunks = await chunksOf(options);
    const error = chunks.find(({ type }) => type === "RUN_ERROR");
    if (error) throw Object.assign(new Error(error.message), { code: error.code });
    assert.deepEqual(chunks.map(({ type }) => type).filter((type) => /^RUN_(?!FINISHED)/.test(type)), ["RUN_STARTED"]);
    return chunks.map(({ type, delta }) => (type === "TEXT_MESSAGE_CONTENT" ? delta : "")).join("");
  },
};

/** Roles of the log of a conversation of so many calls of one tool each. */
const rolesAfter = (calls) => ["user", ...Array.from({ length: calls }, () => ["assistant", "tool"]).flat()];

/** A middleware that keeps the messages that the run has in the end. */
function witness() {
  const seen = { name: "witness", messages: [], onFinish: ({ messages }) => (seen.messages = [...messages]) };
  return seen;
}

for (const [way, run] of Object.entries(WAYS)) {
  test(`E18, E21: ${way}: an agent dies without it, and ends its work with it`, async (context) => {
    const server = await provider(context);
    await assert.rejects(run({ adapter: adapterAt(server, "without"), messages: user(TASK) }), /maximum context length/);
    const died = server.figures("without");
    assert.ok(died.calls >= 20 && died.calls <= 27 && died.refused === 1, JSON.stringify(died));

    const cc = compactor(context);
    const seen = witness();
    const { adapter, middleware } = cc.with(adapterAt(server));
    assert.equal(await run({ adapter, middleware: [seen, ...middleware], messages: user(TASK), threadId: "one" }), DONE);
    holds(server.figures("a"));
    assert.deepEqual((await logOf(await cc.session("one"))).map(({ role }) => role), rolesAfter(60));
    // What the run has itself stays whole.
    assert.deepEqual(seen.messages.map(({ role }) => role), [...rolesAfter(60), "assistant"]);
    for (const [at, { content }] of seen.messages.filter(({ role }) => role === "tool").entries()) assert.equal(content, fileText(at));
  });

  test(`E18, E20: ${way}: only summaries make room, and the agent's own adapter writes them`, async (context) => {
    const server = await provider(context);
    const cc = compactor(context, SUMMARIES);
    assert.equal(await run({ ...cc.with(adapterAt(server)), messages: user(TASK) }), DONE);
    holds(server.figures("a"));
    const summaries = server.requests.filter(({ kind }) => kind === "summary");
    assert.ok(summaries.length >= 1);
    for (const { body } of summaries) assert.deepEqual([body.model, body.tools], ["gpt-4.1", undefined]);
  });

  test(`E18, E20: ${way}: a middleware alone: the built-in summarizer, or the one that is given`, async (context) => {
    const server = await provider(context);
    assert.equal(await run({ adapter: adapterAt(server), middleware: [compactor(context, SUMMARIES)], messages: user(TASK) }), DONE);
    holds(server.figures("a"));
    assert.equal(server.figures("a").summaries, 0);
    let asked = 0;
    const summarize = async () => (asked++, SUMMARY);
    assert.equal(await run({ adapter: adapterAt(server, "b"), middleware: [compactor(context, { ...SUMMARIES, summarize })], messages: user(TASK) }), DONE);
    holds(server.figures("b"));
    assert.ok(asked > 0);
  });

  test(`E18, E20: ${way}: the provider says "too long" at call 30: one retry with less`, async (context) => {
    for (const [make, inStream] of [[createOpenaiChatCompletions, false], [createOpenaiChat, true]]) {
      const server = await provider(context, { overflowAt: 30, inStream });
      assert.equal(await run({ ...compactor(context).with(adapterAt(server, "a", make)), messages: user(TASK) }), DONE);
      holds(server.figures("a"), { refusals: 1 });
      const [refused, again] = server.requests.filter(({ kind }) => kind === "agent").slice(29, 31);
      assert.ok(again.tokens < refused.tokens, `${again.tokens} after ${refused.tokens}`);
    }
  });
}

test("E18, E21: parallel calls, a restart in the middle, and the messages of the page that come back as JSON", async (context) => {
  const server = await provider(context, { parallel: 2, script: (nth) => (nth === 16 ? { text: "Shall I go on?", calls: [] } : undefined) });
  const store = memoryStore();
  let page = [];
  for (const text of [TASK, "Go on."]) {
    const cc = compactor(context, { store });
    const processor = new StreamProcessor({ initialMessages: JSON.parse(JSON.stringify(page)) });
    processor.addUserMessage(text);
    await processor.process(chat({ ...common, ...cc.with(adapterAt(server)), messages: processor.getMessages(), threadId: "one" }));
    page = processor.getMessages();
    await cc.close();
  }
  assert.equal(page.at(-1).parts.at(-1).content, DONE);
  holds(server.figures("a"), { total: 31 });
  const session = await compactor(context, { store }).session("one");
  const results = (await logOf(session)).filter(({ role }) => role === "tool");
  assert.ok(results.length >= 58 && (await session.archive.verify()).ok, `${results.length} results`);
  // The same conversation: nothing is in the log twice.
  assert.equal(new Set(results.map(({ toolCallId }) => toolCallId)).size, results.length);
});

test("E18: the Responses API", async (context) => {
  const server = await provider(context);
  assert.equal(await WAYS.text({ ...compactor(context).with(adapterAt(server, "a", createOpenaiChat)), messages: user(TASK) }), DONE);
  holds(server.figures("a"));
});

test("E18: two conversations at once keep apart: by threadId, by an option, by their messages", async (context) => {
  const server = await provider(context);
  const ways = {
    threadId: [{}, (key) => ({ threadId: key })],
    option: [{ thread: ({ context }) => context.chat }, (key) => ({ threadId: "same", context: { chat: key } })],
    nothing: [{}, () => ({})],
  };
  for (const [name, [options, given]] of Object.entries(ways)) {
    const cc = compactor(context, options);
    const keys = ["a", "b"].map((key) => `${name}${key}`);
    const texts = await Promise.all(keys.map((key) => WAYS.text({ ...cc.with(adapterAt(server, key)), messages: user(TASK), ...given(key) })));
    assert.deepEqual(texts, [DONE, DONE]);
    for (const key of keys) {
      holds(server.figures(key));
      if (name === "nothing") continue;
      const log = await logOf(await cc.session(key));
      assert.equal(log.length, 121, name);
      assert.ok(JSON.stringify(log).includes(`call_${key}_0`));
    }
  }
});

test("E18: without a name, the next run of a conversation is recognized by its messages", async (context) => {
  const server = await provider(context, { files: 30 });
  const seen = witness();
  const cc = compactor(context, SUMMARIES);
  const { adapter, middleware } = cc.with(adapterAt(server));
  const run = (messages) => WAYS.text({ adapter, middleware: [seen, ...middleware], messages });
  await run(user(TASK));
  const { summaries } = server.figures("a");
  assert.ok(summaries > 0);
  await run([...seen.messages, ...user("Are you sure?")]);
  assert.equal(server.figures("a").summaries, summaries);
});

test("E18: the recall tools are the agent's; they say what the engine's say, and can be left away", async (context) => {
  const search = (nth) => (nth === 61 ? { text: "", calls: [{ id: "r1", name: "recall_search", input: { query: "module3 part5" } }] } : undefined);
  const server = await provider(context, { script: search });
  const cc = compactor(context);
  const chunks = await chunksOf({ ...cc.with(adapterAt(server)), messages: user(TASK) });
  const found = chunks.find(({ type, toolCallId }) => type === "TOOL_CALL_RESULT" && toolCallId === "r1");
  assert.match(found.content, /src\/module3\/part5\.ts/);
  const session = await openSession({ ...OPTIONS, format: "openai-chat" });
  const sent = server.requests[0].body.tools.filter(({ function: { name } }) => name.startsWith("recall_"));
  assert.deepEqual(sent.map(({ function: { description } }) => description), session.recall.tools().definitions.map(({ function: { description } }) => description));
  await WAYS.text({ ...compactor(context, { recall: { tools: false } }).with(adapterAt(server, "b")), messages: user("hi"), agentLoopStrategy: maxIterations(1) });
  assert.deepEqual(server.requests.at(-1).body.tools.map(({ function: { name } }) => name), ["read_file"]);
});

test("E20: what the provider counted corrects the estimate; tools and system prompt are counted; the goal is sent", async (context) => {
  const server = await provider(context, { files: 3 });
  for (const run of Object.values(WAYS)) {
    const cc = compactor(context, { goal: { id: "g", description: "Find the error." } });
    await run({ ...cc.with(adapterAt(server)), messages: user(TASK), threadId: "one" });
    const { correction, categories } = (await cc.session("one")).context.usage();
    assert.deepEqual([correction.reported, correction.model], [server.requests.at(-1).counted, "gpt-4.1"]);
    assert.ok(categories.filter(({ name, tokens }) => /system|tools/i.test(name) && tokens > 0).length >= 2);
    const [{ content }] = server.requests.at(-1).body.messages;
    assert.equal(content.match(/You read files/g).length, 1);
    assert.equal(content.match(/Find the error/g).length, 1);
  }
});

test("E18: the last call, for an answer of a schema, fits as well", async (context) => {
  const files = 40;
  const answer = JSON.stringify({ errors: [9, 18, 27] });
  const script = (_, body) => (body.response_format ? { text: answer, calls: [] } : undefined);
  for (const [key, change] of Object.entries({ streamed: {}, plain: { structuredOutputStream: undefined } })) {
    const server = await provider(context, { files, script, overflowAt: files + 2 });
    const adapter = Object.assign(adapterAt(server, key), { supportsCombinedToolsAndSchema: undefined }, change);
    const outputSchema = z.object({ errors: z.array(z.number()) });
    const found = await chat({ ...common, ...compactor(context).with(adapter), messages: user(TASK), outputSchema });
    assert.deepEqual(found, { errors: [9, 18, 27] });
    holds(server.figures(key), { total: files + 2, refusals: 1 });
    const [refused, again] = server.requests.filter(({ kind }) => kind === "agent").slice(-2);
    assert.ok(refused.body.response_format && again.tokens < refused.tokens, `${again.tokens} after ${refused.tokens}`);
  }
});

/** An adapter that answers as Anthropic's does, and counts as it does: what came from the cache stands apart. */
const anthropic = {
  ...{ kind: "text", name: "anthropic", model: "claude-haiku-4-5" },
  async *chatStream() {
    yield { type: "RUN_STARTED" };
    yield { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" };
    yield { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "Nothing." };
    yield { type: "TEXT_MESSAGE_END", messageId: "m" };
    const promptTokensDetails = { cachedTokens: 600, cacheWriteTokens: 100 };
    yield { type: "RUN_FINISHED", finishReason: "stop", usage: { promptTokens: 1_200, completionTokens: 2, totalTokens: 1_202, promptTokensDetails } };
  },
};

test("E18: pictures, thoughts and calls that the provider answered itself are counted, and stay as they are", async (context) => {
  const picture = { type: "image", source: { type: "data", value: "iVBORw0KGgo=", mimeType: "image/png" } };
  const hosted = { id: "h1", type: "function", function: { name: "web_search", arguments: "{}" }, metadata: { providerExecuted: true, anthropic: "found ".repeat(500) } };
  const messages = [
    { role: "user", content: [{ type: "text", content: "Look." }, picture] },
    { role: "assistant", content: "I look.", thinking: [{ content: "thought ".repeat(500), signature: "s" }], toolCalls: [hosted] },
    { role: "user", content: "And?" },
  ];
  const cc = compactor(context);
  let sent;
  const seen = { name: "seen", onConfig: (_, config) => void (sent = config) };
  const { adapter, middleware } = cc.with(anthropic);
  const answer = await chat({ adapter, middleware: [...middleware, seen], messages, threadId: "one", stream: false });
  assert.equal(answer, "Nothing.");
  assert.deepEqual(sent.providerMessages, messages);
  assert.ok(sent.providerMessages.every((message, at) => message === sent.messages[at]));
  const session = await cc.session("one");
  const { usedTokens, correction } = session.context.usage();
  assert.ok(usedTokens > 1_500, `${usedTokens} tokens`);
  assert.equal(correction.reported, 1_900);
});

const PICTURE = { type: "image", source: { type: "url", value: "https://example.com/a.png" } };

test("E18: a result of several parts is offloaded, and looks like one of the SDK", async (context) => {
  const parts = toolDefinition({ name: "read_file", description: "Reads a file", inputSchema: z.object({ nth: z.number() }) }).server(({ nth }) => [{ type: "text", content: fileText(nth) }, PICTURE]);
  const server = await provider(context);
  const sent = [];
  const seen = { name: "seen", onConfig: (_, { providerMessages }) => void sent.push(...(providerMessages ?? [])) };
  const warnings = [];
  const { adapter, middleware } = compactor(context, {}, warnings).with(adapterAt(server, "a", createOpenaiChat));
  assert.equal(await chat({ ...common, adapter, middleware: [...middleware, seen], tools: [parts], messages: user(TASK), stream: false }), DONE);
  // The server counts no pictures.
  for (const warning of warnings.splice(0)) assert.match(warning, /recordUsage: the counts are far below what was sent last/);
  const { calls, problems, refused } = server.figures("a");
  assert.deepEqual([calls, problems, refused], [61, [], 0]);
  const stubs = sent.filter(({ role, content }) => role === "tool" && /off_/.test(JSON.stringify(content)));
  assert.ok(stubs.length > 0);
  for (const { content: [text, picture, ...more] } of stubs) assert.deepEqual([text, picture, more], [{ type: "text", content: text.content }, PICTURE, []]);
});

test("E20: an abort of the app's call ends a summary that it waits for, and no commit", async (context) => {
  const server = await provider(context, { summaryMs: 5_000 });
  const cc = compactor(context, SUMMARIES);
  const abortController = new AbortController();
  let aborted;
  const seen = { name: "seen", onAbort: () => (aborted = true) };
  const { adapter, middleware } = cc.with(adapterAt(server));
  const ended = chunksOf({ adapter, middleware: [...middleware, seen], messages: user(TASK), threadId: "one", abortController });
  while (!server.requests.some(({ kind }) => kind === "summary")) await sleep(5);
  abortController.abort();
  const started = Date.now();
  await ended;
  assert.ok(Date.now() - started < 1_000);
  assert.equal(aborted, true);
  await sleep(50);
  assert.deepEqual([server.requests.at(-1).kind, server.requests.at(-1).isAborted], ["summary", true]);
  const session = await cc.session("one");
  assert.equal((await session.archive.verify()).ok, true);
  assert.equal((await logOf(session)).length, server.requests.at(-2).body.messages.length - 1 + 2);
});

test("E20: a slow summary is waited for, or written beside the agent's work, which one of 20 s does not hold up", async (context) => {
  for (const background of [false, true]) {
    const server = await provider(context, { summaryMs: 500 });
    assert.equal(await WAYS.stream({ ...compactor(context, { ...SUMMARIES, background }).with(adapterAt(server)), messages: user(TASK) }), DONE);
    holds(server.figures("a"));
  }
  const server = await provider(context, { summaryMs: 20_000, files: 22 });
  const started = Date.now();
  assert.equal(await WAYS.text({ ...compactor(context, { ...SUMMARIES, background: true }).with(adapterAt(server)), messages: user(TASK) }), DONE);
  const begun = server.requests.findIndex(({ kind }) => kind === "summary");
  assert.ok(begun > 0 && server.requests.length - begun > 2 && Date.now() - started < 15_000);
});

test("E20: nothing is buffered: the first piece is there while the model still speaks", async (context) => {
  const server = await provider(context, { files: 0, pauseMs: 30 });
  const times = [];
  for await (const { type } of chat({ ...common, ...compactor(context).with(adapterAt(server)), messages: user("Say it.") })) {
    if (type === "TEXT_MESSAGE_CONTENT") times.push(Date.now());
  }
  assert.ok(times.length > 3 && times.at(-1) - times[0] > 60);
});

test("E20: when the app leaves a stream, its conversation is free for the next run", async (context) => {
  const server = await provider(context);
  const cc = compactor(context, SUMMARIES);
  let messages = user(TASK);
  const seen = { name: "seen", onConfig: (_, config) => void (messages = config.messages) };
  const { adapter, middleware } = cc.with(adapterAt(server));
  let results = 0;
  for await (const { type } of chat({ ...common, adapter, middleware: [...middleware, seen], messages })) {
    if (type === "TOOL_CALL_RESULT" && ++results === 30) break;
  }
  assert.ok(messages.length > 50 && server.figures("a").summaries > 0);
  const before = server.requests.length;
  for await (const { type } of chat({ ...common, adapter, middleware, messages })) if (type === "TOOL_CALL_RESULT") break;
  // Another session would begin with a summary.
  assert.equal(server.requests[before].kind, "agent");
});

test("E20: an error of the model is the app's; of one that cannot be helped, ours is told as well", async (context) => {
  const server = await provider(context, { errorAt: 3 });
  for (const run of Object.values(WAYS)) {
    const key = run.name;
    await assert.rejects(run({ ...compactor(context).with(adapterAt(server, key)), messages: user(TASK) }), /temperature/);
    const warnings = [];
    const pinned = compactor(context, { pins: { match: () => true } }, warnings);
    await assert.rejects(run({ ...pinned.with(adapterAt(server, key)), messages: user("token ".repeat(20_000)) }), /maximum context length/);
    assert.equal(warnings.length, 2);
    for (const warning of warnings.splice(0)) assert.match(warning, /the request was sent as it was given/);
  }
});

test("E20: a failure of ours ends no call, unless it is to", async (context) => {
  const server = await provider(context, { files: 2 });
  const store = { ...memoryStore(), commit: () => Promise.reject(new Error("the disk is on fire")) };
  const warnings = [];
  const lenient = compactor(context, { store }, warnings);
  assert.equal(await WAYS.text({ ...lenient.with(adapterAt(server)), messages: user(TASK), threadId: "one" }), DONE);
  assert.match(warnings.splice(0)[0], /context-compactor\/tanstack-ai: the request was sent as it was given: .*disk is on fire/s);
  const strict = compactor(context, { store, strict: true }, warnings);
  await assert.rejects(WAYS.text({ ...strict.with(adapterAt(server, "b")), messages: user(TASK), threadId: "one" }), /disk is on fire/);
  assert.equal(server.requests.filter(({ key }) => key === "b").length, 0);
  warnings.length = 0;
  assert.throws(() => contextCompactor({ strict: 1 }), { code: "invalid_option" });
});
