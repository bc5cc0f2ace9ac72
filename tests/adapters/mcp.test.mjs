/** `context-compactor mcp` (E24) with the protocol's own client. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { openSession } from "context-compactor";
import { fileStore } from "context-compactor/node";
import { cli, program } from "../support/cli.mjs";

const folder = mkdtempSync(join(tmpdir(), "context-compactor-"));
const [full, empty] = ["full", "empty"].map((name) => join(folder, name));
after(() => rmSync(folder, { recursive: true }));

const long = Array.from({ length: 400 }, (_, line) => `line ${line} of the report, as expected`).join("\n");

/** What the recall tools of the engine say of themselves. */
let definitions;
before(async () => {
  mkdirSync(empty);
  const store = fileStore(full);
  for (const [id, words] of [["older", "The harbour opens at 6:40."], ["newer", "The password of the gate is kestrel."]]) {
    const session = await openSession({ id, store, contextWindow: 8_000, logger: () => {} });
    const call = { id: "c", type: "function", function: { name: "bash", arguments: '{"command":"cat report"}' } };
    await session.append({ role: "user", content: words }, { role: "assistant", content: null, tool_calls: [call] }, { role: "tool", tool_call_id: "c", content: long }, { role: "assistant", content: "Read." });
    definitions = session.recall.tools("anthropic").definitions;
    await session.close();
  }
  await store.close();
});

async function client(context, store) {
  const one = new Client({ name: "test", version: "1.0.0" });
  await one.connect(new StdioClientTransport({ command: process.execPath, args: [program, "mcp", "--store", store], stderr: "ignore" }));
  context.after(() => one.close());
  return one;
}

const textOf = ({ content }) => content.map(({ text }) => text).join("");

test("E24: a client finds the tools, which take what the engine's take, and the session", async (context) => {
  const one = await client(context, full);
  const { name, version } = one.getServerVersion();
  assert.deepEqual([name, /^\d+\.\d+\.\d+/.test(version)], ["context-compactor", true]);
  await one.ping();
  const { tools } = await one.listTools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), ["recall_read", "recall_search", "recall_sessions"]);
  for (const { name: own, input_schema: schema } of definitions) {
    const { inputSchema } = tools.find((tool) => tool.name === own);
    assert.deepEqual(Object.keys(inputSchema.properties).filter((property) => property !== "session").sort(), Object.keys(schema.properties).sort());
    assert.deepEqual(inputSchema.required, schema.required);
    assert.equal(inputSchema.additionalProperties, false);
  }
});

/** The bytes of all files of a store. */
const bytesOf = (path) => readdirSync(path, { recursive: true, withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [[entry.name, readFileSync(join(entry.parentPath, entry.name), "base64")]] : []));

test("E24: sessions are listed, searched and read; without a name, that which was used last; no byte changes", async (context) => {
  const before = bytesOf(full);
  const one = await client(context, full);
  const call = async (name, args) => one.callTool({ name, arguments: args });
  assert.match(textOf(await call("recall_sessions", {})), /^newer · \S+Z · 4 messages · openai-chat\nolder · /);
  assert.match(textOf(await call("recall_sessions", { limit: 1 })), /^newer .*\n… 1 more$/);
  assert.match(textOf(await call("recall_search", { query: "harbour", session: "older" })), /The harbour opens at 6:40/);
  const found = textOf(await call("recall_search", { query: "password kestrel" }));
  assert.match(found, /^Session newer:\n[^]*gate is kestrel/);
  const [, ref] = /\[(m\w+)\]/.exec(found);
  assert.match(textOf(await call("recall_read", { ref, session: "newer" })), /The password of the gate is kestrel/);
  const result = /\[(\w+)\] \S*tool|\[(\w+)\]/.exec(textOf(await call("recall_search", { query: "line 399 report", session: "older" })));
  assert.match(textOf(await call("recall_read", { ref: result[1] ?? result[2], session: "older", limit: 40 })), /line 0 of the report/);
  assert.ok(before.length > 0);
  assert.deepEqual(bytesOf(full), before);
});

