/** `context-compactor/langchain` in LangChain 1 itself (E13, E20, E21). */

import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { AIMessage, createAgent, createMiddleware, HumanMessage, SystemMessage, tool, ToolMessage } from "langchain";
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { memoryStore, openSession } from "context-compactor";
import { compactionMiddleware } from "context-compactor/langchain";
import { DONE, fileText, holds, logOf, OPTIONS, provider, SUMMARIES, TASK } from "../support/agents.mjs";

/** A middleware whose warnings fail the test, unless they are taken from `warnings`. */
function middleware(context, options = {}, warnings = []) {
  const made = compactionMiddleware({ ...OPTIONS, logger: (level, message) => level === "warn" && warnings.push(message), ...options });
  context.after(async () => {
    await made.close();
    assert.deepEqual(warnings, []);
  });
  return made;
}

const schema = { type: "object", properties: { nth: { type: "integer" } }, required: ["nth"] };
const readFile = tool(({ nth }) => fileText(nth), { name: "read_file", description: "Reads a file", schema });

const modelAt = (server, key = "a", more = {}) =>
  new ChatOpenAI({ model: "small", apiKey: key, maxRetries: 0, configuration: { baseURL: `${server.url}/v1` }, ...more });

const agentOf = (model, middleware, more = {}) => createAgent({ model, tools: [readFile], systemPrompt: "You read files.", middleware, ...more });

const inThread = (id, more) => ({ recursionLimit: 500, configurable: { thread_id: id }, ...more });

/** The ways to run an agent: each resolves to the messages of its state. */
const WAYS = {
  invoke: async (agent, messages, config) => (await agent.invoke({ messages }, config)).messages,
  async stream(agent, messages, config) {
    let last;
    for await (const [mode, data] of await agent.stream({ messages }, { ...config, streamMode: ["values", "messages"] })) {
      if (mode === "values") last = data.messages;
    }
    return last;
  },
};

/** Types of the log of a conversation of so many calls of one tool each. */
const typesAfter = (calls) => ["human", ...Array.from({ length: calls }, () => ["ai", "tool"]).flat(), "ai"];

const ask = (text = TASK) => [new HumanMessage(text)];

for (const [way, run] of Object.entries(WAYS)) {
  test(`E13, E21: ${way}: an agent dies without it, and ends its work with it, its state whole`, async (context) => {
    const server = await provider(context);
    await assert.rejects(run(agentOf(modelAt(server, "without"), []), ask(), inThread("one")), { name: "ContextOverflowError" });
    const died = server.figures("without");
    assert.ok(died.calls >= 20 && died.calls <= 27 && died.refused === 1, JSON.stringify(died));

    const compaction = middleware(context);
    const messages = await run(agentOf(modelAt(server), [compaction]), ask(), inThread("one"));
    assert.equal(messages.at(-1).text, DONE);
    holds(server.figures("a"));
    assert.equal(messages.length, 122);
    const results = messages.filter(ToolMessage.isInstance);
    assert.deepEqual(results.map(({ text }) => text), Array.from({ length: 60 }, (_, nth) => fileText(nth)));
    assert.deepEqual((await logOf(await compaction.session("one"))).map(({ type }) => type), typesAfter(60).slice(0, -1));
  });

  test(`E13, E20: ${way}: only summaries make room; the agent's own model writes them, and the app does not see them`, async (context) => {
    const server = await provider(context);
    const seen = [];
    const spy = createMiddleware({
      name: "Spy",
      wrapModelCall: (request, handler) => {
        seen.push(request.messages);
        return handler(request);
      },
    });
    const agent = agentOf(modelAt(server), [middleware(context, SUMMARIES), spy]);
    const messages = await run(agent, ask(), inThread("one"));
    assert.equal(messages.at(-1).text, DONE);
    holds(server.figures("a"));
    const summaries = server.requests.filter(({ kind }) => kind === "summary");
    assert.ok(summaries.length >= 1);
    for (const { body } of summaries) assert.deepEqual([body.model, body.tools], ["small", undefined]);
    const ours = seen.at(-1).filter(({ additional_kwargs: { lc_source } }) => lc_source === "summarization");
    assert.equal(ours.length, 1);
    assert.ok(HumanMessage.isInstance(ours[0]));
    // All others are the very objects of the state.
    for (const message of seen.at(-1)) assert.ok(messages.includes(message) || ours.includes(message));
  });

  test(`E13, E20: ${way}: the provider says "too long" at call 30: one retry with less`, async (context) => {
    const server = await provider(context, { overflowAt: 30 });
    const messages = await run(agentOf(modelAt(server), [middleware(context)]), ask(), inThread("one"));
    assert.equal(messages.at(-1).text, DONE);
    holds(server.figures("a"), { refusals: 1 });
    const [refused, again] = server.requests.filter(({ kind }) => kind === "agent").slice(29, 31);
    assert.ok(again.tokens < refused.tokens, `${again.tokens} after ${refused.tokens}`);
  });

  test(`E13, E21: ${way}: parallel calls, and a restart in the middle with a checkpointer and the stored session`, async (context) => {
    const server = await provider(context, { parallel: 2, script: (nth) => (nth === 16 ? { text: "Shall I go on?", calls: [] } : undefined) });
    const [store, checkpointer] = [memoryStore(), new MemorySaver()];
    const before = middleware(context, { store });
    await run(agentOf(modelAt(server), [before], { checkpointer }), ask(), inThread("one"));
    await before.close();
    const after = middleware(context, { store });
    const messages = await run(agentOf(modelAt(server), [after], { checkpointer }), ask("Go on."), inThread("one"));
    assert.equal(messages.at(-1).text, DONE);
    holds(server.figures("a"), { total: 31 });
    const session = await after.session("one");
    assert.equal((await logOf(session)).length, messages.length - 1);
    assert.equal((await session.archive.verify()).ok, true);
  });
}

