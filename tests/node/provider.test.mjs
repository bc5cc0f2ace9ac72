/** The option `provider` against a real server, through the app's `fetch` and through the global one. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { compact, estimateTokens } from "../support/offload.mjs";
import { chat, fails, frozen, SUMMARY } from "../support/api.mjs";

const openai = (content, more = {}) => ({
  choices: [{ finish_reason: "stop", message: { role: "assistant", content }, ...more }],
  usage: { prompt_tokens: 900, completion_tokens: 30, prompt_tokens_details: { cached_tokens: 100 } },
});
const anthropic = (text, more = {}) => ({
  type: "message",
  role: "assistant",
  content: [{ type: "text", text }],
  stop_reason: "end_turn",
  usage: { input_tokens: 800, cache_read_input_tokens: 100, output_tokens: 30 },
  ...more,
});

const gemini = (text) => ({
  candidates: [{ content: { role: "model", parts: [{ text }] }, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 900, cachedContentTokenCount: 100, candidatesTokenCount: 30 },
});
const ollama = (content) => ({
  message: { role: "assistant", content },
  done: true,
  done_reason: "stop",
  prompt_eval_count: 900,
  eval_count: 30,
});

/** A server that gives `answers` in turn: `[status, body, headers?]`. `requests` are what it was sent, and when. */
async function serve(context, ...answers) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    requests.push({ url: request.url, method: request.method, headers: request.headers, body: JSON.parse(body), at: Date.now() });
    const [status, answer, headers = {}] = answers[Math.min(requests.length, answers.length) - 1];
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { requests, url: `http://127.0.0.1:${server.address().port}/v1` };
}

const KINDS = {
  openai: {
    path: "/v1/chat/completions",
    good: openai(SUMMARY),
    tooLong: "This model's maximum context length is 9000 tokens.",
    asked: (body) => [body.messages[0].content, body.max_tokens],
  },
  anthropic: {
    path: "/v1/messages",
    good: anthropic(SUMMARY),
    tooLong: "prompt is too long: 9001 tokens > 9000 maximum",
    asked: (body) => [body.system, body.max_tokens],
  },
  gemini: {
    path: "/v1beta/models/small:generateContent",
    good: gemini(SUMMARY),
    tooLong: "The input token count (9001) exceeds the maximum number of tokens allowed (9000).",
    asked: (body) => [body.systemInstruction.parts[0].text, body.generationConfig.maxOutputTokens],
  },
  ollama: {
    path: "/api/chat",
    good: ollama(SUMMARY),
    tooLong: "the input length exceeds the context length",
    asked: (body) => [body.messages[0].content, body.options.num_predict],
  },
};
/** What an app gives: the base of a kind's endpoint. */
const base = (kind, url) => new URL(/^\/\w+/.exec(KINDS[kind].path)[0], url).href;
const WAYS = { "the app's fetch": { fetch: (...given) => fetch(...given) }, "the global fetch": {} };

