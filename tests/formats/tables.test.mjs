/** `context-compactor/formats` over messages that the libraries themselves made, or of their documented shapes (E10, E21). */

import { MessageSchema } from "@ag-ui/core/schemas";
import { AIMessage, coerceMessageLikeToMessage, HumanMessage, mapStoredMessagesToChatMessages, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { load } from "@langchain/core/load";
import { ChatOpenAI } from "@langchain/openai";
import { MessageList } from "@mastra/core/agent";
import { SamplingMessageSchema } from "@modelcontextprotocol/core";
import { Agent, OpenAIProvider, protocol, Runner, tool as agentTool } from "@openai/agents";
import { convertMessagesToModelMessages, modelMessagesToUIMessages } from "@tanstack/ai";
import { createAgent, tool } from "langchain";
import { Ollama } from "ollama";
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { z } from "zod";
import { memoryStore, openSession } from "context-compactor";
import * as formats from "context-compactor/formats";
import { validateHistory } from "context-compactor/history";
import { formatConformance } from "context-compactor/testing";
import { fileText, provider, SUMMARIES, TASK } from "../support/agents.mjs";
import { frozen } from "../support/api.mjs";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const bytes = () => new Uint8Array(Buffer.from(PNG, "base64"));
const range = (count) => Array.from({ length: count }, (_, nth) => nth);
const schema = { type: "object", properties: { nth: { type: "integer" } }, required: ["nth"] };

/** Messages of an agent of LangChain that read three files, and what its other classes and forms look like. */
async function ofLangChain(context) {
  const server = await provider(context, { files: 3, parallel: 2 });
  const model = new ChatOpenAI({ model: "small", apiKey: "a", maxRetries: 0, configuration: { baseURL: `${server.url}/v1` } });
  const readFile = tool(({ nth }) => fileText(nth), { name: "read_file", description: "Reads a file", schema });
  const { messages } = await createAgent({ model, tools: [readFile] }).invoke({ messages: [new SystemMessage("Be brief."), new HumanMessage(TASK)] });
  assert.ok(messages.some(ToolMessage.isInstance));
  const pictures = new HumanMessage({ content: [{ type: "text", text: "Look." }, { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } }], name: "ada" });
  const blocks = new AIMessage({ content: [{ type: "text", text: "I read." }], tool_calls: [{ id: "c", name: "read_file", args: { nth: 9 }, type: "tool_call" }] });
  const all = [...messages, pictures, blocks, new ToolMessage({ tool_call_id: "c", content: fileText(9), name: "read_file", artifact: { raw: 1 } }), new AIMessage("Done.")];
  return {
    samples: [all, all.map((message) => message.toDict()), all.map((message) => message.toJSON()), all.map((message) => JSON.parse(JSON.stringify(message)))],
    accept: async (sent) => {
      const [first] = sent;
      if (first.data) return mapStoredMessagesToChatMessages(sent).forEach((message) => assert.ok(message.type));
      for (const message of sent) assert.equal(typeof (message.lc ? await load(JSON.stringify(message)) : coerceMessageLikeToMessage(message)).type, "string");
    },
  };
}