test("E13: the Responses API", async (context) => {
  const server = await provider(context);
  const model = modelAt(server, "a", { useResponsesApi: true });
  const messages = await WAYS.invoke(agentOf(model, [middleware(context)]), ask(), inThread("one"));
  assert.equal(messages.at(-1).text, DONE);
  holds(server.figures("a"));
});

test("E13: two conversations at once keep apart: by their thread_id, by an option, by their messages", async (context) => {
  const server = await provider(context);
  const ways = {
    id: [{}, (key) => inThread(key)],
    option: [{ thread: ({ runtime }) => runtime.context.chat }, (key) => ({ recursionLimit: 500, context: { chat: key } })],
    nothing: [{}, () => ({ recursionLimit: 500 })],
  };
  for (const [name, [options, config]] of Object.entries(ways)) {
    const compaction = middleware(context, options);
    const keys = ["a", "b"].map((key) => `${name}${key}`);
    await Promise.all(keys.map((key) => WAYS.invoke(agentOf(modelAt(server, key), [compaction]), ask(), config(key))));
    for (const key of keys) {
      holds(server.figures(key));
      if (name === "nothing") continue;
      const log = await logOf(await compaction.session(key));
      assert.equal(log.length, 121, name);
      assert.ok(JSON.stringify(log).includes(`call_${key}_0`));
    }
  }
});

test("E13: an agent that another one calls has a session of its own", async (context) => {
  const server = await provider(context, { files: 3, tool: "ask_helper" });
  const inner = await provider(context, { files: 3 });
  const compaction = middleware(context);
  const helper = agentOf(modelAt(inner, "inner"), [compaction]);
  const askHelper = tool(async () => (await helper.invoke({ messages: ask("Read 3 files.") })).messages.at(-1).text, { name: "ask_helper", description: "Asks", schema });
  const agent = createAgent({ model: modelAt(server), tools: [askHelper], middleware: [compaction] });
  const messages = await WAYS.invoke(agent, ask(), inThread("one"));
  assert.equal(messages.at(-1).text, DONE);
  const log = await logOf(await compaction.session("one"));
  assert.deepEqual(log.map(({ type }) => type), typesAfter(3).slice(0, -1));
});

