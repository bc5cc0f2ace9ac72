/**
 * A provider for an agent that reads files, as strict as the real ones: it counts each prompt, refuses one that is too long with
 * the provider's own error, and one with a call or a result alone. It speaks Chat Completions, Responses and Anthropic
 * Messages, streamed or not.
 */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

export const WINDOW = 16_000;
/** Options that fit it. */
export const OPTIONS = { contextWindow: WINDOW, maxOutputTokens: 1_000 };
export const TASK = "Read the files 0 to 59, one by one, and say which of them mention an error.";
export const DONE = "All files were read. Files 9, 18 and 27 mention an error.";
/** A summary that is good enough for what is summarized. */
export const SUMMARY = `## Goal
The user wants the files 0 to 59 read one by one, and to know at the end which of them mention an error.
## State
The files so far were read with read_file, in order. Each has lines such as src/module9/part7.ts: value 907 is new; most lines say
"as expected", and in each file the lines whose number is a multiple of 7 say "new". Nothing was changed. File 9 mentions an error,
and so does file 18. The work stopped after the result of the last file was read; the next one was about to be read.
## Decisions
The files are read by their number, one call for each, because the user asked for them one by one. Values are the number of the
file times 100, and the number of the line.
## What failed
-
## Next
Reading all files: not done, those after the last one are missing. Naming the files that mention an error: not done.`;

/** About 650 tokens: what the tool returns for a file. */
export function fileText(nth) {
  const lines = Array.from({ length: 48 }, (_, line) => `src/module${nth}/part${line}.ts: value ${nth * 100 + line} is ${line % 7 ? "as expected" : "new"}`);
  return lines.join("\n").slice(0, 2_600);
}

/** What the requests of each protocol have, and how they are answered. */
const APIS = {
  "/v1/chat/completions": { prompt: ({ messages }) => messages, events: chatEvents, error: openaiError, answer: chatAnswer, stream: chatStream },
  "/v1/responses": { prompt: ({ instructions, input }) => [instructions ?? "", ...input], events: itemEvents, error: openaiError, answer: responsesAnswer, stream: responsesStream },
  "/v1/messages": { prompt: ({ system, messages }) => [system ?? "", ...messages], events: blockEvents, error: anthropicError, answer: messagesAnswer, stream: messagesStream },
};

/**
 * Resolves to `{ url, requests, close }`. Each key is an agent of its own, which calls `read_file` `files` times, `parallel` at
 * once, and then answers; after that every question has a short answer. A request without tools, and for no format, asks for a summary. `overflowAt`
 * and `errorAt` are numbers of calls that are refused once; a summary takes `summaryMs`, and `pauseMs` is between the pieces of a
 * stream. With `inStream` a refusal comes as an event, as Responses has it. `requests` holds `{ key, kind, tokens, counted, problems, status, body, isAborted }`:
 * `tokens` are of the messages, `counted` of the whole request, which is what the answer says.
 */
