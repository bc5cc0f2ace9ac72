/** `context-compactor/summarizers`: the real clients, and the shapes of platforms that do not run here (E19). */

import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI as openai6 } from "ai6-openai";
import { createOpenAI as openai7 } from "ai7-openai";
import OpenAI from "openai";
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { CompactionError, openSession } from "context-compactor";
import { aiSdk, anthropic, chrome, openaiCompatible, workersAi } from "context-compactor/summarizers";
import { OPTIONS, serveAgent } from "../support/agents.mjs";

const REQUEST = { system: "Summarize.", messages: [{ role: "user", content: "<conversation>…</conversation>" }], maxTokens: 500 };
const context = (signal = new AbortController().signal) => ({ signal, attempt: 1, purpose: "history" });

/** The summarizers of real clients, at an address. */
const CLIENTS = {
  openaiCompatible: (url) => openaiCompatible(new OpenAI({ apiKey: "a", baseURL: `${url}/v1`, maxRetries: 0 }), "small"),
  anthropic: (url) => anthropic(new Anthropic({ apiKey: "a", baseURL: url, maxRetries: 0 }), "small"),
  "aiSdk, 6": (url) => aiSdk(openai6({ apiKey: "a", baseURL: `${url}/v1` }).chat("small")),
  "aiSdk, 7": (url) => aiSdk(openai7({ apiKey: "a", baseURL: `${url}/v1` }).responses("small")),
};

const failed = (message) => (error) => CompactionError.isInstance(error) && error.code === "summary_failed" && message.test(error.message);

