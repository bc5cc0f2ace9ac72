/** Chat Completions messages in the shapes that other libraries take, and back, for what is counted in one way for all. */

import { langchain } from "context-compactor/formats";

/** @param {any} core `@langchain/core/messages` */
export function toLangchain({ AIMessage, HumanMessage, ToolMessage }) {
  return ({ role, content, tool_calls = [], tool_call_id }) => {
    if (role === "tool") return new ToolMessage({ content, tool_call_id });
    if (role === "user") return new HumanMessage(content);
    return new AIMessage({ content: content ?? "", tool_calls: tool_calls.map(({ id, function: { name, arguments: args } }) => ({ id, name, args: parsed(args), type: "tool_call" })) });
  };
}

export const fromLangchain = once((message) => [langchain.read(message)]);

/** A maker of model messages of the AI SDK, which name the tool in its result too. */
export function toModelMessage() {
  const names = new Map();
  return ({ role, content, tool_calls = [], tool_call_id }) => {
    if (role === "tool") {
      const toolName = names.get(tool_call_id) ?? "read_file";
      return { role, content: [{ type: "tool-result", toolCallId: tool_call_id, toolName, output: { type: "text", value: content } }] };
    }
    for (const { id, function: { name } } of tool_calls) names.set(id, name);
    if (role === "user" || tool_calls.length === 0) return { role, content: content ?? "" };
    const called = tool_calls.map(({ id, function: { name, arguments: args } }) => ({ type: "tool-call", toolCallId: id, toolName: name, input: parsed(args) }));
    return { role, content: [...(content ? [{ type: "text", text: content }] : []), ...called] };
  };
}

export const fromModelMessage = once(({ role, content }) => {
  if (typeof content === "string") return [{ role, content }];
  if (role === "tool") return content.map(({ toolCallId, output }) => ({ role, tool_call_id: toolCallId, content: output.value }));
  const text = content.filter(({ type }) => type === "text").map(({ text }) => text).join("\n");
  const called = content.filter(({ type }) => type === "tool-call");
  if (called.length === 0) return [{ role, content: text }];
  return [{ role, content: text || null, tool_calls: called.map(({ toolCallId, toolName, input }) => ({ id: toolCallId, type: "function", function: { name: toolName, arguments: JSON.stringify(input) } })) }];
});

/** Items of the OpenAI Agents SDK. */
export function toItems() {
  const names = new Map();
  return ({ role, content, tool_calls = [], tool_call_id }) => {
    if (role === "tool") return [{ type: "function_call_result", name: names.get(tool_call_id) ?? "read_file", callId: tool_call_id, status: "completed", output: { type: "text", text: content } }];
    if (role === "user") return [{ type: "message", role, content }];
    const said = content ? [{ type: "message", role, status: "completed", content: [{ type: "output_text", text: content }] }] : [];
    return [
      ...said,
      ...tool_calls.map(({ id, function: { name, arguments: args } }) => {
        names.set(id, name);
        return { type: "function_call", callId: id, name, status: "completed", arguments: args };
      }),
    ];
  };
}

export const fromItem = once(({ type, role, content, callId, name, arguments: args, output }) => {
  if (type === "function_call_result") return [{ role: "tool", tool_call_id: callId, content: output.text }];
  if (type === "function_call") return [{ role: "assistant", content: null, tool_calls: [{ id: callId, type: "function", function: { name, arguments: args } }] }];
  return [{ role, content: typeof content === "string" ? content : content.map(({ text }) => text).join("\n") }];
});

/** Arguments of a call; what is no JSON is one text. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return { text };
  }
}

/** A function whose answers are kept, so that a message is counted once. */
function once(read) {
  const known = new WeakMap();
  return (message) => {
    if (!known.has(message)) known.set(message, read(message));
    return known.get(message);
  };
}