test("E13: the recall tools are the agent's; they say what the engine's say, and can be left away", async (context) => {
  const search = (nth) => (nth === 62 ? { text: "", calls: [{ id: "r1", name: "recall_search", input: { query: "module3 part5" } }] } : undefined);
  const server = await provider(context, { script: search });
  const compaction = middleware(context);
  const agent = agentOf(modelAt(server), [compaction]);
  const before = await WAYS.invoke(agent, ask(), inThread("one"));
  await WAYS.invoke(agentOf(modelAt(server, "b"), [compaction]), ask("Another one."), inThread("two"));
  const after = await WAYS.invoke(agent, [...before, ...ask("What was in module 3?")], inThread("one"));
  const found = after.find((message) => message.tool_call_id === "r1");
  assert.match(found.text, /src\/module3\/part5\.ts/);
  assert.equal(after.at(-1).text, DONE);
  const session = await openSession({ ...OPTIONS, format: "openai-chat" });
  const sent = server.requests[0].body.tools.filter(({ function: { name } }) => name.startsWith("recall_"));
  assert.deepEqual(sent, session.recall.tools().definitions);
  assert.deepEqual(middleware(context, { recall: { tools: false } }).tools, []);
  assert.deepEqual(middleware(context, { recall: false }).tools, []);
});

test("E20: what the provider counted corrects the estimate; tools and system prompt are counted; the goal is sent", async (context) => {
  const server = await provider(context, { files: 3 });
  for (const systemPrompt of ["You read files.", new SystemMessage({ content: [{ type: "text", text: "You read files." }] })]) {
    const compaction = middleware(context, { goal: { id: "g", description: "Find the error." } });
    await WAYS.invoke(agentOf(modelAt(server), [compaction], { systemPrompt }), ask(), inThread("one"));
    const { correction, categories } = (await compaction.session("one")).context.usage();
    assert.deepEqual([correction.reported, correction.model], [server.requests.at(-1).counted, "small"]);
    assert.ok(categories.filter(({ name, tokens }) => /system|tools/i.test(name) && tokens > 0).length >= 2);
    const [{ content }] = server.requests.at(-1).body.messages;
    assert.match(JSON.stringify(content), /You read files\..*Find the error/);
  }
});

test("E10, E13: messages of every kind are read, and those that are edited keep what is theirs", async (context) => {
  const server = await provider(context, { files: 0 });
  const compaction = middleware(context, { ...OPTIONS, thread: "one" });
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const call = (nth, more) => new AIMessage({ content: [], tool_calls: [{ id: "c", name: "read_file", args: { nth } }], ...more });
  const messages = [
    new SystemMessage("Be brief."),
    new HumanMessage({ content: [{ type: "text", text: "Look." }, { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }], name: "ada" }),
    // The same id in each turn.
    ...Array.from({ length: 30 }, (_, nth) => [
      call(nth, { content: [{ type: "text", text: "I read." }] }),
      new ToolMessage({ tool_call_id: "c", content: fileText(nth), artifact: { nth }, name: "read_file" }),
    ]).flat(),
    new HumanMessage("And now?"),
  ];
  const seen = [];
  const spy = createMiddleware({ name: "Spy", wrapModelCall: (request, handler) => (seen.push(request.messages), handler(request)) });
  await WAYS.invoke(agentOf(modelAt(server), [compaction, spy]), messages, inThread("one"));
  const [sent] = seen;
  const stubs = sent.filter((message) => message.type === "tool" && !messages.some(({ content }) => content === message.content));
  assert.ok(stubs.length > 5);
  for (const { artifact, name, id, content } of stubs) {
    assert.deepEqual([name, typeof id, typeof artifact.nth], ["read_file", "string", "number"]);
    assert.match(content, /off_/);
  }
  const nths = sent.filter(({ type }) => type === "tool").map(({ artifact }) => artifact.nth);
  assert.deepEqual(nths, [...nths].sort((a, b) => a - b));
  assert.deepEqual(server.figures("a").problems, []);
});

test("E20: an abort of the app's call ends a summary that it waits for, and no commit", async (context) => {
  const server = await provider(context, { summaryMs: 5_000 });
  const compaction = middleware(context, SUMMARIES);
  const control = new AbortController();
  const running = WAYS.invoke(agentOf(modelAt(server), [compaction]), ask(), inThread("one", { signal: control.signal }));
  running.catch(() => undefined);
  while (!server.requests.some(({ kind }) => kind === "summary")) await sleep(5);
  control.abort();
  const started = Date.now();
  await assert.rejects(running, /abort/i);
  assert.ok(Date.now() - started < 1_000);
  await sleep(50);
  assert.equal(server.requests.at(-1).isAborted, true);
  const session = await compaction.session("one");
  assert.equal((await session.archive.verify()).ok, true);
  assert.equal((await logOf(session)).length, server.requests.at(-2).body.messages.length - 1 + 2);
});