/** The history of a run of the OpenAI Agents SDK, and items that such a run does not have. */
async function ofAgents(context) {
  const server = await provider(context, { files: 3 });
  const parameters = z.object({ nth: z.number() });
  const readFile = agentTool({ name: "read_file", description: "Reads a file", parameters, execute: ({ nth }) => fileText(nth) });
  const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey: "a", baseURL: `${server.url}/v1`, useResponses: true }), tracingDisabled: true });
  const { history } = await runner.run(new Agent({ name: "reader", instructions: "You read files.", model: "small", tools: [readFile] }), TASK);
  assert.ok(history.some(({ type }) => type === "function_call_result"));
  const call = (callId, more = {}) => ({ type: "function_call", callId, name: "read_file", arguments: '{"nth":1}', status: "completed", ...more });
  const result = (callId, output) => ({ type: "function_call_result", callId, name: "read_file", status: "completed", output });
  const others = [
    { role: "user", content: [{ type: "input_text", text: "Look." }, { type: "input_image", image: `data:image/png;base64,${PNG}` }, { type: "input_image", image: { id: "file_1" } }, { type: "input_file", file: { url: "https://example.com/a.pdf" } }, { type: "audio", audio: PNG, format: "wav" }] },
    { type: "reasoning", id: "rs_1", content: [{ type: "input_text", text: "The user wants files." }], providerData: { encryptedContent: "gAAAA" } },
    call("c1", { id: "fc_9", providerData: { more: 1 } }),
    result("c1", { type: "text", text: fileText(7) }),
    call("c2", { id: "FAKE_ID" }),
    result("c2", [{ type: "input_text", text: fileText(8) }, { type: "input_image", image: `data:image/png;base64,${PNG}` }]),
    { type: "hosted_tool_call", id: "ws_1", name: "web_search_call", status: "completed", providerData: { type: "web_search_call", action: { type: "search", query: "files" } } },
    { type: "hosted_tool_call", id: "mcpr_1", name: "mcp_approval_request", status: "completed", providerData: { type: "mcp_approval_request", id: "mcpr_1", server_label: "files", name: "read", arguments: "{}" } },
    { type: "hosted_tool_call", name: "mcp_approval_response", providerData: { approve: true, approval_request_id: "mcpr_1" } },
    { type: "shell_call", callId: "s1", status: "completed", action: { commands: ["ls"], timeoutMs: 1_000 } },
    { type: "shell_call_output", callId: "s1", output: [{ stdout: fileText(6), stderr: "", outcome: { type: "exit", exitCode: 0 } }] },
    { type: "apply_patch_call", callId: "p1", status: "completed", operation: { type: "delete_file", path: "a" } },
    { type: "apply_patch_call_output", callId: "p1", status: "completed", output: "deleted" },
    { type: "computer_call", callId: "m1", status: "completed", action: { type: "screenshot" } },
    { type: "computer_call_result", callId: "m1", output: { type: "computer_screenshot", data: `data:image/png;base64,${PNG}` } },
    { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "Done." }] },
  ];
  // Models that give no ids, or one to all items of an answer.
  assert.deepEqual((await validateHistory([call("c1", { id: "FAKE_ID" }), result("c1", "a"), call("c2", { id: "FAKE_ID" }), result("c2", "b")], { format: formats.openaiAgents })).problems, []);
  assert.deepEqual(["msg_1", "fc_1"].map((id) => formats.openaiAgents.read(call("c1", { id })).id), [undefined, "fc_1"]);
  // A request for approval stays with its answer.
  const { problems } = await validateHistory([others[0], ...others.filter(({ name }) => name === "mcp_approval_response")], { format: formats.openaiAgents });
  assert.deepEqual(problems.map(({ index }) => index), [1]);
  return { samples: [history, others], accept: (sent) => sent.forEach((item) => protocol.ModelItem.parse(item)) };
}

/** Messages as Mastra stores them, and as its list converts them for version 4 of the AI SDK. */
function mastraList() {
  const list = new MessageList({ threadId: "t", resourceId: "r" });
  list.add([{ role: "user", content: TASK }], "input");
  list.add([{ role: "user", content: [{ type: "text", text: "Look." }, { type: "file", data: PNG, mediaType: "image/png" }] }], "input");
  for (const nth of range(3)) {
    const id = `c${nth}`;
    const said = [{ type: "reasoning", text: "I should read on." }, { type: "text", text: `I read file ${nth}.` }];
    list.add([{ role: "assistant", content: [...said, { type: "tool-call", toolCallId: id, toolName: "read_file", input: { nth } }] }], "response");
    list.add([{ role: "tool", content: [{ type: "tool-result", toolCallId: id, toolName: "read_file", output: { type: "text", value: fileText(nth) } }] }], "response");
    list.add([{ role: "assistant", content: [{ type: "text", text: `File ${nth} was read.` }] }], "response");
    list.add([{ role: "user", content: `And file ${nth + 1}?` }], "input");
  }
  list.add([{ role: "assistant", content: "No error." }], "response");
  return list;
}

