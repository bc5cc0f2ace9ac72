/** Messages in shapes of other libraries: refused with what they look like, never read as something else. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, openSession } from "context-compactor";
import { detectFormat, validateHistory } from "context-compactor/history";
import { estimateTokens } from "context-compactor/tokens";
import { fails } from "../support/api.mjs";

/** Content of an early compactor: calls beside the content, the result's call by `toolCallId`. */
const camel = (content) => [
  { role: "user", content: content("Read a.") },
  { role: "assistant", content: content("I read it."), toolCalls: [{ id: "c1", name: "read", arguments: {} }] },
  { role: "tool", toolCallId: "c1", content: content("text of a") },
  { role: "assistant", content: content("Done.") },
];

test("F9: calls in `toolCalls` are refused, and the session's format is the detected one", async () => {
  for (const history of [camel((text) => text), camel((text) => [{ type: "text", text }])]) {
    const refused = (error) => fails("unknown_format", { index: 1 })(error) && error.message.includes("`toolCalls`");
    await assert.rejects(() => detectFormat(history), refused);
    await assert.rejects(() => validateHistory(history), refused);
    await assert.rejects(compact(history), refused);
    const session = await openSession({ contextWindow: 100_000 });
    await assert.rejects(session.append(...history), refused);
    await session.close();
  }
  const parts = [{ role: "tool", content: [{ type: "tool-future", text: "x" }] }];
  const session = await openSession({ contextWindow: 100_000 });
  await session.append(...parts);
  assert.equal(session.context.format, await detectFormat(parts));
  assert.equal(session.context.format, "ai-sdk");
  await session.close();
});

const user = { role: "user", content: "Read a." };
const fn = (args) => ({ name: "read", arguments: args });
const output = { type: "text", text: "x" };
/** Whose messages, the messages, what the error names, and what to write for it. */
const SHAPES = [
  ["OpenAI Agents", [user, { type: "function_call", callId: "c", ...fn("{}") }], /OpenAI Agents/, /format: openaiAgents`/],
  ["OpenAI Agents, results", [user, { type: "function_call_result", callId: "c", name: "read", output }], /OpenAI Agents/, /format: openaiAgents`/],
  ["TanStack AI, of the UI", [{ id: "1", role: "user", parts: [{ type: "text", content: "Hi." }] }], /TanStack AI/, /format: tanstack`/],
  ["TanStack AI, of the model", [user, { role: "assistant", content: null, toolCalls: [{ id: "c", type: "function", function: fn("{}") }] }], /TanStack AI/, /format: agui, tanstack or mistral`/],
  ["AG-UI", [{ id: "1", ...user }, { id: "2", role: "tool", toolCallId: "c", content: "x" }], /AG-UI/, /format: agui, tanstack/],
  ["Mistral", [user, { role: "assistant", content: "", toolCalls: [{ id: "c", function: fn({ path: "a" }) }] }], /Mistral/, /or mistral`/],
  ["Bedrock", [{ role: "user", content: [{ text: "Hi." }] }, { role: "assistant", content: [{ toolUse: { toolUseId: "t", name: "read", input: {} } }] }], /Bedrock/, /format: bedrock`/],
  ["Cohere", [user, { role: "tool", tool_call_id: "c", content: [{ type: "document", document: { data: "x" } }] }], /Cohere/, /format: cohere`/],
  ["Cohere, its first", [{ role: "USER", message: "Hi." }, { role: "CHATBOT", message: "Hello." }], /Cohere/, /small letters/],
  ["Ollama", [user, { role: "assistant", content: "", tool_calls: [{ function: fn({ path: "a" }) }] }], /Ollama/, /format: ollama`/],
  ["Ollama, results", [user, { role: "tool", tool_name: "read", content: "x" }], /Ollama/, /format: ollama`/],
  ["MCP", [{ role: "user", content: { type: "text", text: "Hi." } }], /MCP/, /format: mcp`/],
  ["MCP, what a tool answered", [{ content: [output], isError: false }], /MCP/, /result/],
  ["LangChain, serialized", [{ lc: 1, type: "constructor", id: ["langchain_core"], kwargs: { content: "Hi." } }], /LangChain/, /format: langchain`/],
  ["Mastra's storage", [{ id: "1", role: "user", content: { format: 2, parts: [{ type: "text", text: "Hi." }] } }], /Mastra/, /format: mastra`/],
  ["the AI SDK 4", [user, { id: "2", role: "assistant", content: "", toolInvocations: [{ state: "result", toolCallId: "c", toolName: "read", args: {}, result: "x" }] }], /AI SDK 4/, /format: aiSdk4`/],
];

for (const [name, messages, library, way] of SHAPES) {
  test(`F34, E11: messages of ${name} are told, with the way to read them`, async () => {
    const told = ({ code, message }) => {
      assert.ok(["unknown_format", "invalid_message"].includes(code), code);
      for (const words of [/this looks like/, library, way]) assert.match(message, words);
      return true;
    };
    for (const work of [detectFormat, estimateTokens, validateHistory]) await assert.rejects(async () => work(messages), told);
    await assert.rejects(compact(messages), told);
    const session = await openSession({ contextWindow: 100_000 });
    await assert.rejects(session.append(...messages), told);
    await session.close();
  });
}

test("F34: an instance of a class of LangChain names its format", async () => {
  class SystemMessage {
    lc_serializable = true;
    content = "Be brief.";
  }
  const told = { code: "unsupported_value", message: /SystemMessage.*`format: langchain`/ };
  await assert.rejects(compact([new SystemMessage()]), told);
  class Other {}
  await assert.rejects(compact([new Other()]), (error) => !error.message.includes("LangChain"));
});

test("F34: what is no array of messages is named, with what to write", async () => {
  const GIVEN = [
    [new Set([user]), /Set.*\[\.\.\.messages\]/],
    [new Map([[1, user]]), /Map.*\.values\(\)/],
    [{ messages: [user] }, /\.messages/],
    [undefined, /undefined/],
    [null, /null/],
    [user, /one message.*\[messages\]/],
    [JSON.stringify([user]), /JSON\.parse/],
    ["hello", /role: "user"/],
    [Promise.resolve([user]), /await/],
    [5, /number/],
  ];
  for (const [given, message] of GIVEN) {
    await assert.rejects(compact(given, { contextWindow: 100_000 }), { code: "invalid_message", message });
  }
});

test("F34: what is no message is named, with what to write", async () => {
  const session = await openSession({ contextWindow: 100_000 });
  const GIVEN = [
    [[user, user], "invalid_message", /append\(\.\.\.messages\)/],
    ["hello", "invalid_message", /text.*role: "user"/],
    [JSON.stringify(user), "invalid_message", /JSON\.parse/],
    [undefined, "invalid_message", /undefined/],
    [{ hello: 1 }, "unknown_format", /needs a role.*content/],
    [{ role: "robot", content: "x" }, "unknown_format", /robot.*needs a role.*content/],
  ];
  for (const [given, code, message] of GIVEN) {
    await assert.rejects(session.append(given), (error) => {
      assert.equal(error.code, code);
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /pass `format`/);
      return true;
    });
  }
  await session.close();
});