test("E20: a slow summary is waited for, or written beside the agent's work", async (context) => {
  for (const background of [false, true]) {
    const server = await provider(context, { summaryMs: 500 });
    const messages = await WAYS.stream(agentOf(modelAt(server), [middleware(context, { ...SUMMARIES, background })]), ask(), inThread("one"));
    assert.equal(messages.at(-1).text, DONE);
    holds(server.figures("a"));
  }
});

test("E20: what the model says comes piece by piece, and no summary is among it; those that enter the state are marked", async (context) => {
  for (const persisted of [{}, { store: memoryStore(), persist: true }]) {
    const server = await provider(context, { pauseMs: 5 });
    const agent = agentOf(modelAt(server), [middleware(context, { ...SUMMARIES, ...persisted })]);
    const [pieces, times, others] = [[], [], []];
    for await (const [message] of await agent.stream({ messages: ask() }, inThread("one", { streamMode: "messages" }))) {
      if (HumanMessage.isInstance(message)) others.push(message.additional_kwargs.lc_source);
      if (!AIMessage.isInstance(message) || !message.text) continue;
      pieces.push(message.text);
      times.push(Date.now());
    }
    const { summaries } = server.figures("a");
    assert.ok(summaries >= 1);
    assert.equal(pieces.join(""), DONE);
    assert.ok(times.at(-1) - times[0] > 10 && pieces.length > 3);
    assert.deepEqual(others, persisted.persist ? Array(summaries).fill("summarization") : []);
  }
});

test("E20: an error of the model is the app's; one that cannot be helped has ours as its cause", async (context) => {
  const server = await provider(context, { errorAt: 3 });
  const run = (compaction, messages) => WAYS.invoke(agentOf(modelAt(server), [compaction]), messages, inThread("one"));
  await assert.rejects(run(middleware(context), ask()), ({ message, cause }) => {
    assert.match(message, /temperature/);
    assert.equal(cause.status, 400);
    return true;
  });
  const warnings = [];
  const pinned = middleware(context, { pins: { match: () => true } }, warnings);
  await assert.rejects(run(pinned, ask("token ".repeat(20_000))), ({ message, cause }) => {
    assert.match(message, /maximum context length/);
    assert.equal(cause.name, "ContextOverflowError");
    while (cause.cause) cause = cause.cause;
    assert.equal(cause.code, "context_overflow");
    return true;
  });
  assert.match(warnings.splice(0).join("\n"), /the request was sent as it was given/);
});

test("E20: a failure of ours ends no call, unless it is to", async (context) => {
  const server = await provider(context, { files: 2 });
  const store = { ...memoryStore(), commit: () => Promise.reject(new Error("the disk is on fire")) };
  const warnings = [];
  const lenient = middleware(context, { store }, warnings);
  const messages = await WAYS.invoke(agentOf(modelAt(server), [lenient]), ask(), inThread("one"));
  assert.equal(messages.at(-1).text, DONE);
  assert.match(warnings.splice(0)[0], /context-compactor\/langchain: the request was sent as it was given: .*disk is on fire/s);
  const strict = middleware(context, { store, strict: true }, warnings);
  await assert.rejects(WAYS.invoke(agentOf(modelAt(server, "b"), [strict]), ask(), inThread("one")), /disk is on fire/);
  assert.equal(server.requests.filter(({ key }) => key === "b").length, 0);
  warnings.length = 0;
  assert.throws(() => compactionMiddleware({ strict: 1 }), { code: "invalid_option" });
});