function ofMastra() {
  const accept = (sent) => assert.ok(new MessageList().add(sent, "memory").get.all.aiV5.model().length >= 2);
  return { samples: [mastraList().get.all.db()], accept };
}

function ofAiSdk4() {
  const { ui, core } = mastraList().get.all.aiV4;
  // Older ones have no parts.
  const old = ui().map(({ parts: _, ...message }) => message);
  const signed = [
    { role: "user", content: "Think." },
    { role: "assistant", content: [{ type: "reasoning", text: "Hm.", signature: "c2ln" }, { type: "redacted-reasoning", data: "eA==" }, { type: "tool-call", toolCallId: "c", toolName: "look", args: {} }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: "c", toolName: "look", result: { found: fileText(4) }, isError: true }] },
    { role: "assistant", content: "Done." },
  ];
  const accept = (sent) => assert.ok(new MessageList().add(sent, "memory").get.all.aiV5.model().length >= 2);
  return { samples: [ui(), core(), old, signed], accept };
}

function ofTanStack() {
  const call = (nth) => ({ id: `c${nth}`, type: "function", function: { name: "read_file", arguments: JSON.stringify({ nth }) }, metadata: { own: nth } });
  const hosted = { id: "h", type: "function", function: { name: "web_search", arguments: "{}" }, metadata: { providerExecuted: true, found: fileText(3) } };
  const model = [
    { role: "user", content: TASK },
    { role: "user", content: [{ type: "text", content: "Look." }, { type: "image", source: { type: "data", value: PNG, mimeType: "image/png" } }, { type: "image", source: { type: "url", value: "https://example.com/a.png" } }] },
    { role: "assistant", content: "I read.", toolCalls: [hosted, call(0), call(1)], thinking: [{ content: "Hm.", signature: "c2ln" }] },
    { role: "tool", name: "read_file", toolCallId: "c0", content: fileText(0) },
    { role: "tool", toolCallId: "c1", content: [{ type: "text", content: fileText(1) }], error: undefined },
    { role: "assistant", content: null, toolCalls: [call(2)] },
    { role: "tool", toolCallId: "c2", content: "no such file", error: "no such file" },
    { role: "assistant", content: "Done." },
  ].map((message) => JSON.parse(JSON.stringify(message)));
  const ui = modelMessagesToUIMessages(model);
  assert.ok(ui.some(({ parts }) => parts.some(({ type }) => type === "tool-result")));
  const client = { type: "tool-call", id: "k", name: "ask_user", arguments: "{}", input: {}, state: "complete", output: { answer: fileText(5) } };
  const own = [{ id: "u1", role: "user", parts: [{ type: "text", content: "Ask." }] }, { id: "a1", role: "assistant", createdAt: new Date(0), parts: [{ type: "thinking", content: "Hm." }, client, { type: "text", content: "Thanks." }] }];
  // Those of the interface are found in its own messages by their calls.
  const accept = (sent) => convertMessagesToModelMessages(sent).forEach(({ role, content }) => assert.ok(["user", "assistant", "tool"].includes(role) && content !== undefined));
  return { samples: [model, ui, own], accept };
}

function ofAgUi() {
  const toolCall = (nth) => ({ id: `c${nth}`, type: "function", function: { name: "read_file", arguments: JSON.stringify({ nth }) } });
  const messages = [
    { id: "0", role: "system", content: "Be brief." },
    { id: "1", role: "user", content: TASK },
    { id: "2", role: "user", name: "ada", content: [{ type: "text", text: "Look." }, { type: "binary", mimeType: "image/png", data: PNG }, { type: "image", source: { type: "url", value: "https://example.com/a.png" } }, { type: "document", source: { type: "data", value: PNG, mimeType: "application/pdf" } }] },
    { id: "3", role: "reasoning", content: "The user wants files.", encryptedValue: "gAAAA" },
    { id: "4", role: "assistant", toolCalls: [toolCall(0), toolCall(1)] },
    { id: "5", role: "tool", toolCallId: "c0", content: fileText(0) },
    { id: "6", role: "tool", toolCallId: "c1", content: "no such file", error: "no such file" },
    { id: "7", role: "activity", activityType: "PLAN", content: { steps: ["read", "say"] } },
    { id: "8", role: "assistant", content: "Done." },
  ];
  return { samples: [messages], accept: (sent) => sent.forEach((message) => MessageSchema.parse(message)) };
}

