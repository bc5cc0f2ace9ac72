/** `context-compactor/ai-sdk` in the AI SDK itself, in both majors with `CC_MAJORS=all` (E12, E20, E21). */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "node:test";
import { deleteSession, memoryStore, openSession } from "context-compactor";
import { compose, contextCompactor } from "context-compactor/ai-sdk";
import { AI_SDKS } from "../support/ai-sdks.mjs";
import { DONE, fileText, holds, logOf, OPTIONS, provider, SUMMARIES, TASK, WINDOW } from "../support/agents.mjs";
import { majorsOf } from "../support/majors.mjs";

/** A compactor whose warnings fail the test, unless they are taken from `warnings`. */
function compactor(context, options = {}, warnings = []) {
  const cc = contextCompactor({ ...OPTIONS, logger: (level, message) => level === "warn" && warnings.push(message), ...options });
  context.after(async () => {
    await cc.close();
    assert.deepEqual(warnings, []);
  });
  return cc;
}

/** Roles of the log of a conversation of so many calls of one tool each. */
const rolesAfter = (calls) => ["user", ...Array.from({ length: calls }, () => ["assistant", "tool"]).flat()];

/** The text of a stream, whose errors are parts of it. */
async function streamed({ fullStream, text }) {
  for await (const part of fullStream) if (part.type === "error") throw part.error;
  return text;
}

const plain = (value) => JSON.parse(JSON.stringify(value));

