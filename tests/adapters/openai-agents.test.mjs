/** `context-compactor/openai-agents` in the OpenAI Agents SDK itself (E14, E20, E21). */

import { Agent, MemorySession, OpenAIProvider, Runner, tool } from "@openai/agents";
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { memoryStore, openSession } from "context-compactor";
import { CompactingSession, contextCompactor } from "context-compactor/openai-agents";
import { DONE, fileText, holds, logOf, OPTIONS, provider, SUMMARIES, TASK } from "../support/agents.mjs";

/** A compactor whose warnings fail the test, unless they are taken from `warnings`. */
function compactor(context, options = {}, warnings = []) {
  const made = contextCompactor({ ...OPTIONS, logger: (level, message) => level === "warn" && warnings.push(message), ...options });
  context.after(async () => {
    await made.close();
    assert.deepEqual(warnings, []);
  });
  return made;
}

const parameters = { type: "object", properties: { nth: { type: "integer" } }, required: ["nth"], additionalProperties: false };
const readFile = tool({ name: "read_file", description: "Reads a file", parameters, strict: false, execute: ({ nth }) => fileText(nth) });

const providerAt = (server, key = "a", useResponses = true) => new OpenAIProvider({ apiKey: key, baseURL: `${server.url}/v1`, useResponses });
const plainRunner = (models, more = {}) => new Runner({ tracingDisabled: true, modelProvider: models, ...more });
const agentOf = (compaction, more = {}) => new Agent({ name: "reader", instructions: "You read files.", model: "small", tools: [readFile, ...(compaction?.tools ?? [])], ...more });

/** The compactor as a filter alone, which has the agent's model if that is an object; and with the provider of models. */
const WIRINGS = {
  async filter(compaction, models, more) {
    return [plainRunner(models, { callModelInputFilter: compaction }), agentOf(compaction, { model: await models.getModel("small"), ...more })];
  },
  async provider(compaction, models, more) {
    return [plainRunner(compaction.modelProvider(models), { callModelInputFilter: compaction }), agentOf(compaction, more)];
  },
};

/** The ways to run an agent: each resolves to its last text. */
const WAYS = {
  run: async (runner, agent, input, options) => (await runner.run(agent, input, { maxTurns: 100, ...options })).finalOutput,
  async stream(runner, agent, input, options) {
    const result = await runner.run(agent, input, { maxTurns: 100, ...options, stream: true });
    for await (const _ of result);
    await result.completed;
    return result.finalOutput;
  },
};

/** Types of the items of a conversation of so many calls of one tool each. */
const typesAfter = (calls) => ["message", ...Array.from({ length: calls }, () => ["function_call", "function_call_result"]).flat()];

/** What a session of the SDK must have after the task: every item as it was. */
async function isWhole(session, calls = 60) {
  const items = await session.getItems();
  assert.deepEqual(items.map(({ type }) => type), [...typesAfter(calls), "message"]);
  assert.equal(items[0].content, TASK);
  const results = items.filter(({ type }) => type === "function_call_result");
  assert.deepEqual(results.map(({ output }) => output.text ?? output), Array.from({ length: calls }, (_, nth) => fileText(nth)));
}