for (const [name, at] of Object.entries(CLIENTS)) {
  test(`E19: ${name}: one request with the limit and no tools, answered with text and usage`, async (t) => {
    const server = await serveAgent();
    t.after(() => server.close());
    const { text, usage } = await at(server.url)(REQUEST, context());
    assert.match(text, /^## Goal/);
    const [{ body, counted }] = server.requests;
    assert.equal(body.tools, undefined);
    assert.equal(body.max_tokens ?? body.max_output_tokens, 500);
    assert.ok(JSON.stringify(body).includes("Summarize."));
    // The usage is one that a session counts.
    const session = await openSession({ ...OPTIONS, background: false, summarize: () => ({ text, usage }) });
    for (let nth = 0; nth < 40; nth++) await session.append({ role: nth % 2 ? "assistant" : "user", content: `${nth} in src/a${nth}.ts `.repeat(40) });
    const result = await session.compact();
    assert.deepEqual([result.usage?.inputTokens, result.usage?.outputTokens], [counted, 20]);
  });

  test(`E19: ${name}: the signal ends the request`, async (t) => {
    const server = await serveAgent({ summaryMs: 5_000 });
    t.after(() => server.close());
    const control = new AbortController();
    const running = at(server.url)(REQUEST, context(control.signal));
    setTimeout(() => control.abort(), 50);
    await assert.rejects(running, /abort/i);
    await sleep(50);
    assert.equal(server.requests[0].isAborted, true);
  });

  test(`E19: ${name}: the client's error stays what it is`, async (t) => {
    const server = createServer((_, response) => response.writeHead(429, { "content-type": "application/json" }).end('{"error":{"message":"slow down"}}'));
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    await assert.rejects(at(`http://127.0.0.1:${server.address().port}`)(REQUEST, context()), (error) => (error.status ?? error.statusCode) === 429);
  });
}

test("E19: the limit of an answer has the name that the endpoint knows", async () => {
  const bodies = [];
  const create = async (body) => (bodies.push(body), { choices: [{ message: { content: "text" } }] });
  for (const baseURL of ["https://api.openai.com/v1", "http://localhost:11434/v1", "https://api.openai.com.evil.test/v1", undefined]) {
    await openaiCompatible({ baseURL, chat: { completions: { create } } }, "m")(REQUEST, context());
  }
  assert.deepEqual(bodies.map(({ max_tokens: old }) => old), [undefined, 500, 500, 500]);
  assert.equal(bodies[0].max_completion_tokens, 500);
});

test("E19: an answer that was cut, was refused, or has no text is no summary", async () => {
  const chat = (choice) => openaiCompatible({ chat: { completions: { create: async () => ({ choices: [choice] }) } } }, "m");
  const messages = (answer) => anthropic({ messages: { create: async () => answer } }, "m");
  const model = (answer) => aiSdk({ modelId: "m", doGenerate: async () => answer });
  const text = [{ type: "text", text: "half" }];
  for (const [summarize, message] of [
    [chat({ finish_reason: "length", message: { content: "half" } }), /cut/],
    [chat({ message: { content: null, refusal: "no" } }), /refused: no/],
    [chat({ message: { content: "I call", tool_calls: [{}] } }), /no text/],
    [chat(undefined), /no text/],
    [messages({ content: text, stop_reason: "max_tokens" }), /cut/],
    [messages({ content: [], stop_reason: "refusal" }), /refused/],
    [messages({ content: [...text, { type: "tool_use" }], stop_reason: "tool_use" }), /no text/],
    [model({ content: text, finishReason: "length" }), /cut/],
    [model({ content: text, finishReason: { unified: "length", raw: "length" } }), /cut/],
    [model({ content: [], finishReason: "stop" }), /no text/],
    [workersAi({ run: async () => ({}) }, "m"), /no text/],
  ]) {
    await assert.rejects(summarize(REQUEST, context()), failed(message));
  }
});

test("E19: with the last request, a summary continues the thread: same tools, same prompt, the order at its end", async () => {
  const order = { role: "user", content: "Write the summary now." };
  const request = { ...REQUEST, thread: { messages: [order] } };
  const last = { model: "m", tools: [{}], tool_choice: "auto", messages: [{ role: "user", content: "hi" }], stream: true, stream_options: {}, max_tokens: 9_000 };
  const bodies = [];
  const chat = { chat: { completions: { create: async (body) => (bodies.push(body), { choices: [{ message: { content: "text" } }] }) } } };
  const claude = { messages: { create: async (body) => (bodies.push(body), { content: [{ type: "text", text: "text" }] }) } };
  const continued = { model: "m", tools: [{}], tool_choice: "auto", messages: [...last.messages, order], max_tokens: 500 };
  for (const make of [() => openaiCompatible(chat, "m", { lastRequest: () => last }), () => anthropic(claude, "m", { lastRequest: () => last })]) {
    await make()(request, context());
    assert.deepEqual(bodies.pop(), continued);
    await make()(REQUEST, context());
    assert.equal(bodies.pop().tools, undefined);
  }
});

test("E19: workersAi: both shapes of an answer, the limit and the signal", async () => {
  const calls = [];
  const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
  for (const answer of [{ response: "text", usage }, { choices: [{ message: { content: "text" }, finish_reason: "stop" }], usage }]) {
    const { signal } = new AbortController();
    const summary = await workersAi({ run: async (...given) => (calls.push(given), answer) }, "@cf/m")(REQUEST, context(signal));
    assert.deepEqual(summary, { text: "text", usage });
    const [model, inputs, options] = calls.at(-1);
    assert.deepEqual([model, inputs.max_tokens, inputs.messages[0].content, options.signal], ["@cf/m", 500, "Summarize.", signal]);
  }
});

/** A `LanguageModel` as Chrome has it, of so many tokens. */
function languageModel(t, { state = "available", window = 1_000, names = ["contextWindow", "measureContextUsage"] } = {}) {
  const prompts = [];
  let open = 0;
  const measure = async (text) => Math.ceil(text.length / 4);
  globalThis.LanguageModel = {
    availability: async () => state,
    async create({ initialPrompts, signal }) {
      open++;
      return {
        [names[0]]: window,
        [names[1]]: measure,
        async prompt(text, options) {
          assert.equal(options.signal, signal);
          prompts.push({ system: initialPrompts[0].content, text });
          return `Summary ${prompts.length}`;
        },
        destroy: () => open--,
      };
    },
  };
  t.after(() => delete globalThis.LanguageModel);
  return { prompts, open: () => open };
}

test("E19: chrome: by the names of now and of before, whole where it fits, in parts where not, and nothing is left open", async (t) => {
  for (const names of [["contextWindow", "measureContextUsage"], ["inputQuota", "measureInputUsage"]]) {
    const { prompts, open } = languageModel(t, { names });
    const { text, usage } = await chrome()(REQUEST, context());
    assert.deepEqual([text, usage.inputTokens > 0, prompts[0].system], ["Summary 1", true, "Summarize."]);
    const long = { ...REQUEST, messages: [{ role: "user", content: "a line of the conversation\n".repeat(400) }] };
    const parts = await chrome()(long, context());
    assert.match(parts.text, /^Summary \d+$/);
    for (const { text } of prompts) assert.ok(text.length / 4 + REQUEST.maxTokens <= 1_000);
    assert.equal(prompts.slice(1).filter(({ text }) => text.startsWith("a line")).map(({ text }) => text).join(""), long.messages[0].content);
    assert.equal(open(), 0);
  }
});

test("E19: chrome: what is missing is said: no model, a download without a gesture, a window too small", async (t) => {
  await assert.rejects(chrome()(REQUEST, context()), failed(/no built-in model/));
  languageModel(t, { state: "unavailable" });
  await assert.rejects(chrome()(REQUEST, context()), failed(/no built-in model/));
  languageModel(t, { state: "downloadable" });
  await assert.rejects(chrome()(REQUEST, context()), failed(/in a click of the user/));
  languageModel(t, { window: 400 });
  await assert.rejects(chrome()(REQUEST, context()), failed(/window/));
});