for (const [major, { sdk, createOpenAI, createAnthropic, system, context: contextName }] of majorsOf(AI_SDKS)) {
  const { generateText, streamText, ToolLoopAgent, stepCountIs, isStepCount, tool, jsonSchema } = sdk;
  const upTo = isStepCount ?? stepCountIs;
  const inputSchema = jsonSchema({ type: "object", properties: { nth: { type: "integer" } }, required: ["nth"] });
  const readFile = tool({ description: "Reads a file", inputSchema, execute: async ({ nth }) => fileText(nth) });
  const tools = { read_file: readFile };

  const modelAt = (server, key = "a", kind = "chat") => createOpenAI({ apiKey: key, baseURL: `${server.url}/v1` })[kind]("small");
  const common = { tools, [system]: "You read files.", maxRetries: 0, stopWhen: upTo(100) };

  /** The ways to run an agent: each resolves to its last text. */
  const WAYS = {
    generateText: async (options) => (await generateText({ ...common, ...options })).text,
    streamText: (options) => streamed(streamText({ ...common, onError: () => {}, ...options })),
    "ToolLoopAgent.generate": async ({ prompt, ...options }) => (await new ToolLoopAgent({ ...common, ...options }).generate({ prompt })).text,
    "ToolLoopAgent.stream": async ({ prompt, ...options }) => streamed(await new ToolLoopAgent({ ...common, ...options }).stream({ prompt })),
  };

  describe(`AI SDK ${major}`, () => {
    for (const [way, run] of Object.entries(WAYS)) {
      test(`E12, E21: ${way}: an agent dies without it, and ends its work with prepareStep and with the middleware`, async (context) => {
        const server = await provider(context);
        await assert.rejects(run({ model: modelAt(server, "without"), prompt: TASK }));
        const died = server.figures("without");
        assert.ok(died.calls >= 20 && died.calls <= 26 && died.refused === 1, JSON.stringify(died));

        const cc = compactor(context, { thread: "one" });
        assert.equal(await run({ model: modelAt(server, "step"), prompt: TASK, prepareStep: cc.prepareStep }), DONE);
        holds(server.figures("step"));
        assert.deepEqual((await logOf(await cc.session("one"))).map(({ role }) => role), rolesAfter(60));

        const other = compactor(context, { thread: "one" });
        const model = sdk.wrapLanguageModel({ model: modelAt(server, "wrapped"), middleware: other.middleware });
        assert.equal(await run({ model, prompt: TASK }), DONE);
        holds(server.figures("wrapped"));
        assert.equal((await logOf(await other.session("one"))).length, 121);
      });

      test(`E12, E20: ${way}: only summaries make room, and the agent's own model writes them`, async (context) => {
        const server = await provider(context);
        const { prepareStep } = compactor(context, SUMMARIES);
        assert.equal(await run({ model: modelAt(server), prompt: TASK, prepareStep }), DONE);
        holds(server.figures("a"));
        const summaries = server.requests.filter(({ kind }) => kind === "summary");
        assert.ok(summaries.length >= 1);
        for (const { body } of summaries) assert.deepEqual([body.model, body.tools, body.stream], ["small", undefined, undefined]);
      });

      test(`E12, E20: ${way}: the provider says "too long" at call 30: one retry with less`, async (context) => {
        const server = await provider(context, { overflowAt: 30 });
        const { prepareStep } = compactor(context);
        assert.equal(await run({ model: modelAt(server), prompt: TASK, prepareStep }), DONE);
        holds(server.figures("a"), { refusals: 1 });
        const [refused, again] = server.requests.filter(({ kind }) => kind === "agent").slice(29, 31);
        assert.ok(again.tokens < refused.tokens, `${again.tokens} after ${refused.tokens}`);
      });
    }

    test("E12: Anthropic, whole and streamed, with its system prompt and its cache", async (context) => {
      const server = await provider(context);
      for (const [key, run] of Object.entries({ whole: WAYS.generateText, streamed: WAYS.streamText })) {
        const cc = compactor(context, { thread: "one" });
        const model = createAnthropic({ apiKey: key, baseURL: `${server.url}/v1` })("small");
        const cached = ({ messages }) => ({ messages: messages.map((message, at) => (at === messages.length - 1 ? { ...message, providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } } } : message)) });
        assert.equal(await run({ model, prompt: TASK, prepareStep: compose(cached, cc.prepareStep) }), DONE);
        holds(server.figures(key));
        assert.match(JSON.stringify(server.requests.at(-1).body), /cache_control/);
      }
    });

    test("E12: a model of the second version of the interface reports its usage", async (context) => {
      const cc = compactor(context, { thread: "one" });
      const answer = { content: [{ type: "text", text: "hi" }], finishReason: "stop", usage: { inputTokens: 40, outputTokens: 2, totalTokens: 42, cachedInputTokens: 5 }, warnings: [] };
      const { model } = await cc.prepareStep({ model: { specificationVersion: "v2", modelId: "old", doGenerate: async () => answer } });
      await model.doGenerate({ prompt: [{ role: "user", content: [{ type: "text", text: "Say hi to all of us, as friendly as you can." }] }] });
      const { correction } = (await cc.session("one")).context.usage();
      assert.deepEqual([correction.reported, correction.model], [40, "old"]);
    });

    test("E12, E20: Responses says \"too long\" in its stream: one retry with less", async (context) => {
      const server = await provider(context, { files: 6, overflowAt: 4, inStream: true });
      const { prepareStep } = compactor(context);
      assert.equal(await WAYS.streamText({ model: modelAt(server, "a", "responses"), prompt: TASK, prepareStep }), DONE);
      holds(server.figures("a"), { total: 7, refusals: 1 });
    });

    test("E12: Responses, parallel calls, a restart in the middle with the stored session", async (context) => {
      const server = await provider(context, { parallel: 2 });
      const store = memoryStore();
      const options = { model: modelAt(server, "a", "responses"), tools, maxRetries: 0 };
      const before = compactor(context, { store, thread: "one" });
      const half = await generateText({ ...options, prompt: TASK, stopWhen: upTo(15), prepareStep: before.prepareStep });
      await before.close();
      const messages = plain([{ role: "user", content: TASK }, ...(half.responseMessages ?? half.response.messages)]);
      const after = compactor(context, { store, thread: "one" });
      const { text } = await generateText({ ...options, messages, stopWhen: upTo(100), prepareStep: after.prepareStep });
      assert.equal(text, DONE);
      holds(server.figures("a"), { total: 31 });
      const session = await after.session("one");
      assert.deepEqual((await logOf(session)).map(({ role }) => role), rolesAfter(30));
      assert.equal((await session.archive.verify()).ok, true);
    });

    test("E12: DirectChatTransport: four turns with JSON between, one session, the messages of the UI whole", async (context) => {
      const server = await provider(context, { files: 60, script: (nth) => (nth % 16 === 0 ? { text: "Shall I go on?", calls: [] } : undefined) });
      const cc = compactor(context, { thread: "chat" });
      const agent = new ToolLoopAgent({ ...common, model: modelAt(server), tools: { ...tools, ...cc.tools }, prepareStep: cc.prepareStep });
      const transport = new sdk.DirectChatTransport({ agent });
      let messages = [];
      for (const text of [TASK, "Go on.", "Go on.", "Go on."]) {
        messages.push({ id: `u${messages.length}`, role: "user", parts: [{ type: "text", text }] });
        const stream = await transport.sendMessages({ chatId: "chat", messages, trigger: "submit-message", abortSignal: undefined });
        let last;
        for await (const message of sdk.readUIMessageStream({ stream })) last = message;
        messages = plain([...messages, last]);
      }
      const { calls, largest, problems } = server.figures("a");
      assert.deepEqual([calls >= 60, problems, largest <= WINDOW], [true, [], true]);
      const log = await logOf(await cc.session("chat"));
      assert.equal(log.filter(({ role }) => role === "user").length, 4);
      assert.equal(log.filter(({ role }) => role === "tool").length, calls - 4);
      assert.equal(messages.length, 8);
    });

    test("E12: two conversations at once keep apart: by the context, by the provider's options, by their messages", async (context) => {
      const server = await provider(context);
      const ways = {
        context: (id) => ({ [contextName]: { threadId: id } }),
        options: (id) => ({ providerOptions: { contextCompactor: { threadId: id } } }),
        nothing: () => ({}),
      };
      for (const [name, way] of Object.entries(ways)) {
        const cc = compactor(context);
        const keys = ["a", "b"].map((key) => `${name}${key}`);
        const run = (key) => generateText({ ...common, ...way(key), model: modelAt(server, key), prompt: TASK, prepareStep: cc.prepareStep });
        for (const { text } of await Promise.all(keys.map(run))) assert.equal(text, DONE);
        for (const key of keys) {
          holds(server.figures(key));
          if (name === "nothing") continue;
          const log = await logOf(await cc.session(key));
          assert.equal(log.length, 121, name);
          assert.ok(JSON.stringify(log).includes(`call_${key}_0`));
        }
      }
    });

    test("E12: regenerate and edit go on in the same session", async (context) => {
      const server = await provider(context, { files: 4 });
      const cc = compactor(context, { thread: "one" });
      const run = (messages) => generateText({ ...common, model: modelAt(server), messages, prepareStep: cc.prepareStep });
      const first = [{ role: "user", content: TASK }];
      const { response, responseMessages = response.messages } = await run(first);
      const whole = [...first, ...responseMessages];
      assert.equal((await run(plain(whole.slice(0, -1)))).text, DONE);
      await run([{ role: "user", content: "Read no file." }]);
      assert.deepEqual(server.requests.at(-1).body.messages.map(({ content }) => content), ["You read files.", "Read no file."]);
    });

    test("E12: a session that the app closed or deleted is opened again, also by two calls at once", async (context) => {
      const server = await provider(context, { files: 0 });
      const store = memoryStore();
      const warnings = [];
      const cc = compactor(context, { store, thread: "one" }, warnings);
      const ask = (content) => generateText({ ...common, model: modelAt(server), prompt: content, prepareStep: cc.prepareStep });
      await ask("The password is swordfish.");
      await (await cc.session("one")).close();
      await ask("The password is swordfish.");
      assert.equal((await logOf(await cc.session("one"))).length, 1);
      const gone = (await cc.session("one")).close({ delete: true });
      await Promise.all([gone, ask("Hello."), ask("Hello.")]);
      assert.deepEqual((await logOf(await cc.session("one"))).map(({ content }) => content[0].text), ["Hello."]);
      await deleteSession("one", { store });
      await ask("Good morning.");
      assert.deepEqual((await logOf(await cc.session("one"))).map(({ content }) => content[0].text), ["Good morning."]);
      assert.match(warnings.splice(0).join(), /^what was learned from reported usage is not stored: the session was deleted elsewhere$/);
    });

    test("E12: the recall tools read what left the context, in the conversation that calls them", async (context) => {
      const ask = (nth) => (nth === 62 ? { text: "", calls: [{ id: "r1", name: "recall_search", input: { query: "module3 part5" } }] } : undefined);
      const server = await provider(context, { script: ask });
      const cc = compactor(context);
      const options = { ...common, tools: { ...tools, ...cc.tools }, prepareStep: cc.prepareStep };
      const run = (key, messages) => generateText({ ...options, model: modelAt(server, key), messages, [contextName]: { threadId: key } });
      const first = [{ role: "user", content: TASK }];
      const { response, responseMessages = response.messages } = await run("a", first);
      await run("b", [{ role: "user", content: "Another one." }]);
      const { steps, text } = await run("a", [...first, ...responseMessages, { role: "user", content: "What was in module 3?" }]);
      assert.equal(text, DONE);
      assert.match(steps[0].toolResults[0].output, /src\/module3\/part5\.ts/);
      assert.ok((await cc.session("a")).context.usage().offloadCount > 0);
    });

    test("E12: the recall tools say what the engine's say, and can be left away", async (context) => {
      const cc = compactor(context);
      for (const [more, count] of [[{}, 2], [{ handoff: {} }, 3], [{ recall: { scope: "all" } }, 2]]) {
        const session = await openSession({ ...OPTIONS, ...more, format: "ai-sdk" });
        const definitions = await Promise.all(
          Object.entries(compactor(context, more).tools).map(async ([name, { description, inputSchema }]) => ({ type: "function", name, description, inputSchema: plain(await sdk.asSchema(inputSchema).jsonSchema) })),
        );
        assert.equal(definitions.length, count);
        assert.deepEqual(definitions, session.recall.tools().definitions);
      }
      assert.deepEqual(compactor(context, { recall: { tools: false } }).tools, {});
      assert.deepEqual(compactor(context, { recall: false }).tools, {});
      assert.equal(await cc.tools.recall_search.execute({ query: "x" }, { toolCallId: "c" }), "Nothing of this conversation was moved out of your context.");
    });

    test("E12: an approval of a tool call between two turns", async (context) => {
      const server = await provider(context, { files: 2, tool: "delete_file" });
      const deleteFile = tool({ description: "Deletes a file", inputSchema, needsApproval: true, execute: async ({ nth }) => `file ${nth} is gone` });
      const cc = compactor(context, { thread: "one" });
      const options = { ...common, tools: { delete_file: deleteFile, ...cc.tools }, model: modelAt(server), prepareStep: cc.prepareStep };
      let messages = [{ role: "user", content: "Delete the files 0 and 1." }];
      for (let turn = 0; turn < 2; turn++) {
        const { content, response, responseMessages = response.messages } = await generateText({ ...options, messages });
        const { approvalId } = content.find(({ type }) => type === "tool-approval-request");
        const approval = { role: "tool", content: [{ type: "tool-approval-response", approvalId, approved: turn === 0 }] };
        messages = plain([...messages, ...responseMessages, approval]);
      }
      const { text } = await generateText({ ...options, messages });
      assert.equal(text, DONE);
      assert.deepEqual(server.figures("a"), { ...server.figures("a"), calls: 3, refused: 0, problems: [] });
    });

    test("E20: what the provider counted corrects the estimate; tools and system prompt are counted; the goal is sent", async (context) => {
      const server = await provider(context, { files: 3 });
      for (const run of [WAYS.generateText, WAYS.streamText]) {
        const cc = compactor(context, { thread: "one", goal: { id: "g", description: "Find the error." } });
        await run({ model: modelAt(server), prompt: TASK, prepareStep: cc.prepareStep });
        await sleep(5);
        const { correction, categories } = (await cc.session("one")).context.usage();
        assert.deepEqual([correction.reported, correction.model], [server.requests.at(-1).counted, "small"]);
        assert.ok(categories.filter(({ name, tokens }) => /system|tools/i.test(name) && tokens > 0).length >= 1);
        assert.match(server.requests.at(-1).body.messages[1].content, /Find the error/);
      }
    });

    test("E12: a data-compaction part is written for each compaction", async (context) => {
      const server = await provider(context);
      const cc = compactor(context, { ...SUMMARIES, summarize: { targetTokens: 400 } });
      const stream = sdk.createUIMessageStream({
        execute({ writer }) {
          const { prepareStep } = cc.with({ thread: "chat", writer });
          writer.merge(streamText({ ...common, model: modelAt(server), prompt: TASK, prepareStep }).toUIMessageStream());
        },
      });
      const parts = [];
      for await (const part of stream) if (part.type === "data-compaction") parts.push(part);
      assert.ok(parts.length >= 1 && parts.length <= 6, `${parts.length} parts`);
      for (const { id, data } of parts) {
        assert.ok(id);
        assert.deepEqual(data.edits, ["summarize"]);
        assert.ok(data.freedTokens > 1_000 && data.usedTokens < data.maxTokens);
        assert.match(data.summary, /File 9 mentions an error/);
      }
      assert.equal((await logOf(await cc.session("chat"))).length, 121);
    });

    test("E12: compose: another prepareStep sees the step, changes it, and compaction is around the model that it chose", async (context) => {
      const server = await provider(context);
      const seen = [];
      const theirs = ({ stepNumber, messages }) => {
        seen.push(messages.length);
        return stepNumber >= 10 ? { model: modelAt(server, "second"), toolChoice: "auto" } : {};
      };
      const cc = compactor(context, { thread: "one" });
      for (const steps of [[cc.prepareStep, theirs], [theirs, cc.prepareStep]]) {
        const result = await compose(...steps)({ stepNumber: 10, messages: [], model: modelAt(server) });
        assert.equal(result.toolChoice, "auto");
      }
      assert.equal(await WAYS.generateText({ model: modelAt(server, "first"), prompt: TASK, prepareStep: compose(cc.prepareStep, theirs) }), DONE);
      const [first, second] = [server.figures("first"), server.figures("second")];
      assert.deepEqual([first.calls, second.calls, second.refused], [10, 61, 0]);
      assert.ok(second.largest <= WINDOW);
      assert.equal((await logOf(await cc.session("one"))).length, 1 + 2 * 70);
    });

    test("E12: a model by its name: the default provider's, and without one the messages are compacted", async (context) => {
      const server = await provider(context);
      globalThis.AI_SDK_DEFAULT_PROVIDER = { languageModel: () => modelAt(server), specificationVersion: major === "6" ? "v3" : "v4" };
      context.after(() => delete globalThis.AI_SDK_DEFAULT_PROVIDER);
      const cc = compactor(context);
      assert.equal(await WAYS.generateText({ model: "small", prompt: TASK, prepareStep: cc.prepareStep }), DONE);
      holds(server.figures("a"));
      const messages = [{ role: "user", content: "hi" }];
      delete globalThis.AI_SDK_DEFAULT_PROVIDER;
      const { messages: fitting } = await compactor(context).prepareStep({ model: "gateway/model", messages, stepNumber: 0, steps: [] });
      assert.deepEqual(fitting, messages);
    });

    test("E3, E12: the messages alone are compacted where the SDK looks the model up, whether it carries them on or not", async (context) => {
      const server = await provider(context);
      const cc = compactor(context, { thread: "one" });
      const named = (step) => cc.prepareStep({ ...step, model: "gateway/model" });
      assert.equal(await WAYS.generateText({ model: modelAt(server), prompt: TASK, prepareStep: named }), DONE);
      holds(server.figures("a"));
      assert.deepEqual((await logOf(await cc.session("one"))).map(({ role }) => role), rolesAfter(60));
    });

    test("E20: nothing is buffered: the first piece is there while the model still speaks", async (context) => {
      const server = await provider(context, { files: 0, pauseMs: 30 });
      const { prepareStep } = compactor(context);
      const started = Date.now();
      const times = [];
      for await (const _ of streamText({ ...common, model: modelAt(server), prompt: "Say it.", prepareStep }).textStream) times.push(Date.now() - started);
      assert.ok(times.length > 3 && times.at(-1) - times[0] > 60, times.join(" "));
    });

    test("E20: an abort ends the stream, and the session goes on", async (context) => {
      const server = await provider(context, { files: 0, pauseMs: 20 });
      const cc = compactor(context, { thread: "one" });
      const control = new AbortController();
      const options = { ...common, model: modelAt(server), prompt: "Say it.", prepareStep: cc.prepareStep, onError: () => {} };
      for await (const _ of streamText({ ...options, abortSignal: control.signal }).textStream) control.abort();
      await sleep(100);
      assert.equal(server.requests[0].isAborted, true);
      assert.equal((await generateText(options)).text, DONE);
      assert.equal((await logOf(await cc.session("one"))).length, 1);
    });

    test("E20: an abort of the app's call ends a summary that it waits for, and no commit", async (context) => {
      const server = await provider(context, { summaryMs: 5_000 });
      const cc = compactor(context, { ...SUMMARIES, thread: "one" });
      const control = new AbortController();
      const running = WAYS.generateText({ model: modelAt(server), prompt: TASK, prepareStep: cc.prepareStep, abortSignal: control.signal });
      while (!server.requests.some(({ kind }) => kind === "summary")) await sleep(5);
      control.abort();
      const started = Date.now();
      await assert.rejects(running, { name: "AbortError" });
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
        const { prepareStep } = compactor(context, { ...SUMMARIES, background });
        assert.equal(await WAYS.generateText({ model: modelAt(server), prompt: TASK, prepareStep }), DONE);
        holds(server.figures("a"));
      }
    });

    test("E20: an error of the model is the app's; one that cannot be helped has ours as its cause", async (context) => {
      const server = await provider(context, { errorAt: 3 });
      const run = (cc, messages) => generateText({ ...common, model: modelAt(server), messages, prepareStep: cc.prepareStep });
      await assert.rejects(run(compactor(context), [{ role: "user", content: TASK }]), { statusCode: 400, message: /temperature/ });
      const warnings = [];
      const pinned = compactor(context, { pins: { match: () => true } }, warnings);
      await assert.rejects(run(pinned, [{ role: "user", content: "token ".repeat(20_000) }]), (error) => {
        assert.equal(error.statusCode, 400);
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
      assert.equal(await WAYS.generateText({ model: modelAt(server), prompt: TASK, prepareStep: lenient.prepareStep }), DONE);
      assert.match(warnings.splice(0)[0], /context-compactor\/ai-sdk: the request was sent as it was given: .*disk is on fire/s);
      const strict = compactor(context, { store, thread: "one", strict: true }, warnings);
      await assert.rejects(WAYS.generateText({ model: modelAt(server, "b"), prompt: TASK, prepareStep: strict.prepareStep }), /disk is on fire/);
      assert.equal(server.requests.filter(({ key }) => key === "b").length, 0);
      warnings.length = 0;
    });
  });
}

test("E12: a later word of the system goes to the model as it was, a text", async (context) => {
  const user = (text) => ({ role: "user", content: [{ type: "text", text }] });
  const prompt = [{ role: "system", content: "You read files." }, user("hi"), { role: "system", content: "Be brief." }, user("go on")];
  const echo = { modelId: "gpt-5", doGenerate: async ({ prompt }) => ({ content: prompt }) };
  const { model } = await compactor(context, { strict: true }).prepareStep({ model: echo });
  assert.deepEqual((await model.doGenerate({ prompt })).content, prompt);
});