for (const [way, run] of Object.entries(WAYS)) {
  test(`E14, E21: ${way}: without it an agent dies`, async (context) => {
    const server = await provider(context);
    await assert.rejects(run(plainRunner(providerAt(server)), agentOf(), TASK), /maximum context length/);
    const died = server.figures("a");
    assert.ok(died.calls >= 20 && died.calls <= 27 && died.refused === 1, JSON.stringify(died));
  });

  for (const [wiring, wire] of Object.entries(WIRINGS)) {
    for (const [name, useResponses] of [["Responses", true], ["Chat Completions", false]]) {
      test(`E14, E21: ${way}, ${wiring}, ${name}: an agent ends its work, and its session is whole`, async (context) => {
        const server = await provider(context);
        const compaction = compactor(context);
        const [runner, agent] = await wire(compaction, providerAt(server, "a", useResponses));
        const inner = new MemorySession({ sessionId: "one" });
        assert.equal(await run(runner, agent, TASK, { session: new CompactingSession(inner) }), DONE);
        holds(server.figures("a"));
        await isWhole(inner);
        assert.deepEqual((await logOf(await compaction.session("one"))).map(({ type }) => type), typesAfter(60));
      });
    }

    test(`E14, E20: ${way}, ${wiring}: only summaries make room, and the agent's own model writes them; any session is whole`, async (context) => {
      const server = await provider(context);
      const [runner, agent] = await wire(compactor(context, SUMMARIES), providerAt(server));
      const session = new MemorySession();
      assert.equal(await run(runner, agent, TASK, { session }), DONE);
      holds(server.figures("a"));
      const summaries = server.requests.filter(({ kind }) => kind === "summary");
      assert.ok(summaries.length >= 1);
      for (const { body } of summaries) assert.deepEqual([body.model, body.tools?.length ?? 0, body.tool_choice], ["small", 0, undefined]);
      await isWhole(session);
    });

    test(`E14, E21: ${way}, ${wiring}: parallel calls, and a restart in the middle with both sessions stored`, async (context) => {
      const server = await provider(context, { parallel: 2, script: (nth) => (nth === 16 ? { text: "Shall I go on?", calls: [] } : undefined) });
      const [store, inner] = [memoryStore(), new MemorySession({ sessionId: "one" })];
      const before = compactor(context, { store });
      const turn = async (compaction, text) => run(...(await wire(compaction, providerAt(server))), text, { session: new CompactingSession(inner) });
      assert.equal(await turn(before, TASK), "Shall I go on?");
      await before.close();
      const after = compactor(context, { store });
      assert.equal(await turn(after, "Go on."), DONE);
      holds(server.figures("a"), { total: 31 });
      const session = await after.session("one");
      const results = (log, type) => log.filter((item) => item.type === type).length;
      assert.equal(results(await inner.getItems(), "function_call_result"), 58);
      assert.equal(results(await logOf(session), "function_call_result"), 58);
      assert.equal((await session.archive.verify()).ok, true);
    });
  }

  test(`E14, E20: ${way}: the provider says "too long" at call 30: one retry with less`, async (context) => {
    for (const inStream of way === "stream" ? [false, true] : [false]) {
      const server = await provider(context, { overflowAt: 30, inStream });
      const compaction = compactor(context);
      const [runner, agent] = await WIRINGS.provider(compaction, providerAt(server));
      const session = new MemorySession();
      assert.equal(await run(runner, agent, TASK, { session }), DONE);
      holds(server.figures("a"), { refusals: 1 });
      const [refused, again] = server.requests.filter(({ kind }) => kind === "agent").slice(29, 31);
      assert.ok(again.tokens < refused.tokens, `${again.tokens} after ${refused.tokens}`);
      await isWhole(session);
    }
  });
}

test("E14: a model that is an object, wrapped", async (context) => {
  const server = await provider(context);
  const compaction = compactor(context, { ...SUMMARIES, thread: "one" });
  const runner = plainRunner(providerAt(server, "other"), { callModelInputFilter: compaction });
  assert.equal(await WAYS.run(runner, agentOf(compaction, { model: compaction.model(await providerAt(server).getModel("small")) }), TASK), DONE);
  holds(server.figures("a"));
  assert.deepEqual((await logOf(await compaction.session("one"))).map(({ type }) => type), typesAfter(60));
});

test("E14: with the models alone, no conversation has the name that the option gives, and the app is told what to do", async (context) => {
  const server = await provider(context, { files: 3 });
  const warnings = [];
  const compaction = compactor(context, { thread: "one" }, warnings);
  assert.equal(await WAYS.run(plainRunner(compaction.modelProvider(providerAt(server))), agentOf(compaction), TASK), DONE);
  assert.match(warnings.splice(0).join("\n"), /^context-compactor\/openai-agents: the conversation has no name: give the runner callModelInputFilter: compactor, too[^\n]*$/);
});

