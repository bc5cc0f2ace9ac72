/** `context-compactor proxy` (E24) between the real clients of OpenAI and Anthropic, as they are, and a provider. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { openSession } from "context-compactor";
import { fileStore } from "context-compactor/node";
import { holds, logOf, OPTIONS, provider } from "../support/agents.mjs";
import { PROTOCOLS, runAgent } from "../support/agent-loops.mjs";
import { cli, isDocumented, program } from "../support/cli.mjs";

const chat = PROTOCOLS["openai chat"];

/** Starts a proxy before `upstream`; resolves to its address, what it has said so far, and how it ended. */
async function proxy(context, upstream, ...args) {
  const child = spawn(process.execPath, [program, "proxy", "--upstream", upstream, "--port", "0", "--window", "16000", ...args]);
  const ended = once(child, "close");
  context.after(() => child.kill("SIGKILL"));
  const run = { said: "", end: (signal = "SIGINT") => (child.kill(signal), ended) };
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (run.said += text));
  while (!/http:\S+/.test(run.said)) {
    assert.equal(child.exitCode, null, run.said);
    await sleep(20);
  }
  return Object.assign(run, { url: /http:\/\/[\w.:]+/.exec(run.said)[0] });
}

/** An upstream that answers with `answer`, and remembers what it was asked. */
async function echo(context, answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    requests.push({ method: request.method, url: request.url, headers: request.headers, body: Buffer.concat(pieces) });
    answer(request, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => (server.closeAllConnections(), server.close()));
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

for (const [name, protocol] of Object.entries(PROTOCOLS)) {
  for (const stream of [false, true]) {
    test(`E24: ${name}, ${stream ? "streamed" : "whole"}: an agent that cannot be changed makes 61 calls`, async (context) => {
      const server = await provider(context);
      const { url } = await proxy(context, server.url);
      const messages = await runAgent(protocol, protocol.client(url, "secret-key-1"), { stream });
      holds(server.figures("secret-key-1"));
      assert.ok(JSON.stringify(messages).length / 4 > 30_000, "what the agent has would not fit");
    });
  }

  test(`E24: ${name}: the provider's errors are the agent's, and "too long" is retried with less`, async (context) => {
    const server = await provider(context, { errorAt: 3, files: 5 });
    const { url } = await proxy(context, server.url);
    const messages = protocol.begin();
    await assert.rejects(runAgent(protocol, protocol.client(url, "secret-key-1"), { messages }), { status: 400, message: /temperature is not supported/ });
    await runAgent(protocol, protocol.client(url, "secret-key-1"), { messages });
    const other = await provider(context, { overflowAt: 30 });
    const before = await proxy(context, other.url);
    await runAgent(protocol, protocol.client(before.url, "secret-key-1"));
    holds(other.figures("secret-key-1"), { refusals: 1 });
  });
}

test("E24: a stream passes piece by piece, and its end by the agent ends it at the provider", async (context) => {
  const server = await provider(context, { files: 0, pauseMs: 50 });
  const { url } = await proxy(context, server.url);
  const client = chat.client(url, "secret-key-1");
  const body = { model: "small", messages: [{ role: "user", content: "Say it." }], stream: true, tools: [{ type: "function", function: { name: "f", parameters: {} } }] };
  const times = [];
  for await (const _ of await client.chat.completions.create(body)) times.push(Date.now());
  assert.ok(times.length > 4 && times.at(-1) - times[0] > 100, times.map((time) => time - times[0]).join(" "));
  const stream = await client.chat.completions.create(body);
  for await (const _ of stream) stream.controller.abort();
  for (let wait = 0; wait < 100 && !server.requests[1].isAborted; wait++) await sleep(20);
  assert.equal(server.requests[1].isAborted, true);
});

test("E24: headers, bytes and addresses pass both ways", async (context) => {
  const bytes = Buffer.from([0, 255, 128, 10, 13]);
  const upstream = await echo(context, (request, response) => {
    if (request.url === "/base/moved") return response.writeHead(302, { location: "https://elsewhere.test/" }).end();
    response.writeHead(207, "Much", [..."set-cookie a=1 set-cookie b=2 x-request-id req_1 content-encoding gzip".split(" ")]).end(gzipSync(bytes));
  });
  const { url, said } = await proxy(context, `${upstream.url}/base/`, "--json");
  isDocumented(JSON.parse(said));
  const answer = await fetch(`${url}/v1/files?limit=2`, { method: "POST", headers: { "content-type": "application/octet-stream", "x-own": "1", authorization: "Bearer secret-key-1" }, body: bytes });
  assert.deepEqual([answer.status, answer.headers.get("x-request-id"), answer.headers.getSetCookie()], [207, "req_1", ["a=1", "b=2"]]);
  assert.deepEqual(Buffer.from(await answer.arrayBuffer()), bytes);
  const [{ method, url: path, headers, body }] = upstream.requests;
  assert.deepEqual([method, path, headers["x-own"], headers.authorization, headers.host], ["POST", "/base/v1/files?limit=2", "1", "Bearer secret-key-1", new URL(upstream.url).host]);
  assert.deepEqual(body, bytes);
  assert.equal((await fetch(`${url}/moved`, { redirect: "manual" })).headers.get("location"), "https://elsewhere.test/");
  await fetch(`${url}/v1/models`, { method: "HEAD" });
  assert.equal(upstream.requests.at(-1).method, "HEAD");
});

test("E24: keys are in no line, also where the provider repeats them; no answer of the provider is 502", async (context) => {
  const upstream = await echo(context, (request, response) => {
    const said = `Incorrect API key provided: ${request.headers.authorization} ${request.headers["x-api-key"]}`;
    response.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify({ error: { message: said } }));
  });
  const run = await proxy(context, upstream.url);
  const word = "one two three four ";
  // So long that a summary is asked for, which fails as well.
  const messages = Array.from({ length: 40 }, (_, at) => ({ role: at % 2 ? "assistant" : "user", content: word.repeat(400) }));
  await assert.rejects(chat.client(run.url, "secret-key-1").chat.completions.create({ model: "m", messages: [...messages, { role: "user", content: "Go on." }] }), { status: 401, message: /secret-key-1/ });
  await fetch(`${run.url}/v1/models?key=secret-key-2`, { headers: { "x-api-key": "secret-key-3" } });
  const down = await proxy(context, "http://127.0.0.1:9");
  const answer = await fetch(`${down.url}/v1/messages?key=secret-key-2`, { headers: { authorization: "Bearer secret-key-1" } });
  const { error } = await answer.json();
  assert.deepEqual([answer.status, error.code], [502, "bad_gateway"]);
  assert.match(run.said, /POST \/v1\/chat\/completions 401, \d/);
  assert.match(down.said, /GET \/v1\/messages failed: /);
  assert.doesNotMatch(run.said + down.said, /secret-key/);
});

