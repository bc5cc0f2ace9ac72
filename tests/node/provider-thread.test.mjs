/** A summary that is asked for at the end of the conversation's own prompt: by an endpoint, and by the app's function. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { openSession } from "context-compactor";
import { fails, frozen } from "../support/api.mjs";

const WORDS = Array.from({ length: 60 }, (_, nth) => `Question ${nth} was answered, and it was read.`).join("\n");
const TOOLS = frozen([{ name: "z_last", input_schema: { type: "object", properties: { b: {}, a: {} } } }, { name: "bash" }]);
const SYSTEM = "You fix bugs.";
const text = (nth, who) => `${who} ${nth}: ${"abcdefg ".repeat(250)}`.trim();

const said = (content) => ({ type: "message", role: "assistant", content, stop_reason: "end_turn", usage: { input_tokens: 800, cache_read_input_tokens: 700, output_tokens: 30 } });
const good = said([{ type: "text", text: WORDS }]);
const called = { ...said([{ type: "tool_use", id: "t", name: "bash", input: {} }]), stop_reason: "tool_use" };

/** A server that gives `answers` in turn; `requests` are the bodies that it was sent. */
async function serve(context, ...answers) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    requests.push({ body: JSON.parse(body), text: body });
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(answers[Math.min(requests.length, answers.length) - 1]));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { requests, url: `http://127.0.0.1:${server.address().port}/v1` };
}

/** Talks until a summary was written: the prompt that was sent last before it, and the result. */
async function talk(options, tools = TOOLS) {
  const session = await openSession({ store: "memory", contextWindow: 32_000, model: "claude-sonnet-4-5", format: "anthropic", background: false, systemPrompt: SYSTEM, ...options });
  let before;
  for (let nth = 0; nth < 60; nth++) {
    await session.append({ role: "user", content: text(nth, "question") }, { role: "assistant", content: text(nth, "answer") });
    const prepared = await session.prepare({ tools });
    if (prepared.result) return { before, result: prepared.result, session };
    before = prepared.messages;
  }
  throw new Error("no summary was due");
}

const provider = (url, more) => ({ kind: "anthropic", model: "claude-sonnet-4-5", url, request: frozen({ tool_choice: { type: "auto" }, thinking: { type: "disabled" }, stream: true }), ...more });

test("W7: an endpoint is sent the last prompt, with what the app says of its requests, and one message more", async (context) => {
  const { requests, url } = await serve(context, good);
  const { before, result } = await talk({ summarize: { provider: provider(url) } });
  assert.deepEqual([result.success, requests.length, result.usage.cacheReadTokens], [true, 1, 700]);
  const [{ body, text: sent }] = requests;
  const { messages, max_tokens: cap, ...rest } = body;
  assert.deepEqual(rest, { model: "claude-sonnet-4-5", system: SYSTEM, tools: TOOLS, tool_choice: { type: "auto" }, thinking: { type: "disabled" } });
  assert.ok(sent.includes(JSON.stringify(TOOLS)), "the order of keys is the app's");
  assert.ok(cap > 300 && cap < 1_000, `${cap}`);
  const asked = messages.pop();
  assert.deepEqual(messages, before);
  assert.deepEqual([asked.role, asked.content[0].cache_control], ["user", { type: "ephemeral" }]);
  assert.match(asked.content[0].text, /Call no tool/);
});

test("W7: an answer with a call is refused once, and then a new prompt is sent, whatever the attempts", async (context) => {
  const { requests, url } = await serve(context, called, good);
  const { result } = await talk({ summarize: { provider: provider(url), attempts: 1 } });
  assert.deepEqual([result.success, result.llmCalls], [true, 2]);
  assert.deepEqual(requests.map(({ body }) => ["tools" in body, body.messages.length > 1]), [[true, true], [false, false]]);
});

for (const [what, options, more] of [
  ["the model is another one", {}, { model: "claude-haiku-4-5" }],
  ["nothing is said of the app's requests", {}, { request: undefined }],
  ["the app redacts", { redact: { text: (text) => text } }, {}],
  ["the prompt holds a secret", { systemPrompt: "The key is ghp_abcdefghijklmnopqrstuvwxyz0123456789." }, {}],
]) {
  test(`W7: a new prompt is sent where ${what}`, async (context) => {
    const { requests, url } = await serve(context, good);
    const { result } = await talk({ summarize: { provider: provider(url, more) }, ...options });
    assert.equal(result.success, true);
    assert.deepEqual(requests.map(({ body }) => [body.messages.length, "tools" in body]), [[1, false]]);
  });
}

test("W7: a function has both forms, and the thread's messages are in the format of the conversation", async () => {
  const requests = [];
  const call = (request) => {
    requests.push(request);
    return WORDS;
  };
  await talk({ summarize: call });
  const [{ system, messages, thread, maxTokens }] = requests;
  assert.ok(system.includes("# The material") && messages[0].content.includes("<conversation") && maxTokens > 0);
  assert.deepEqual(Object.keys(thread), ["messages"]);
  const [{ role, content }] = thread.messages;
  assert.deepEqual([thread.messages.length, role], [1, "user"]);
  assert.match(content, /Call no tool.*What it always says/s);
  // A model of its own reads none of that cache.
  await talk({ summarize: { call, model: "small" } });
  assert.ok(!("thread" in requests[1]));
});

test("W7: a function that throws gets the next attempt without the thread, and one that is told to wait with it", async () => {
  for (const [error, has] of [[new Error("the model called a tool"), false], [Object.assign(new Error("slow down"), { status: 429 }), true]]) {
    const threads = [];
    const call = ({ thread }, { attempt }) => {
      threads.push(thread !== undefined);
      if (attempt === 1) throw error;
      return WORDS;
    };
    await talk({ summarize: call, advanced: { retryWaitMs: 0 } });
    assert.deepEqual(threads, [true, has]);
  }
});

test("W7: what the app says of its requests must be an object", async () => {
  for (const request of [5, "x", [1]]) {
    const opened = openSession({ store: "memory", summarize: { provider: { kind: "openai", model: "m", request } } });
    await assert.rejects(opened, fails("invalid_option", { field: "summarize.provider.request" }));
  }
});