test("E14: as a filter alone, without an object to ask: the app's summaries, or a warning that says what to do", async (context) => {
  const server = await provider(context, { files: 30 });
  const turn = (compaction, key) => WAYS.run(plainRunner(providerAt(server, key), { callModelInputFilter: compaction }), agentOf(compaction), TASK);
  const asked = [];
  const summarize = ({ system }) => (asked.push(system), "## Goal\nThe files 0 to 59 are read one by one, and file 9 mentions an error. The next one was about to be read.");
  assert.equal(await turn(compactor(context, { ...SUMMARIES, summarize }), "a"), DONE);
  assert.ok(asked.length >= 1);
  assert.equal(server.figures("a").summaries, 0);
  const warnings = [];
  assert.equal(await turn(compactor(context, { ...SUMMARIES, summarize: { fallback: "extractive" } }, warnings), "b"), DONE);
  assert.match(warnings.splice(0).join("\n"), /no model writes summaries: the agent has its model by name: give summarize, or the runner modelProvider: compactor\.modelProvider\(provider\)/);
});

test("E14: two conversations at once keep apart: by their sessions, by an option, by their messages", async (context) => {
  const server = await provider(context);
  const ways = {
    session: [{}, (key) => ({ session: new CompactingSession(new MemorySession({ sessionId: key })) })],
    option: [{ thread: ({ context: { chat } }) => chat }, (key) => ({ context: { chat: key } })],
    nothing: [{}, () => ({})],
  };
  for (const [wiring, wire] of Object.entries(WIRINGS)) {
    for (const [name, [options, given]] of Object.entries(ways)) {
      const compaction = compactor(context, options);
      const keys = ["a", "b"].map((key) => `${wiring}${name}${key}`);
      const turns = keys.map(async (key) => WAYS.run(...(await wire(compaction, providerAt(server, key))), TASK, given(key)));
      assert.deepEqual(await Promise.all(turns), [DONE, DONE]);
      for (const key of keys) {
        holds(server.figures(key));
        if (name === "nothing") continue;
        const log = await logOf(await compaction.session(key));
        assert.equal(log.length, 121, name);
        assert.ok(JSON.stringify(log).includes(`call_${key}_0`));
      }
    }
  }
});

test("E14: sessions that share one context have no name, and the app is told what to do", async (context) => {
  const server = await provider(context, { files: 3 });
  const told = context.mock.method(console, "warn", () => undefined);
  const compaction = compactor(context);
  const [runner, agent] = await WIRINGS.provider(compaction, providerAt(server));
  const shared = {};
  for (const sessionId of ["one", "two"]) {
    const session = new CompactingSession(new MemorySession({ sessionId }));
    assert.equal(await WAYS.run(runner, agent, TASK, { session, context: shared }), DONE);
  }
  assert.equal((await logOf(await compaction.session("one"))).length, 7);
  assert.equal((await logOf(await compaction.session("two"))).length, 0);
  assert.match(told.mock.calls[0].arguments.join(" "), /several sessions had one context object.*`context: \{ \.\.\.context \}`/);
});

test("E14: an agent that is another one's tool has a session of its own; one that takes over goes on with the same", async (context) => {
  const ways = Object.values(WIRINGS).flatMap((wire) => [[wire, true], [wire, false]]);
  for (const [wire, isFiltered] of ways) {
    const server = await provider(context, { files: 3, tool: "ask_helper" });
    const inner = await provider(context, { files: 3 });
    const compaction = compactor(context);
    const helper = agentOf(compaction, { name: "helper", model: compaction.model(await providerAt(inner).getModel("small")) });
    // The same question: what is said does not tell them apart. The runner of a tool has a filter only if it is given one.
    const runConfig = isFiltered ? { callModelInputFilter: compaction } : {};
    const askHelper = helper.asTool({ toolName: "ask_helper", toolDescription: "Asks", parameters, inputBuilder: () => TASK, runConfig });
    const [runner, agent] = await wire(compaction, providerAt(server), { name: "asker", tools: [askHelper] });
    const session = new CompactingSession(new MemorySession({ sessionId: "one" }));
    assert.equal(await WAYS.run(runner, agent, TASK, { session }), DONE);
    assert.equal(inner.figures("a").calls, 6);
    const log = await logOf(await compaction.session("one"));
    assert.deepEqual(log.map(({ type }) => type), typesAfter(3));
    assert.deepEqual([...new Set(log.flatMap(({ name }) => name ?? []))], ["ask_helper"]);
  }
  const server = await provider(context, { files: 3, script: (nth) => (nth === 1 ? { calls: [{ id: "h", name: "transfer_to_reader", input: {} }] } : undefined) });
  const compaction = compactor(context);
  const [runner, reader] = await WIRINGS.provider(compaction, providerAt(server));
  const first = agentOf(compaction, { name: "first", tools: [], handoffs: [reader] });
  assert.equal(await WAYS.run(runner, first, TASK, { session: new CompactingSession(new MemorySession({ sessionId: "one" })) }), DONE);
  const log = await logOf(await compaction.session("one"));
  assert.deepEqual(log.flatMap(({ name }) => name ?? []).slice(0, 2), ["transfer_to_reader", "transfer_to_reader"]);
  assert.ok(log.length > 5);
  // What the agent can do is counted, and where it can go.
  const { categories } = (await compaction.session("one")).context.usage();
  assert.ok(categories.some(({ name, tokens }) => /tools/i.test(name) && tokens > 0));
});