function ofMistral() {
  const toolCall = (nth, id = `c${nth}`) => ({ ...(id ? { id } : {}), type: "function", function: { name: "read_file", arguments: nth % 2 ? { nth } : JSON.stringify({ nth }) }, index: 0 });
  return {
    samples: [
      [
        { role: "system", content: "Be brief." },
        { role: "user", content: [{ type: "text", text: "Look." }, { type: "image_url", imageUrl: `data:image/png;base64,${PNG}` }, { type: "document_url", documentUrl: "https://example.com/a.pdf", documentName: "a" }] },
        { role: "assistant", content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm." }] }, { type: "text", text: "I read." }], toolCalls: [toolCall(0), toolCall(1)], prefix: false },
        { role: "tool", toolCallId: "c0", name: "read_file", content: fileText(0) },
        { role: "tool", toolCallId: "c1", name: "read_file", content: [{ type: "text", text: fileText(1) }] },
        { role: "assistant", content: "Done." },
      ],
      [{ role: "user", content: TASK }, { role: "assistant", content: "", toolCalls: [toolCall(2, "null")] }, { role: "tool", name: "read_file", content: fileText(2) }, { role: "assistant", content: "Done." }],
    ],
    accept: (sent) => sent.forEach((message) => assert.ok(!("tool_calls" in message || "tool_call_id" in message), JSON.stringify(message))),
  };
}

function ofBedrock() {
  const use = (nth) => ({ toolUse: { toolUseId: `t${nth}`, name: "read_file", input: { nth } } });
  const messages = [
    { role: "user", content: [{ text: TASK }, { image: { format: "png", source: { bytes: bytes() } } }, { document: { format: "pdf", name: "a", source: { s3Location: { uri: "s3://b/a.pdf" } } } }, { cachePoint: { type: "default" } }] },
    { role: "assistant", content: [{ reasoningContent: { reasoningText: { text: "Hm.", signature: "c2ln" } } }, { text: "I read." }, use(0), use(1)] },
    { role: "user", content: [{ toolResult: { toolUseId: "t0", content: [{ json: { text: fileText(0) } }], status: "success" } }, { toolResult: { toolUseId: "t1", content: [{ text: fileText(1) }, { image: { format: "png", source: { bytes: bytes() } } }] } }] },
    { role: "assistant", content: [use(2)] },
    { role: "user", content: [{ toolResult: { toolUseId: "t2", content: [{ text: "no such file" }], status: "error" } }, { guardContent: { text: { text: "And now?" } } }] },
    { role: "assistant", content: [{ citationsContent: { content: [{ text: "Done." }], citations: [] } }] },
  ];
  const kinds = new Set(["text", "image", "document", "toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent", "citationsContent"]);
  const checkBlock = (block) => assert.ok(Object.keys(block).length === 1 && kinds.has(Object.keys(block)[0]), JSON.stringify(block).slice(0, 200));
  return { samples: [messages], accept: (sent) => sent.forEach(({ content }) => content.forEach(checkBlock)) };
}

async function ofOllama(context) {
  const call = (nth, name = "read_file") => ({ function: { name, arguments: { nth } } });
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Look.", images: [PNG] },
    { role: "user", content: TASK, images: [bytes()] },
    { role: "assistant", content: "", thinking: "I read two.", tool_calls: [call(0), call(5, "list_files"), call(1)] },
    { role: "tool", tool_name: "read_file", content: fileText(0) },
    { role: "tool", tool_name: "read_file", content: fileText(1) },
    { role: "tool", tool_name: "list_files", content: fileText(5) },
    { role: "assistant", content: "", tool_calls: [call(2)] },
    { role: "tool", tool_name: "read_file", content: fileText(2) },
    { role: "assistant", content: "Done." },
  ];
  const requests = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    requests.push(JSON.parse(text));
    response.end(JSON.stringify({ message: { role: "assistant", content: "Yes." }, done: true }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close());
  const client = new Ollama({ host: `http://127.0.0.1:${server.address().port}` });
  return {
    samples: [messages],
    async accept(sent) {
      await client.chat({ model: "small", messages: sent });
      for (const { role, content, tool_calls: calls = [], tool_name: name, ...more } of requests.at(-1).messages) {
        assert.equal(typeof content, "string");
        assert.deepEqual(Object.keys(more).filter((key) => !["thinking", "images"].includes(key)), []);
        assert.equal(role === "tool", name !== undefined, JSON.stringify({ role, name }));
        for (const made of calls) assert.deepEqual([Object.keys(made), typeof made.function.arguments], [["function"], "object"]);
      }
    },
  };
}

function ofCohere() {
  const toolCall = (nth) => ({ id: `c${nth}`, type: "function", function: { name: "read_file", arguments: JSON.stringify({ nth }) } });
  const documents = [{ type: "document", document: { id: "d", data: { text: fileText(1) } } }, { type: "text", text: "Two." }];
  const api = [
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "text", text: TASK }, { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } }] },
    { role: "assistant", tool_plan: "I will read both files.", tool_calls: [toolCall(0), toolCall(1)] },
    { role: "tool", tool_call_id: "c0", content: fileText(0) },
    { role: "tool", tool_call_id: "c1", content: documents },
    { role: "assistant", content: [{ type: "text", text: "Done." }], citations: [{ start: 0, end: 4, text: "Done" }] },
  ];
  const camel = (value) => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(camel);
    return Object.fromEntries(Object.entries(value).map(([key, field]) => [key.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), camel(field)]));
  };
  const accept = (sent) => {
    const keys = new Set(sent.flatMap((message) => Object.keys(message)));
    assert.ok(!(keys.has("toolCalls") && keys.has("tool_calls")), [...keys].join());
    for (const { role, content } of sent) assert.ok(typeof content === "string" || Array.isArray(content) || role === "assistant");
  };
  return { samples: [api, camel(api)], accept };
}