test("E24: what another process appends is found at once, and its session goes on", async (context) => {
  const one = await client(context, full);
  const store = fileStore(full);
  const session = await openSession({ id: "older", store, contextWindow: 8_000, logger: () => {} });
  await session.append({ role: "user", content: "Remember zanzibar." });
  const answer = await one.callTool({ name: "recall_search", arguments: { query: "zanzibar", session: "older" } });
  assert.match(textOf(answer), /Remember zanzibar/);
  await session.append({ role: "assistant", content: "Remembered." });
  assert.equal(session.archive.metadata().totalMessages, 6);
  await session.close();
  await store.close();
});

test("E24: what is wrong is the tool's answer, and says what would be right", async (context) => {
  const [one, none] = [await client(context, full), await client(context, empty)];
  const wrong = [
    [one, "recall_search", { query: "x", session: "oldr" }, /no session "oldr": did you mean older\?/],
    [one, "recall_search", { query: "x", sesion: "older" }, /no argument sesion; it has session, query, limit/],
    [one, "recall_sessions", { limit: 0 }, /whole number from 1/],
    [none, "recall_search", { query: "x" }, /no stored conversation/],
  ];
  for (const [client, name, args, told] of wrong) {
    const answer = await client.callTool({ name, arguments: args });
    assert.deepEqual([answer.isError, told.test(textOf(answer))], [true, true], textOf(answer));
  }
  assert.match(textOf(await none.callTool({ name: "recall_sessions", arguments: {} })), /no stored conversation/);
  assert.match(textOf(await one.callTool({ name: "recall_search", arguments: { query: "" } })), /query must be a text/);
  await assert.rejects(one.callTool({ name: "recall_forget", arguments: {} }), { code: -32602 });
});

test("E24: each line is answered or is a notification, whatever stands in it; the end of input ends the run", async () => {
  const child = spawn(process.execPath, [program, "mcp", "--store", full]);
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (out += text));
  const init = (id, protocolVersion) => ({ jsonrpc: "2.0", id, method: "initialize", params: { protocolVersion, capabilities: {}, clientInfo: { name: "t", version: "1" } } });
  const lines = [init(1, "2024-11-05"), init(2, "1999-01-01"), { jsonrpc: "2.0", method: "notifications/initialized" }, { jsonrpc: "2.0", id: 3, method: "resources/list" }, [1], { jsonrpc: "2.0", id: 4, result: {} }, null, { jsonrpc: "2.0", id: 5, method: "tools/call", params: { name: "recall_search", arguments: { query: "harbour" } } }];
  child.stdin.end(`${lines.map((line) => JSON.stringify(line)).join("\n")}\n{"jsonrpc":\n\n`);
  const [code] = await once(child, "close");
  const answers = out.trim().split("\n").map((line) => JSON.parse(line));
  const of = (id) => answers.find((answer) => answer.id === id);
  assert.deepEqual([code, answers.length], [0, 7]);
  assert.deepEqual([of(1).result.protocolVersion, of(2).result.protocolVersion], ["2024-11-05", "2025-11-25"]);
  assert.deepEqual([of(3).error.code, of(4), typeof of(5).result.content[0].text], [-32601, undefined, "string"]);
  assert.deepEqual(answers.filter(({ id }) => id === null).map(({ error }) => error.code).sort(), [-32600, -32600, -32700]);
});

test("E24: a store that is not there, or is not named", async () => {
  const runs = [await cli(["mcp"]), await cli(["mcp", "--store", join(folder, "nowhere")]), await cli(["mcp", "--stor", full])];
  assert.deepEqual(runs.map(({ code }) => code), [2, 3, 2]);
  for (const [nth, told] of [/needs --store DIR/, /no such folder/, /did you mean --store\?/].entries()) assert.match(runs[nth].stderr, told);
});