test("E14: the recall tools answer from the right conversation, say what the engine's say, and can be left away", async (context) => {
  const search = (nth) => (nth === 61 ? { text: "", calls: [{ id: "r1", name: "recall_search", input: { query: "module3 part5" } }] } : undefined);
  for (const wire of Object.values(WIRINGS)) {
    const server = await provider(context, { script: search });
    const compaction = compactor(context);
    const [runner, agent] = await wire(compaction, providerAt(server));
    const session = new CompactingSession(new MemorySession({ sessionId: "one" }));
    // Another conversation is the last one before the tool is called.
    const other = await provider(context, { files: 0 });
    const [second, helper] = await wire(compaction, providerAt(other));
    agent.on("agent_tool_start", (_, { name }) => name === "recall_search" && server.waiting.push(name));
    server.waiting = [];
    await WAYS.run(second, helper, "Another one.");
    assert.equal(await WAYS.run(runner, agent, TASK, { session }), DONE);
    assert.deepEqual(server.waiting, ["recall_search"]);
    const found = (await session.getItems()).find(({ type, callId }) => type === "function_call_result" && callId === "r1");
    assert.match(JSON.stringify(found.output), /src\/module3\/part5\.ts/);
    const engine = await openSession({ ...OPTIONS, format: "openai-responses" });
    const sent = server.requests[0].body.tools.filter(({ name }) => name.startsWith("recall_"));
    assert.deepEqual(sent, engine.recall.tools().definitions);
  }
  for (const recall of [{ tools: false }, false]) assert.deepEqual(compactor(context, { recall }).tools, []);
  const [{ invoke }] = compactor(context).tools;
  assert.match(await invoke({ context: {} }, "no JSON", { toolCall: { callId: "c" } }), /Nothing of this conversation/);
});

test("E14: as a filter alone, conversations that share a context do not read each other", async (context) => {
  const server = await provider(context, { files: 0 });
  const compaction = compactor(context, { thread: ({ agent: { name } }) => name });
  const shared = {};
  const turn = async (name, context) => {
    const [runner, agent] = await WIRINGS.filter(compaction, providerAt(server), { name });
    return WAYS.run(runner, agent, `The secret of ${name} is ${name}42.`, { context });
  };
  for (const name of ["ada", "bob", "cy"]) await turn(name, shared);
  for (const context of [null, "a text"]) assert.equal(await turn("dan", context), DONE);
  const [, search] = compaction.tools;
  const answer = await search.invoke({ context: shared }, '{"query":"secret"}', { toolCall: { callId: "c" } });
  assert.match(answer, /several conversations have this context/);
});

test("E20: what the provider counted corrects the estimate; tools and system prompt are counted; the goal is sent", async (context) => {
  for (const [way, run] of Object.entries(WAYS)) {
    for (const [wiring, wire] of Object.entries(WIRINGS)) {
      const server = await provider(context, { files: 3 });
      const compaction = compactor(context, { thread: "one", goal: { id: "g", description: "Find the error." } });
      await run(...(await wire(compaction, providerAt(server))), TASK);
      const { correction, categories } = (await compaction.session("one")).context.usage();
      if (wiring === "provider") assert.deepEqual([correction.reported, correction.model], [server.requests.at(-1).counted, "small"], way);
      assert.ok(categories.filter(({ name, tokens }) => /system|tools/i.test(name) && tokens > 0).length >= 2);
      assert.match(server.requests.at(-1).body.instructions, /^You read files\.\n\n.*Find the error/s);
    }
  }
});