for (const [way, run] of Object.entries(WAYS)) {
  for (const [name, more] of Object.entries({ "old results leave": {}, "summaries alone": SUMMARIES })) {
    test(`E13: ${way}, persist, ${name}: over the runs of a thread the checkpointer has the short form, and the session all`, async (context) => {
      const search = { text: "", calls: [{ id: "r1", name: "recall_search", input: { query: "module3 part5" } }] };
      const script = (nth) => (nth === 31 ? { text: "Shall I go on?", calls: [] } : nth === 62 ? search : undefined);
      const server = await provider(context, { script });
      const [store, checkpointer] = [memoryStore(), new MemorySaver()];
      const options = { ...more, store, persist: true };
      const config = { configurable: { thread_id: "one", checkpoint_ns: "" } };
      const stored = async () => (await checkpointer.getTuple(config)).checkpoint.channel_values.messages;
      const turn = async (text) => {
        // What a process knows ends with it.
        const compaction = middleware(context, options);
        const messages = await run(agentOf(modelAt(server), [compaction], { checkpointer }), ask(text), inThread("one"));
        const log = await logOf(await compaction.session("one"));
        assert.equal((await (await compaction.session("one")).archive.verify()).ok, true);
        await compaction.close();
        return { messages, log };
      };

      await turn(TASK);
      const half = await stored();
      assert.ok(JSON.stringify(half).length / 4 < 16_000, "the checkpoint is as long as the history");
      const { messages } = await turn("Go on.");
      assert.equal(messages.at(-1).text, DONE);
      holds(server.figures("a"));
      for (const state of [half, await stored()]) {
        const ours = state.filter(({ additional_kwargs: { lc_source } }) => lc_source === "summarization");
        assert.equal(ours.length, more === SUMMARIES ? 1 : 0);
        for (const message of ours) assert.ok(HumanMessage.isInstance(message) && message.id);
        const shortened = state.filter(({ type, text }) => type === "tool" && text.includes("off_"));
        assert.equal(shortened.length > 10, more !== SUMMARIES);
      }

      const last = await turn("What was in module 3?");
      assert.match(last.messages.find((message) => message.tool_call_id === "r1").text, /src\/module3\/part5\.ts/);
      const { log } = last;
      assert.deepEqual(log.filter(({ type }) => type === "human").map(({ content }) => content), [TASK, "Go on.", "What was in module 3?"]);
      // The model was not asked for file 30.
      const files = Array.from({ length: 60 }, (_, nth) => nth).filter((nth) => nth !== 30);
      assert.deepEqual(log.filter(({ type }) => type === "tool").slice(0, 59).map(({ content }) => content), files.map(fileText));
      assert.equal(log.length, 3 + 2 * 59 + 2 + 2);
      assert.doesNotMatch(JSON.stringify(log), /Compressed History/);
    });
  }
}

test("E13: persist leaves a state whole of which another middleware left something out", async (context) => {
  const server = await provider(context, { files: 30 });
  const without = ([first, ...rest]) => [first, ...(rest.length > 6 ? rest.slice(2) : rest)];
  const trim = createMiddleware({ name: "Trim", wrapModelCall: (request, handler) => handler({ ...request, messages: without(request.messages) }) });
  for (const [key, others, isWhole] of [["a", [trim], true], ["b", [], false]]) {
    const compaction = middleware(context, { store: memoryStore(), persist: true });
    const messages = await WAYS.invoke(agentOf(modelAt(server, key), [...others, compaction]), ask(), inThread("one"));
    assert.equal(messages.at(-1).text, DONE);
    const results = messages.filter(ToolMessage.isInstance).map(({ text }) => text);
    assert.equal(results.length === 30 && results.every((text, nth) => text === fileText(nth)), isWhole, key);
  }
});

test("E13: persist is refused where what leaves the state would be lost", async (context) => {
  const server = await provider(context, { files: 1 });
  const refused = { code: "invalid_option", message: /persist/ };
  for (const wrong of [{}, { store: "memory" }]) assert.throws(() => compactionMiddleware({ ...wrong, persist: true }), refused);
  assert.throws(() => compactionMiddleware({ store: memoryStore(), persist: "yes" }), refused);
  assert.equal(middleware(context, { store: memoryStore() }).afterModel, undefined);
  const compaction = middleware(context, { store: memoryStore(), persist: true });
  await assert.rejects(WAYS.invoke(agentOf(modelAt(server), [compaction]), ask()), /persist: needs the name of the conversation: configurable\.thread_id/);
  assert.equal(server.requests.length, 0);
});
