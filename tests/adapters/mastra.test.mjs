/** `context-compactor/mastra` in Mastra 1 itself (E15, E20, E21). */

import { Agent } from "@mastra/core/agent";
import { MockMemory } from "@mastra/core/memory";
import { RequestContext } from "@mastra/core/request-context";
import { createTool } from "@mastra/core/tools";
import { createOpenAI } from "ai7-openai";
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { z } from "zod";
import { memoryStore, openSession } from "context-compactor";
import { ContextCompactor } from "context-compactor/mastra";
import { DONE, fileText, holds, logOf, OPTIONS, provider, SUMMARIES, TASK } from "../support/agents.mjs";

/** A processor whose warnings fail the test, unless they are taken from `warnings`. */
function compactor(context, options = {}, warnings = []) {
  const made = new ContextCompactor({ ...OPTIONS, logger: (level, message) => level === "warn" && warnings.push(message), ...options });
  context.after(async () => {
    await made.close();
    assert.deepEqual(warnings, []);
  });
  return made;
}

const inputSchema = z.object({ nth: z.number() });
const readFile = createTool({ id: "read_file", description: "Reads a file", inputSchema, execute: async ({ nth }) => fileText(nth) });

const modelAt = (server, key = "a", kind = "chat") => createOpenAI({ apiKey: key, baseURL: `${server.url}/v1` })[kind]("small");

function agentOf(model, processor, more = {}) {
  const processors = processor ? { inputProcessors: [processor], errorProcessors: [processor], maxProcessorRetries: 1 } : {};
  return new Agent({ id: "reader", name: "reader", instructions: "You read files.", model, tools: { read_file: readFile }, ...processors, ...more });
}

const common = { maxSteps: 100, modelSettings: { maxRetries: 0 } };

/** The ways to run an agent: each resolves to its last text. */
const WAYS = {
  generate: async (agent, messages, options) => (await agent.generate(messages, { ...common, ...options })).text,
  async stream(agent, messages, options) {
    const output = await agent.stream(messages, { ...common, ...options });
    let text = "";
    for await (const { type, payload } of output.fullStream) {
      if (type === "error") throw payload.error;
      if (type === "text-delta") text += payload.text;
    }
    return text;
  },
};

/** Roles of the log of a conversation of so many calls of one tool each. */
const rolesAfter = (calls) => ["user", ...Array.from({ length: calls }, () => ["assistant", "tool"]).flat()];

for (const [way, run] of Object.entries(WAYS)) {
  test(`E15, E21: ${way}: an agent dies without it, and ends its work with it`, async (context) => {
    const server = await provider(context);
    await assert.rejects(run(agentOf(modelAt(server, "without")), TASK), /maximum context length/);
    const died = server.figures("without");
    assert.ok(died.calls >= 20 && died.calls <= 27 && died.refused === 1, JSON.stringify(died));

    const cc = compactor(context, { thread: "one" });
    assert.equal(await run(agentOf(modelAt(server), cc), TASK), DONE);
    holds(server.figures("a"));
    assert.deepEqual((await logOf(await cc.session("one"))).map(({ role }) => role), rolesAfter(60));
  });

  test(`E15, E20: ${way}: only summaries make room, and the agent's own model writes them`, async (context) => {
    const server = await provider(context);
    assert.equal(await run(agentOf(modelAt(server), compactor(context, SUMMARIES)), TASK), DONE);
    holds(server.figures("a"));
    const summaries = server.requests.filter(({ kind }) => kind === "summary");
    assert.ok(summaries.length >= 1);
    for (const { body } of summaries) assert.deepEqual([body.model, body.tools], ["small", undefined]);
  });

  test(`E15, E20: ${way}: the provider says "too long" at call 30: one retry with less`, async (context) => {
    const server = await provider(context, { overflowAt: 30 });
    assert.equal(await run(agentOf(modelAt(server), compactor(context)), TASK), DONE);
    holds(server.figures("a"), { refusals: 1 });
    const [refused, again] = server.requests.filter(({ kind }) => kind === "agent").slice(29, 31);
    assert.ok(again.tokens < refused.tokens, `${again.tokens} after ${refused.tokens}`);
  });

  test(`E15, E21: ${way}: the agent's memory stays whole; parallel calls, and a restart in the middle`, async (context) => {
    const server = await provider(context, { parallel: 2, script: (nth) => (nth === 16 ? { text: "Shall I go on?", calls: [] } : undefined) });
    const [store, memory] = [memoryStore(), new MockMemory()];
    const options = { memory: { thread: "one", resource: "ada" } };
    const before = compactor(context, { store });
    assert.equal(await run(agentOf(modelAt(server), before, { memory }), TASK, options), "Shall I go on?");
    await before.close();
    const after = compactor(context, { store });
    assert.equal(await run(agentOf(modelAt(server), after, { memory }), "Go on.", options), DONE);
    holds(server.figures("a"), { total: 31 });
    const session = await after.session("one");
    const results = (await logOf(session)).flatMap(({ role, content }) => (role === "tool" ? content : []));
    assert.ok(results.length >= 58 && (await session.archive.verify()).ok, `${results.length} results`);
    const { messages } = await memory.recall({ threadId: "one", resourceId: "ada", perPage: false });
    const kept = messages.flatMap(({ content }) => content.parts).filter(({ type }) => type === "tool-invocation");
    // The two that the model did not come to are the only ones that are missing.
    assert.equal(kept.length, 58);
    for (const { toolInvocation: { args, result } } of kept) assert.equal(result, fileText(args.nth));
  });
}