test("E14: what the provider itself remembers passes as it is", async (context) => {
  const server = await provider(context, { files: 1 });
  const compaction = compactor(context, { thread: "one" });
  const [runner, agent] = await WIRINGS.provider(compaction, providerAt(server));
  await WAYS.run(runner, agent, TASK, { conversationId: "conv_1" }).catch(() => undefined);
  assert.deepEqual(server.requests.map(({ body: { conversation } }) => conversation), ["conv_1", "conv_1"]);
  assert.deepEqual(server.requests[1].body.input.map(({ type }) => type), ["function_call_output"]);
  assert.equal((await logOf(await compaction.session("one"))).length, 0);
});

test("E10, E14: items of every kind pass; those that are edited keep their form, and the session has what the app gave", async (context) => {
  const png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const forms = [
    (text) => text,
    (text) => ({ type: "text", text }),
    (text) => [{ type: "input_text", text }, { type: "input_image", image: png }],
  ];
  const read = (nth) => [
    { type: "function_call", callId: `c${nth}`, name: "read_file", arguments: JSON.stringify({ nth }), status: "completed" },
    { type: "function_call_result", callId: `c${nth}`, name: "read_file", status: "completed", output: forms[nth % 3](fileText(nth)) },
  ];
  const others = [
    { type: "compaction", encrypted_content: "opaque", id: "cmp_1" },
    { role: "user", content: [{ type: "input_text", text: "Look." }, { type: "input_image", image: png }, { type: "input_file", file: { id: "file_1" } }] },
    { type: "reasoning", id: "rs_1", content: [{ type: "input_text", text: "I look." }], providerData: { encrypted_content: "opaque" } },
    { type: "hosted_tool_call", id: "ws_1", name: "web_search_call", status: "completed", providerData: { type: "web_search_call", action: { type: "search", query: "x" } } },
    { type: "shell_call", callId: "s", status: "completed", action: { commands: ["ls"] } },
    { type: "shell_call_output", callId: "s", output: [{ stdout: fileText(90), stderr: "", outcome: { type: "exit", exitCode: 0 } }] },
    { type: "apply_patch_call", callId: "p", status: "completed", operation: { type: "delete_file", path: "a" } },
    { type: "apply_patch_call_output", callId: "p", status: "completed", output: "done" },
    { type: "computer_call", callId: "u", id: "cu_1", status: "completed", action: { type: "screenshot" } },
    { type: "computer_call_result", callId: "u", output: { type: "computer_screenshot", data: png } },
    { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "I read." }] },
  ];
  const input = [...others, ...Array.from({ length: 30 }, (_, nth) => read(nth)).flat(), { role: "user", content: "And now?" }];
  for (const [wiring, wire] of Object.entries(WIRINGS)) {
    const server = await provider(context, { files: 0 });
    const compaction = compactor(context);
    const inner = new MemorySession({ sessionId: "one" });
    assert.equal(await WAYS.run(...(await wire(compaction, providerAt(server))), input, { session: new CompactingSession(inner) }), DONE);
    assert.deepEqual(server.figures("a").problems, []);
    const sent = server.requests[0].body.input;
    const kinds = ["compaction", "reasoning", "web_search_call", "shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output", "computer_call", "computer_call_output"];
    for (const kind of kinds) assert.ok(sent.some(({ type }) => type === kind), `${wiring}: ${kind}`);
    const outputs = sent.filter(({ type }) => type === "function_call_output").map(({ output }) => output);
    const stubs = outputs.filter((output) => /off_/.test(JSON.stringify(output)));
    assert.ok(outputs.length === 30 && stubs.length > 10);
    for (const stub of stubs) if (Array.isArray(stub)) assert.equal(stub.at(-1).type, stub.length > 1 ? "input_image" : "input_text");
    assert.ok(stubs.some(Array.isArray) && stubs.some((stub) => typeof stub === "string"));
    const [, ...kept] = (await inner.getItems()).reverse();
    assert.deepEqual(kept.reverse(), input, wiring);
  }
});