export async function serveAgent({ files = 60, parallel = 1, overflowAt, errorAt, summaryMs = 0, pauseMs = 0, tool = "read_file", inStream = false, script } = {}) {
  const requests = [];
  const read = new Map();
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    const api = APIS[request.url.replace(/\?.*/, "")];
    const json = (status, value) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (!api) return json(404, { error: { message: `there is no ${request.url}` } });
    const body = JSON.parse(text);
    const key = request.headers["x-api-key"] ?? request.headers.authorization?.replace("Bearer ", "");
    const prompt = api.prompt(body);
    const kind = body.tools?.length || body.response_format ? "agent" : "summary";
    const tokens = Math.round(JSON.stringify(prompt).length / 4);
    const entry = { key, kind, tokens, problems: unpaired(api.events(prompt)), status: 200, body, isAborted: false };
    requests.push(entry);
    response.on("close", () => (entry.isAborted = !response.writableEnded));
    const nth = requests.filter((each) => each.key === key && each.kind === kind).length;
    const refuse = (status, code, message) => {
      entry.status = status;
      if (!inStream) return json(status, api.error(code, message));
      const error = { type: "error", sequence_number: 0, error: { type: "invalid_request_error", code, message } };
      response.writeHead(200, { "content-type": "text/event-stream" }).end(`event: error\ndata: ${JSON.stringify(error)}\n\n`);
    };
    if (kind === "agent" && nth === errorAt) return refuse(400, "invalid_value", "The value of temperature is not supported.");
    if (tokens > WINDOW || (kind === "agent" && nth === overflowAt)) return refuse(400, "context_length_exceeded", tooLong(api, tokens));
    if (entry.problems.length > 0) return refuse(400, "invalid_request", entry.problems.join("; "));
    if (kind === "summary") await sleep(summaryMs);
    const usage = { input: (entry.counted = Math.round(text.length / 4)), output: 20 };
    const done = read.get(key) ?? 0;
    const count = kind === "agent" ? Math.min(parallel, files - done) : 0;
    const calls = Array.from({ length: count }, (_, at) => ({ id: `call_${key}_${done + at}`, name: tool, input: { nth: done + at } }));
    read.set(key, done + count);
    const own = kind === "agent" ? script?.(nth, body) : undefined;
    const say = { calls, text: kind === "summary" ? SUMMARY : count > 0 ? "" : DONE, ...own };
    if (!body.stream) return json(200, api.answer(body, say, usage));
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of api.stream(body, say, usage)) {
      if (response.destroyed) return;
      response.write(`${event.type && !event.object ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
      if (pauseMs > 0) await sleep(pauseMs);
    }
    response.end(request.url.startsWith("/v1/chat") ? "data: [DONE]\n\n" : "");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    /** What there was of one agent, or of all. */
    figures(key) {
      const own = requests.filter((each) => key === undefined || each.key === key);
      const agent = own.filter(({ kind }) => kind === "agent");
      const answered = agent.filter(({ status }) => status === 200);
      return {
        calls: answered.length,
        refused: agent.length - answered.length,
        largest: Math.max(...answered.map(({ tokens }) => tokens)),
        problems: own.flatMap(({ problems }) => problems),
        summaries: own.length - agent.length,
      };
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

const tooLong = (api, tokens) =>
  api.error === anthropicError
    ? `prompt is too long: ${tokens} tokens > ${WINDOW} maximum`
    : `This model's maximum context length is ${WINDOW} tokens. However, your messages resulted in ${tokens} tokens.`;

/** Some SDKs take two messages of one id for one. */
const newId = (kind) => `${kind}_${randomUUID()}`;

/** Calls without a result and results without a call, in the order of the prompt. */
function unpaired(events) {
  const problems = [];
  let open = [];
  for (const { call, result } of events) {
    if (call) open.push(call);
    else if (result && open.includes(result)) open = open.filter((id) => id !== result);
    else if (result) problems.push(`the result ${result} has no call`);
    else if (open.length > 0) {
      problems.push(`the calls ${open.join(", ")} have no result`);
      open = [];
    }
  }
  if (open.length > 0) problems.push(`the calls ${open.join(", ")} have no result`);
  return problems;
}

function chatEvents(messages) {
  return messages.flatMap(({ role, tool_calls: calls, tool_call_id: result }) => {
    if (role === "tool") return [{ result }];
    return [{}, ...(calls ?? []).map(({ id }) => ({ call: id }))];
  });
}

function itemEvents(items) {
  return items.map(({ type, call_id: id }) => (type === "function_call" ? { call: id } : type === "function_call_output" ? { result: id } : {}));
}

function blockEvents(messages) {
  return messages.flatMap(({ content }) => {
    const blocks = Array.isArray(content) ? content : [{}];
    return blocks.map(({ type, id, tool_use_id: result }) => (type === "tool_use" ? { call: id } : type === "tool_result" ? { result } : {}));
  });
}

function openaiError(code, message) {
  return { error: { message, type: "invalid_request_error", param: "messages", code } };
}

function anthropicError(_, message) {
  return { type: "error", error: { type: "invalid_request_error", message } };
}

// ---- Chat Completions ---------------------------------------------------------------------------------------

const toolCall = ({ id, name, input }, index) => ({ index, id, type: "function", function: { name, arguments: JSON.stringify(input) } });
const chatUsage = ({ input, output }) => ({ prompt_tokens: input, completion_tokens: output, total_tokens: input + output });

function chatAnswer({ model }, { text, calls }, usage) {
  const called = calls.length > 0 ? { tool_calls: calls.map((call) => ({ ...toolCall(call), index: undefined })) } : {};
  const message = { role: "assistant", content: text || null, refusal: null, ...called };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: calls.length > 0 ? "tool_calls" : "stop" }];
  return { id: newId("chatcmpl"), object: "chat.completion", created: 1_700_000_000, model, choices, usage: chatUsage(usage) };
}