function ofMcp() {
  const use = (nth) => ({ type: "tool_use", id: `t${nth}`, name: "read_file", input: { nth } });
  const messages = [
    { role: "user", content: { type: "text", text: TASK } },
    { role: "assistant", content: { type: "text", text: "I look." } },
    { role: "user", content: { type: "image", data: PNG, mimeType: "image/png" } },
    { role: "assistant", content: [{ type: "text", text: "I read." }, use(0), use(1)] },
    { role: "user", content: [{ type: "tool_result", toolUseId: "t0", content: [{ type: "text", text: fileText(0) }] }, { type: "tool_result", toolUseId: "t1", content: [{ type: "text", text: "no" }], isError: true }] },
    { role: "assistant", content: use(2) },
    { role: "user", content: { type: "tool_result", toolUseId: "t2", content: [], structuredContent: { text: fileText(2) } } },
    { role: "assistant", content: { type: "text", text: "Done." } },
  ];
  const accept = (sent) => {
    for (const message of sent) {
      SamplingMessageSchema.parse(message);
      // Clients from before there were tools take one block alone.
      assert.ok(!Array.isArray(message.content) || message.content.length > 1);
    }
  };
  return { samples: [messages], accept };
}

function ofChrome() {
  const messages = [
    { role: "system", content: "Be brief." },
    ...range(4).flatMap((nth) => [
      { role: "user", content: [{ type: "text", value: fileText(nth) }, { type: "image", value: bytes() }] },
      { role: "assistant", content: `File ${nth} has no error.` },
    ]),
  ];
  const checkBlock = ({ type, value, ...more }) => assert.deepEqual([["text", "image", "audio"].includes(type), value !== undefined, more], [true, true, {}]);
  return { samples: [messages], accept: (sent) => sent.forEach(({ content }) => Array.isArray(content) && content.forEach(checkBlock)) };
}