test("E20: an abort of the app's call ends a summary that it waits for, and no commit", async (context) => {
  for (const [way, run] of Object.entries(WAYS)) {
    const server = await provider(context, { summaryMs: 5_000 });
    const compaction = compactor(context, { ...SUMMARIES, thread: "one" });
    const control = new AbortController();
    const running = run(...(await WIRINGS.provider(compaction, providerAt(server))), TASK, { signal: control.signal });
    const ended = running.catch(() => undefined);
    while (!server.requests.some(({ kind }) => kind === "summary")) await sleep(5);
    control.abort();
    const started = Date.now();
    await ended;
    assert.ok(Date.now() - started < 1_000, way);
    await sleep(50);
    assert.equal(server.requests.at(-1).isAborted, true);
    const session = await compaction.session("one");
    assert.equal((await session.archive.verify()).ok, true);
    assert.equal((await logOf(session)).length, server.requests.at(-2).body.input.length + 2);
  }
});

test("E20: a slow summary is waited for, or written beside the agent's work, which it then does not hold up", async (context) => {
  const cases = [
    [{ summaryMs: 500 }, { background: false }, 61],
    // There is room for all the files beside it.
    [{ summaryMs: 20_000, files: 15 }, { background: true, compactAt: { fraction: 0.3 } }, 16],
  ];
  for (const [served, options, total] of cases) {
    for (const wire of Object.values(WIRINGS)) {
      const server = await provider(context, served);
      const started = Date.now();
      assert.equal(await WAYS.stream(...(await wire(compactor(context, { ...SUMMARIES, ...options }), providerAt(server))), TASK), DONE);
      holds(server.figures("a"), { total });
      assert.ok(server.figures("a").summaries >= 1);
      if (options.background) assert.ok(Date.now() - started < 10_000);
    }
  }
});

test("E20: nothing is buffered: the first piece is there while the model still speaks", async (context) => {
  const server = await provider(context, { files: 0, pauseMs: 30 });
  const [runner, agent] = await WIRINGS.provider(compactor(context), providerAt(server));
  const times = [];
  const result = await runner.run(agent, "Say it.", { stream: true });
  for await (const { type, data } of result) if (type === "raw_model_stream_event" && data.type === "output_text_delta") times.push(Date.now());
  assert.ok(times.length > 3 && times.at(-1) - times[0] > 60, String(times));
});

test("E20: an error of the model is the app's; one that cannot be helped has ours as its cause", async (context) => {
  const server = await provider(context, { errorAt: 3 });
  const turn = async (compaction, text) => WAYS.run(...(await WIRINGS.provider(compaction, providerAt(server))), text);
  await assert.rejects(turn(compactor(context), TASK), { status: 400, message: /temperature/ });
  const warnings = [];
  await assert.rejects(turn(compactor(context, { pins: { match: () => true } }, warnings), "token ".repeat(20_000)), (error) => {
    assert.match(error.message, /maximum context length/);
    assert.equal(error.cause.code, "context_overflow");
    return true;
  });
  assert.match(warnings.splice(0).join("\n"), /the request was sent as it was given/);
});

test("E20: a failure of ours ends no call, unless it is to", async (context) => {
  for (const [key, wire] of Object.entries(WIRINGS)) {
    const server = await provider(context, { files: 2 });
    const store = { ...memoryStore(), commit: () => Promise.reject(new Error("the disk is on fire")) };
    const warnings = [];
    const turn = async (compaction) => WAYS.run(...(await wire(compaction, providerAt(server, key))), TASK);
    assert.equal(await turn(compactor(context, { store, thread: "one" }, warnings)), DONE);
    assert.match(warnings.splice(0)[0], /context-compactor\/openai-agents: the request was sent as it was given: .*disk is on fire/s);
    const { calls } = server.figures(key);
    await assert.rejects(turn(compactor(context, { store, thread: "one", strict: true }, warnings)), /disk is on fire/);
    assert.equal(server.figures(key).calls, calls);
    warnings.length = 0;
  }
  assert.throws(() => contextCompactor({ strict: 1 }), { code: "invalid_option" });
});