function* chatStream({ model, stream_options: options }, { text, calls }, usage) {
  const id = newId("chatcmpl");
  const chunk = (delta, finish_reason = null) => ({
    id,
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model,
    choices: [{ index: 0, delta, finish_reason }],
  });
  yield chunk({ role: "assistant", content: "" });
  for (const piece of text.match(/.{1,12}/gs) ?? []) yield chunk({ content: piece });
  for (const [at, call] of calls.entries()) yield chunk({ tool_calls: [toolCall(call, at)] });
  yield chunk({}, calls.length > 0 ? "tool_calls" : "stop");
  if (options?.include_usage) yield { ...chunk({}), choices: [], usage: chatUsage(usage) };
}

// ---- Responses ------------------------------------------------------------------------------------------------

function responsesAnswer({ model }, { text, calls }, { input, output }) {
  const items = calls.map(({ id, name, input }) => ({ id: `fc_${id}`, type: "function_call", call_id: id, name, arguments: JSON.stringify(input), status: "completed" }));
  const content = [{ type: "output_text", text, annotations: [] }];
  const message = { id: newId("msg"), type: "message", role: "assistant", status: "completed", content };
  return {
    ...{ id: newId("resp"), object: "response", created_at: 1_700_000_000, status: "completed", model, error: null, incomplete_details: null },
    output: text ? [...items, message] : items,
    usage: { input_tokens: input, output_tokens: output, total_tokens: input + output, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
  };
}

function* responsesStream(body, say, usage) {
  const { object: _, ...whole } = responsesAnswer(body, say, usage);
  let sequence_number = 0;
  const event = (type, fields) => ({ type, sequence_number: sequence_number++, ...fields });
  yield event("response.created", { response: { ...whole, output: [], usage: null, status: "in_progress" } });
  for (const [output_index, item] of whole.output.entries()) {
    const isCall = item.type === "function_call";
    yield event("response.output_item.added", { output_index, item: { ...item, ...(isCall ? { arguments: "" } : { content: [] }), status: "in_progress" } });
    const at = { output_index, item_id: item.id };
    if (isCall) yield event("response.function_call_arguments.delta", { ...at, delta: item.arguments });
    else {
      yield event("response.content_part.added", { ...at, content_index: 0, part: { ...item.content[0], text: "" } });
      for (const delta of say.text.match(/.{1,12}/gs) ?? []) yield event("response.output_text.delta", { ...at, content_index: 0, delta });
    }
    yield event("response.output_item.done", { output_index, item });
  }
  yield event("response.completed", { response: whole });
}

// ---- Anthropic Messages -----------------------------------------------------------------------------------------

function messagesAnswer({ model }, { text, calls }, { input, output }) {
  const content = [...(text ? [{ type: "text", text }] : []), ...calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input }))];
  return {
    ...{ id: newId("msg"), type: "message", role: "assistant", model, content, stop_reason: calls.length > 0 ? "tool_use" : "end_turn", stop_sequence: null },
    usage: { input_tokens: input, output_tokens: output },
  };
}

function* messagesStream(body, say, usage) {
  const { content, stop_reason, ...whole } = messagesAnswer(body, say, usage);
  yield { type: "message_start", message: { ...whole, content: [], stop_reason: null, usage: { input_tokens: usage.input, output_tokens: 1 } } };
  for (const [index, block] of content.entries()) {
    const isCall = block.type === "tool_use";
    yield { type: "content_block_start", index, content_block: isCall ? { ...block, input: {} } : { type: "text", text: "" } };
    const deltas = isCall
      ? [{ type: "input_json_delta", partial_json: JSON.stringify(block.input) }]
      : (block.text.match(/.{1,12}/gs) ?? []).map((text) => ({ type: "text_delta", text }));
    for (const delta of deltas) yield { type: "content_block_delta", index, delta };
    yield { type: "content_block_stop", index };
  }
  yield { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: usage.output } };
  yield { type: "message_stop" };
}

/** Nothing but summaries makes room, and each is waited for. */
export const SUMMARIES = { ...OPTIONS, background: false, offload: false, clear: false, admit: false, digest: false };

/** The mock server, as long as the test runs. */
export async function provider(context, options) {
  const server = await serveAgent(options);
  context.after(() => server.close());
  return server;
}

/** What every run must come to: all calls made, each in the window, with no broken pair and few summaries. */
export function holds({ calls, largest, problems, summaries, refused }, { total = 61, refusals = 0 } = {}) {
  assert.deepEqual([calls, problems, refused], [total, [], refusals]);
  assert.ok(largest <= WINDOW, `${largest} tokens`);
  assert.ok(summaries <= 6, `${summaries} summaries`);
}

/** The log of a session. */
export async function logOf(session) {
  const log = [];
  for await (const message of session.archive.history()) log.push(message);
  return log;
}
