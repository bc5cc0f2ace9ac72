/** The option `provider`: what no request could carry is refused before any, and what a request met is told. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { compact } from "context-compactor";
import { chat, fails, SUMMARY } from "../support/api.mjs";

/** A server that answers every request alike, and how often it was asked. */
async function serving(context, status, headers, body) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.headers);
    response.writeHead(status, headers).end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close());
  return { url: `http://127.0.0.1:${server.address().port}/v1`, asked };
}

const ANSWER = JSON.stringify({ choices: [{ message: { content: SUMMARY } }] });
const asking = (more, options) => compact(chat(20), { contextWindow: 8_000, summarize: { provider: { kind: "openai", model: "m", ...more }, ...options } });

for (const [way, options] of [["the global fetch", {}], ["a fetch of the app", { fetch: (...given) => fetch(...given) }]]) {
  for (const [what, headers, field, message] of [
    ["an ellipsis", { authorization: "Bearer …" }, "authorization", /U\+2026 at position 7/],
    ["a letter beyond Latin-1", { authorization: "Bearer ключ" }, "authorization", /U\+043A/],
    ["a character outside of the first plane", { authorization: "🔑" }, "authorization", /U\+1F511/],
    ["a line break", { authorization: "Bearer key\n" }, "authorization", /line break.*trim\(\)/],
    ["a NUL", { "x-key": "a\0b" }, "x-key", /U\+0000/],
    ["no name", { "": "x" }, "", /no name of a header/],
    ["a space in a name", { "bad name": "x" }, "bad name", /no name of a header/],
    ["a key that is not set", { "x-api-key": undefined }, "x-api-key", /undefined was given.*process\.env/],
    ["null", { "x-api-key": null }, "x-api-key", /null was given/],
    ["a number", { "x-tenant": 5 }, "x-tenant", /a number was given/],
    ["a key that is not set, in a Map", new Map([["x-api-key", undefined]]), "x-api-key", /undefined was given/],
  ]) {
    test(`F34: a header with ${what} is refused by name before any request (${way})`, async (context) => {
      const { url, asked } = await serving(context, 200, {}, ANSWER);
      await assert.rejects(asking({ url, headers }, options), (error) => {
        assert.doesNotMatch(error.message, /Bearer key|ключ|🔑/);
        return fails("invalid_option", { field: `summarize.provider.headers.${field}`, message })(error);
      });
      assert.equal(asked.length, 0);
      // The engine goes on.
      assert.equal((await compact(chat(1))).success, true);
    });
  }

  for (const [what, headers] of [
    ["Headers", new Headers({ authorization: "Bearer k", "x-tenant": "é" })],
    ["a Map", new Map([["authorization", "Bearer k"], ["x-tenant", "é"]])],
    ["an object without a prototype", Object.assign(Object.create(null), { authorization: "Bearer k", "x-tenant": "é" })],
  ]) {
    test(`F34: headers as ${what} are sent (${way})`, async (context) => {
      const { url, asked } = await serving(context, 200, {}, ANSWER);
      assert.equal((await asking({ url, headers }, options)).success, true);
      assert.deepEqual(asked.map((sent) => [sent.authorization, sent["x-tenant"]]), [["Bearer k", "é"]]);
    });
  }

  for (const url of ["api/v1", "localhost:8080", "127.0.0.1:8080/v1", "file:///v1", "//host/v1", "http://", "https://user:secret@host/v1"]) {
    test(`F34: the address ${url} is refused, and not asked again and again (${way})`, async () => {
      const started = Date.now();
      await assert.rejects(asking({ url }, options), (error) => {
        assert.doesNotMatch(error.message, /secret/);
        return fails("invalid_option", { field: "summarize.provider.url" })(error);
      });
      assert.ok(Date.now() - started < 1_000);
    });
  }

  test(`F34: a request that nobody answers names the address and the innermost cause (${way})`, async () => {
    const { error } = await asking({ url: "http://127.0.0.1:9/v1?key=secret" }, { attempts: 1, ...options });
    fails("summary_failed", { message: /http:\/\/127\.0\.0\.1:9\/v1 failed \(fetch failed: .+\)/ })(error);
    assert.doesNotMatch(error.message, /secret/);
    assert.ok(error.cause.cause);
  });

  for (const [what, body, message] of [
    ["nothing", "", /answered 200 with nothing/],
    ["a page", "<!DOCTYPE html><title>Sign in</title>", /answered 200 with a page of HTML/],
  ]) {
    test(`F34: an answer that is ${what} names the address and the status (${way})`, async (context) => {
      const { url } = await serving(context, 200, {}, body);
      const { error } = await asking({ url: `${url}?key=secret` }, { attempts: 1, ...options });
      fails("summary_failed", { message })(error);
      assert.ok(error.message.includes(url));
      assert.doesNotMatch(error.message, /secret/);
    });
  }
}

test("F34: a refusal that says nothing names the address", async (context) => {
  const { url } = await serving(context, 404, {}, "");
  const { error } = await asking({ url }, { attempts: 1 });
  fails("summary_failed", { message: /answered 404 with nothing \(http:\/\/127/ })(error);
});

test("F34: what a fetch of the app throws is told as it is, whatever it is", async () => {
  for (const thrown of ["offline", undefined, { code: "EPROXY" }, Object.assign(new Error("x"), { cause: new AggregateError([new Error("refused")]) })]) {
    const fetch = async () => { throw thrown };
    const { error } = await asking({}, { attempts: 1, fetch });
    fails("summary_failed", { message: /api\.openai\.com/ })(error);
  }
});

test("F34: a global fetch that throws what is no Error ends no process", async (context) => {
  for (const [answer, message] of [[() => { throw "offline" }, /offline/], [() => ({}), /api\.openai\.com/], [() => undefined, /api\.openai\.com/]]) {
    const mocked = context.mock.method(globalThis, "fetch", async () => answer());
    fails("summary_failed", { message })((await asking({}, { attempts: 1 })).error);
    mocked.mock.restore();
  }
});

test("F34: an apiKey beside the provider names the header of its kind", async () => {
  const provider = { kind: "anthropic", model: "m" };
  await assert.rejects(compact(chat(1), { summarize: { provider }, apiKey: "k" }), fails("invalid_option", { field: "apiKey", message: /"x-api-key"/ }));
  await assert.rejects(compact(chat(1), { apiKey: "k" }), fails("invalid_option", { field: "apiKey", message: /openai: .*anthropic: / }));
});

test("F34: a provider that asks to be left alone for long is not waited for", async (context) => {
  const { url, asked } = await serving(context, 429, { "retry-after": "3600" }, JSON.stringify({ error: { message: "slow down" } }));
  const started = Date.now();
  const { success, error } = await asking({ url });
  assert.equal(success, false);
  fails("summary_failed", { message: /slow down; it asks to wait 3600 s, and no call waits longer than 60 s/ })(error);
  assert.equal(asked.length, 1);
  assert.ok(Date.now() - started < 5_000);
});

test("F34: an answer that was cut names an option that there is", async (context) => {
  const body = JSON.stringify({ choices: [{ finish_reason: "length", message: { content: "A summary that" } }] });
  const { url } = await serving(context, 200, {}, body);
  const { error } = await asking({ url }, { attempts: 1 });
  assert.match(error.message, /targetTokens.*instructions/);
  await assert.doesNotReject(asking({ url }, { attempts: 1, targetTokens: 900, instructions: "Short." }));
});
