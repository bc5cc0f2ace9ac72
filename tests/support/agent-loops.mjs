/** The loops that an app writes by hand around the clients of providers: each reads files until the model is done. */

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import OpenAI6 from "openai6";
import { fileText, TASK } from "./agents.mjs";

const parameters = { type: "object", properties: { nth: { type: "integer" } }, required: ["nth"] };
const description = "Reads a file";
const SYSTEM = "You read files.";

const clientOf = (Client) => (url, key, fetch) => new Client({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0, ...(fetch ? { fetch } : {}) });
const openai = clientOf(OpenAI);
const anthropic = (url, key, fetch) => new Anthropic({ apiKey: key, baseURL: url, maxRetries: 0, ...(fetch ? { fetch } : {}) });

/**
 * What each protocol needs: the `client`, a first history, one `call` that resolves to the messages that the answer adds and the
 * calls in it, and the messages of results.
 */
export const PROTOCOLS = {
  "openai chat": {
    client: openai,
    begin: () => [{ role: "system", content: SYSTEM }, { role: "user", content: TASK }],
    async call(client, messages, { stream, signal }) {
      const tools = [{ type: "function", function: { name: "read_file", description, parameters } }];
      const body = { model: "small", messages, tools };
      const { choices } = stream
        ? await client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }, { signal }).finalChatCompletion()
        : await client.chat.completions.create(body, { signal });
      const { message } = choices[0];
      return { added: [message], calls: (message.tool_calls ?? []).map(({ id, function: { arguments: text } }) => ({ id, input: JSON.parse(text) })) };
    },
    results: (results) => results.map(({ id, text }) => ({ role: "tool", tool_call_id: id, content: text })),
  },
  "openai responses": {
    client: openai,
    begin: () => [{ role: "user", content: TASK }],
    async call(client, input, { stream, signal }) {
      const tools = [{ type: "function", name: "read_file", description, parameters, strict: false }];
      const body = { model: "small", instructions: SYSTEM, input, tools, store: false };
      const { output } = stream ? await client.responses.stream(body, { signal }).finalResponse() : await client.responses.create(body, { signal });
      const calls = output.filter(({ type }) => type === "function_call");
      return { added: output, calls: calls.map(({ call_id: id, arguments: text }) => ({ id, input: JSON.parse(text) })) };
    },
    results: (results) => results.map(({ id, text }) => ({ type: "function_call_output", call_id: id, output: text })),
  },
  anthropic: {
    client: anthropic,
    begin: () => [{ role: "user", content: TASK }],
    async call(client, messages, { stream, signal }) {
      const tools = [{ name: "read_file", description, input_schema: parameters }];
      const body = { model: "small", max_tokens: 1_000, system: [{ type: "text", text: SYSTEM, cache_control: { type: "ephemeral" } }], messages, tools };
      const { role, content } = stream ? await client.messages.stream(body, { signal }).finalMessage() : await client.messages.create(body, { signal });
      return { added: [{ role, content }], calls: content.filter(({ type }) => type === "tool_use") };
    },
    results: (results) => [{ role: "user", content: results.map(({ id, text }) => ({ type: "tool_result", tool_use_id: id, content: text })) }],
  },
};

/** The same by the oldest clients that are supported. */
export const OLDER = {
  "openai 6 chat": { ...PROTOCOLS["openai chat"], client: clientOf(OpenAI6) },
  "openai 6 responses": { ...PROTOCOLS["openai responses"], client: clientOf(OpenAI6) },
};

/** Runs an agent to its end, or for `turns` calls; resolves to its messages, which it began with. */
export async function runAgent(protocol, client, { messages = protocol.begin(), turns = Infinity, between, ...options } = {}) {
  for (let turn = 0; turn < turns; turn++) {
    const { added, calls } = await protocol.call(client, messages, options);
    messages.push(...added);
    if (calls.length === 0) break;
    messages.push(...protocol.results(calls.map(({ id, input }) => ({ id, text: fileText(input.nth) }))));
    messages = between?.(messages) ?? messages;
  }
  return messages;
}