const LIBRARIES = {
  langchain: ofLangChain,
  openaiAgents: ofAgents,
  mastra: ofMastra,
  aiSdk4: ofAiSdk4,
  tanstack: ofTanStack,
  agui: ofAgUi,
  mistral: ofMistral,
  bedrock: ofBedrock,
  ollama: ofOllama,
  cohere: ofCohere,
  mcp: ofMcp,
  chrome: ofChrome,
};

test("E10 every format of the entry is tested here, has the name that it is imported by, and is named where its name is given", async () => {
  assert.deepEqual(Object.keys(formats).sort(), Object.keys(LIBRARIES).sort());
  for (const [name, format] of Object.entries(formats)) {
    assert.equal(format.name, name);
    await assert.rejects(openSession({ format: name }), { code: "invalid_option", message: new RegExp(`import \\{ ${name} \\} from`) });
  }
});

/** A summary of about a tenth of what is summarized. */
const summarize = async ({ messages }) => range(Math.min(60, Math.ceil(messages[0].content.length / 300))).map((nth) => `File ${nth} was read, and line ${nth} of it has no error.`).join(" ");

/** The same history again and again, with a question of its own each time. */
const again = (messages, times) => range(times).flatMap(() => messages.map((message) => copyOf(message)));
/** Some libraries write into what they are given. */
const copyOf = (message) => (message.lc_kwargs ? new message.constructor({ ...message.lc_kwargs, id: message.id }) : structuredClone(message));

for (const [name, of] of Object.entries(LIBRARIES)) {
  test(`E10 ${name}: conformance`, async (context) => {
    const { samples } = await of(context);
    for (const { name: check, run } of formatConformance(formats[name], samples)) await context.test(check, run);
  });

  test(`E10, E21 ${name}: results are stored outside, a summary is written, and the library takes what is sent`, async (context) => {
    const { samples, accept } = await of(context);
    const format = formats[name];
    for (const sample of samples) {
      const messages = again(sample, Math.ceil(40 / sample.length));
      await accept(messages.map(copyOf));
      for (const message of messages) if (!message.lc_kwargs) frozen(message);
      const hasResults = name !== "chrome";
      const ways = {
        offload: { preset: "offload", contextWindow: 1_000_000, compactAt: { tokens: 1_000 }, offload: { minChars: 500 }, keep: { messages: 6 } },
        summary: { ...SUMMARIES, contextWindow: 8_000, keep: { messages: 6 }, summarize },
      };
      for (const [way, options] of Object.entries(ways)) {
        if (way === "offload" && !hasResults) continue;
        const store = memoryStore();
        const open = () => openSession({ ...options, format, id: "one", store });
        const session = await open();
        await session.sync(messages);
        const { messages: sent, edits } = await session.prepare();
        assert.ok(edits.some(({ kind }) => kind === (way === "offload" ? "offload" : "summarize")), `${way}: ${JSON.stringify(edits).slice(0, 200)}`);
        await accept(sent.map(copyOf));
        assert.deepEqual((await validateHistory(sent, { format })).problems, []);
        // Recognized as JSON, whatever this library's instances are then.
        const { appended, branchedAt } = await session.sync(messages.map((message) => (message.lc_kwargs ? JSON.parse(JSON.stringify(message)) : structuredClone(message))));
        assert.deepEqual([appended, branchedAt], [0, undefined], way);
        await session.close();
        const later = await open();
        const { messages: fromStore } = await later.prepare();
        await accept(fromStore.map(copyOf));
        assert.equal(fromStore.length, sent.length);
        await later.close();
      }
    }
  });
}