test("E15: the Responses API", async (context) => {
  const server = await provider(context);
  assert.equal(await WAYS.generate(agentOf(modelAt(server, "a", "responses"), compactor(context)), TASK), DONE);
  holds(server.figures("a"));
});

test("E15: two conversations at once keep apart: by the memory's thread, by an option, by their messages", async (context) => {
  const server = await provider(context);
  const ways = {
    memory: [{}, (key) => ({ memory: { thread: key, resource: "ada" } }), () => ({ memory: new MockMemory() })],
    option: [{ thread: ({ requestContext }) => requestContext.get("chat") }, (key) => ({ requestContext: new RequestContext([["chat", key]]) }), () => ({})],
    nothing: [{}, () => ({}), () => ({})],
  };
  for (const [name, [options, given, more]] of Object.entries(ways)) {
    const cc = compactor(context, options);
    const keys = ["a", "b"].map((key) => `${name}${key}`);
    const texts = await Promise.all(keys.map((key) => WAYS.generate(agentOf(modelAt(server, key), cc, more(key)), TASK, given(key))));
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

test("E15: the recall tools are the agent's; they say what the engine's say, and can be left away", async (context) => {
  const search = (nth) => (nth === 61 ? { text: "", calls: [{ id: "r1", name: "recall_search", input: { query: "module3 part5" } }] } : undefined);
  const server = await provider(context, { script: search });
  const cc = compactor(context, { thread: () => "one" });
  const output = await agentOf(modelAt(server), cc).generate(TASK, common);
  assert.equal(output.text, DONE);
  const found = output.toolResults.find(({ payload }) => payload.toolCallId === "r1");
  assert.match(found.payload.result, /src\/module3\/part5\.ts/);
  const session = await openSession({ ...OPTIONS, format: "openai-chat" });
  const sent = server.requests[0].body.tools.filter(({ function: { name } }) => name.startsWith("recall_"));
  assert.deepEqual(sent.map(({ function: { description } }) => description), session.recall.tools().definitions.map(({ function: { description } }) => description));
  await WAYS.generate(agentOf(modelAt(server, "b"), compactor(context, { recall: { tools: false } })), "hi", { maxSteps: 1 });
  assert.deepEqual(server.requests.at(-1).body.tools.map(({ function: { name } }) => name), ["read_file"]);
});

test("E20: what the provider counted corrects the estimate; tools and system prompt are counted; the goal is sent", async (context) => {
  const server = await provider(context, { files: 3 });
  for (const run of Object.values(WAYS)) {
    const cc = compactor(context, { thread: "one", goal: { id: "g", description: "Find the error." } });
    await run(agentOf(modelAt(server), cc), TASK);
    const { correction, categories } = (await cc.session("one")).context.usage();
    assert.deepEqual([correction.reported, correction.model], [server.requests.at(-1).counted, "small"]);
    assert.ok(categories.filter(({ name, tokens }) => /system|tools/i.test(name) && tokens > 0).length >= 2);
    assert.match(server.requests.at(-1).body.messages[1].content, /Find the error/);
  }
});

test("E20: an abort of the app's call ends a summary that it waits for, and no commit", async (context) => {
  const server = await provider(context, { summaryMs: 5_000 });
  const cc = compactor(context, { ...SUMMARIES, thread: "one" });
  const control = new AbortController();
  const running = WAYS.generate(agentOf(modelAt(server), cc), TASK, { abortSignal: control.signal });
  const ended = running.then(() => undefined, () => undefined);
  while (!server.requests.some(({ kind }) => kind === "summary")) await sleep(5);
  control.abort();
  const started = Date.now();
  await ended;
  assert.ok(Date.now() - started < 1_000);
  await sleep(50);
  assert.equal(server.requests.at(-1).isAborted, true);
  const session = await cc.session("one");
  assert.equal((await session.archive.verify()).ok, true);
  assert.equal((await logOf(session)).length, server.requests.at(-2).body.messages.length - 1 + 2);
});

test("E20: a slow summary is waited for, or written beside the agent's work", async (context) => {
  for (const background of [false, true]) {
    const server = await provider(context, { summaryMs: 500 });
    assert.equal(await WAYS.stream(agentOf(modelAt(server), compactor(context, { ...SUMMARIES, background })), TASK), DONE);
    holds(server.figures("a"));
  }
});

test("E20: nothing is buffered: the first piece is there while the model still speaks", async (context) => {
  const server = await provider(context, { files: 0, pauseMs: 30 });
  const times = [];
  const { textStream } = await agentOf(modelAt(server), compactor(context)).stream("Say it.", common);
  for await (const _ of textStream) times.push(Date.now());
  assert.ok(times.length > 3 && times.at(-1) - times[0] > 60);
});

test("E20: an error of the model is the app's; one that cannot be helped has ours as its cause", async (context) => {
  const server = await provider(context, { errorAt: 3 });
  await assert.rejects(WAYS.generate(agentOf(modelAt(server), compactor(context)), TASK), { statusCode: 400, message: /temperature/ });
  const warnings = [];
  const pinned = compactor(context, { pins: { match: () => true } }, warnings);
  await assert.rejects(WAYS.generate(agentOf(modelAt(server), pinned), "token ".repeat(20_000)), (error) => {
    assert.match(error.message, /maximum context length/);
    assert.equal(error.cause.code, "context_overflow");
    return true;
  });
  assert.match(warnings.splice(0).join("\n"), /the request was sent as it was given/);
});

test("E20: a failure of ours ends no call, unless it is to", async (context) => {
  const server = await provider(context, { files: 2 });
  const store = { ...memoryStore(), commit: () => Promise.reject(new Error("the disk is on fire")) };
  const warnings = [];
  const lenient = compactor(context, { store, thread: "one" }, warnings);
  assert.equal(await WAYS.generate(agentOf(modelAt(server), lenient), TASK), DONE);
  assert.match(warnings.splice(0)[0], /context-compactor\/mastra: the request was sent as it was given: .*disk is on fire/s);
  const strict = compactor(context, { store, thread: "one", strict: true }, warnings);
  await assert.rejects(WAYS.generate(agentOf(modelAt(server, "b"), strict), TASK), /disk is on fire/);
  assert.equal(server.requests.filter(({ key }) => key === "b").length, 0);
  warnings.length = 0;
  assert.throws(() => new ContextCompactor({ strict: 1 }), { code: "invalid_option" });
});

test("E15, E21: Mastra 0.24, which calls processInput alone, is told what it needs", () => {
  const asked = { messages: [], abort: () => {}, tracingContext: {} };
  assert.throws(() => new ContextCompactor().processInput(asked), { code: "invalid_option", message: /needs Mastra 1; .* prepareStep of context-compactor\/ai-sdk/ });
});