test("E24: a conversation that a header names is in the store, and goes on after a restart", async (context) => {
  const server = await provider(context);
  const folder = mkdtempSync(join(tmpdir(), "context-compactor-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const args = ["--store", folder, "--thread", "x-conversation"];
  const client = ({ url }) => chat.client(url, "secret-key-1", (input, init) => fetch(input, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), "x-conversation": "one" } }));
  const before = await proxy(context, server.url, ...args);
  const half = await runAgent(chat, client(before), { turns: 30 });
  assert.deepEqual(await before.end(), [130, null]);
  const after = await proxy(context, server.url, ...args);
  await runAgent(chat, client(after), { messages: half });
  assert.deepEqual(await after.end("SIGTERM"), [0, null]);
  holds(server.figures("secret-key-1"));
  const store = fileStore(folder);
  const session = await openSession({ ...OPTIONS, store, id: "one", mustExist: true });
  assert.equal((await logOf(session)).length, 121);
  await session.close();
  await store.close();
});

test("E24: what a proxy cannot do is said, and how to do it", async (context) => {
  const taken = await echo(context, (_, response) => response.end());
  const port = new URL(taken.url).port;
  const wrong = [
    [[], 2, /needs --upstream URL/],
    [["--upstream", "api.openai.com"], 2, /write an address such as/],
    [["--upstream", "https://x.test", "--store", "s"], 2, /--thread HEADER/],
    [["--upstream", "https://x.test", "--thread", "a b"], 2, /name of a header/],
    [["--upstream", "https://x.test", "--port", "http"], 2, /--port http: a number/],
    [["--upstream", "https://x.test", "--port", port], 1, /is taken: give another with --port/],
    [["--upstream", "https://x.test", "--preset", "balancd"], 2, /did you mean balanced/],
    [["x", "--upstream", "https://x.test"], 2, /takes nothing/],
  ];
  for (const [args, code, told] of wrong) {
    const run = await cli(["proxy", ...args]);
    assert.deepEqual([run.code, told.test(run.stderr)], [code, true], run.stderr);
  }
});