// The waits between attempts are real: they pass side by side.
describe("provider", { concurrency: true }, () => {
  for (const [kind, { path, good, tooLong, asked }] of Object.entries(KINDS)) {
    for (const [way, options] of Object.entries(WAYS)) {
      test(`${kind} by ${way}: the request, the summary and its usage`, async (context) => {
        const { requests, url } = await serve(context, [200, good]);
        const provider = frozen({ kind, model: "small", url: base(kind, url), headers: { Authorization: "Bearer key-12345678" } });
        const result = await compact(frozen(chat(10)), { summarize: { provider, ...options } });
        assert.deepEqual([result.success, result.summary, result.llmCalls], [true, SUMMARY, 1]);
        const { inputTokens, outputTokens, cacheReadTokens } = result.usage;
        // Ollama tells nothing of its cache.
        assert.deepEqual([inputTokens, outputTokens, cacheReadTokens], [900, 30, kind === "ollama" ? 0 : 100]);
        const [{ method, url: endpoint, headers, body }] = requests;
        assert.deepEqual([method, endpoint, body.model], ["POST", path, kind === "gemini" ? undefined : "small"]);
        assert.equal(headers.authorization, "Bearer key-12345678");
        assert.match(headers["content-type"], /application\/json/);
        const [system, cap] = asked(body);
        assert.equal(cap, 9_600);
        assert.ok(system.includes("Technical Context"));
        // Lesson: `tools: []` is refused.
        assert.ok(!("tools" in body));
      });

      test(`${kind} by ${way}: 429 is waited out as long as the server asks`, async (context) => {
        const { requests, url } = await serve(
          context,
          [429, { error: { message: "slow down" } }, { "retry-after": "3" }],
          [200, good],
        );
        const result = await compact(frozen(chat(10)), { summarize: { provider: { kind, model: "m", url: base(kind, url) }, ...options } });
        assert.deepEqual([result.success, result.llmCalls], [true, 2]);
        assert.ok(requests[1].at - requests[0].at >= 2_950, `${requests[1].at - requests[0].at}`);
      });

      test(`${kind} by ${way}: 500 is tried again, and in the end told`, async (context) => {
        const { requests, url } = await serve(context, [500, "<html>oops</html>"]);
        const result = await compact(frozen(chat(10)), { summarize: { provider: { kind, model: "m", url: base(kind, url) }, ...options } });
        assert.deepEqual([result.success, result.llmCalls, requests.length], [false, 3, 3]);
        fails("summary_failed", { message: /500.*oops/ })(result.error);
        assert.equal(result.messages.length, 20);
      });

      test(`${kind} by ${way}: a prompt that is too long is shrunk and sent again`, async (context) => {
        const { requests, url } = await serve(context, [400, { error: { message: tooLong } }], [200, good]);
        const provider = { kind, model: "m", url: base(kind, url) };
        const given = { contextWindow: 20_000, summarize: { provider, longHistory: "clip", ...options } };
        const result = await compact(chat(200), given);
        assert.equal(result.success, true);
        const [first, second] = requests.map(({ body }) => estimateTokens(JSON.stringify(body)));
        assert.ok(second < first * 0.8, `${first} ${second}`);
      });

      test(`${kind} by ${way}: nobody listens`, async () => {
        const provider = { kind, model: "m", url: "http://127.0.0.1:1/v1" };
        const { success, error } = await compact(frozen(chat(10)), { summarize: { provider, attempts: 1, ...options } });
        assert.equal(success, false);
        fails("summary_failed")(error);
        assert.ok(error.cause instanceof Error);
      });
    }
  }

  for (const [name, kind, answer] of [
    ["cut", "openai", openai("A summary that ends in the mid", { finish_reason: "length" })],
    ["cut", "anthropic", anthropic("A summary that ends in the mid", { stop_reason: "max_tokens" })],
    ["empty", "openai", openai("")],
    ["empty", "anthropic", anthropic("", { content: [] })],
    ["not there", "openai", { choices: [] }],
    ["a call of a tool", "openai", openai(null, { message: { tool_calls: [{ id: "x" }] } })],
    ["no JSON", "openai", "<html>"],
    ["cut", "gemini", { candidates: [{ content: { parts: [{ text: "A summary that" }] }, finishReason: "MAX_TOKENS" }] }],
    ["a thought", "gemini", { candidates: [{ content: { parts: [{ text: "Hm.", thought: true }] }, finishReason: "STOP" }] }],
    ["cut", "ollama", { ...ollama("A summary that ends in the mid"), done_reason: "length" }],
    ["an error in a 200", "openai", { error: { message: "overloaded", code: 503 } }],
  ]) {
    test(`lesson: truncated summary = failure; an answer of ${kind} that is ${name} is asked for again`, async (context) => {
      const { requests, url } = await serve(context, [200, answer], [200, KINDS[kind].good]);
      const result = await compact(frozen(chat(10)), { summarize: { provider: { kind, model: "m", url: base(kind, url) } } });
      assert.deepEqual([result.success, result.summary, requests.length], [true, SUMMARY, 2]);
    });
  }

  test("a key that is wrong is not tried again, and stands in no error", async (context) => {
    const key = "sk-verysecret123";
    const { requests, url } = await serve(context, [401, { error: { message: `Incorrect API key: ${key}` } }]);
    const provider = { kind: "openai", model: "m", url, headers: { authorization: `Bearer ${key}` } };
    const lines = [];
    const result = await compact(frozen(chat(10)), { summarize: { provider }, logger: (_, line) => lines.push(line) });
    assert.deepEqual([result.success, requests.length], [false, 1]);
    assert.match(result.error.message, /401.*Incorrect API key/);
    assert.ok(![result.error.message, ...lines].join().includes(key));
  });

  test("with a fallback the built-in summary is used when the provider fails", async (context) => {
    const { url } = await serve(context, [500, {}]);
    const provider = { kind: "openai", model: "m", url };
    const result = await compact(chat(20), { summarize: { provider, fallback: "extractive", attempts: 2 } });
    assert.deepEqual([result.success, result.llmCalls], [true, 2]);
    assert.match(result.reason, /500/);
  });

  test("what the app's fetch throws is the error's cause", async () => {
    const boom = new TypeError("blocked");
    const fetch = async () => { throw boom; };
    const { error } = await compact(frozen(chat(10)), { summarize: { provider: { kind: "openai", model: "m" }, fetch, attempts: 1 } });
    fails("summary_failed", { cause: boom })(error);
  });

  test("a fetch that resolves to junk is a failed attempt", async () => {
    for (const answer of [undefined, null, 5, {}]) {
      const options = { summarize: { provider: { kind: "openai", model: "m" }, fetch: async () => answer, attempts: 1 } };
      const { success, error } = await compact(chat(10), options);
      assert.equal(success, false);
      fails("summary_failed")(error);
    }
  });

  for (const [way, options] of Object.entries(WAYS)) {
    test(`by ${way}: abort and timeout end a request that hangs`, async (context) => {
      const server = createServer(() => {}).listen(0, "127.0.0.1");
      await once(server, "listening");
      context.after(() => {
        server.closeAllConnections();
        server.close();
      });
      const provider = { kind: "openai", model: "m", url: `http://127.0.0.1:${server.address().port}` };
      const reason = new Error("the user left");
      const controller = new AbortController();
      const arrived = once(server, "request");
      const work = compact(chat(10), { signal: controller.signal, summarize: { provider, ...options } });
      const [{ socket }] = await arrived;
      const gone = once(socket, "close");
      controller.abort(reason);
      await assert.rejects(work, fails("aborted", { cause: reason }));
      await gone;
      const { error } = await compact(chat(10), { summarize: { provider, timeoutMs: 50, attempts: 1, ...options } });
      fails("timeout")(error);
    });
  }
});
