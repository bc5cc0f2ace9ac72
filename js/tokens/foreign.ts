/** Shapes of messages that are no format of ours: which library's they look like, and how to have them read
 *  (`crates/wire/src/foreign.rs`). */

import { given, has, isObject, listIn, textIn } from "./values.js";

type IsIt = (message: unknown) => boolean;

const isType = (value: unknown, types: string): boolean => {
  const type = textIn(value, "type");
  return type !== undefined && types.split(" ").includes(type);
};
const isRole = (message: unknown, roles: string): boolean => roles.split(" ").includes(textIn(message, "role") ?? " ");
const hasAny = (value: unknown, keys: string): boolean => keys.split(" ").some((key) => has(value, key));

/** Names, what to pass as `format` or else to do, and how to tell; the first that fits is named. */
const SHAPES: [name: string, fix: string, isIt: IsIt][] = [
  ["an item of the OpenAI Agents SDK", "openaiAgents", (it) => has(it, "callId") && has(it, "type")],
  ["a serialized message of LangChain", "langchain", (it) => has(it, "lc") || (isType(it, "human ai constructor") && !has(it, "role"))],
  ["a message of Mastra's storage", "mastra", (it) => has(given(it, "content"), "format") && has(given(it, "content"), "parts")],
  [
    "a UI message of TanStack AI",
    "tanstack",
    (it) =>
      listIn(it, "parts").some((part) =>
        isType(part, "text") ? !has(part, "text") && has(part, "content") : (isType(part, "tool-call") && has(part, "arguments")) || (isType(part, "tool-result") && has(part, "content")),
      ),
  ],
  ["a message of the AI SDK 4", "aiSdk4", losesInvocations],
  ["AG-UI, TanStack AI or Mistral's client", "agui, tanstack or mistral", losesCalls],
  [
    "the Converse API of Bedrock",
    "bedrock",
    (it) => listIn(it, "content").some((block) => textIn(block, "type") === undefined && hasAny(block, "text toolUse toolResult cachePoint reasoningContent image document")),
  ],
  [
    "Cohere's first API",
    ": write `role` in small letters (`assistant` for CHATBOT) and `content` for `message` (openai-chat)",
    (it) => isRole(it, "USER CHATBOT SYSTEM TOOL") && !has(it, "content"),
  ],
  ["Cohere", "cohere", (it) => isRole(it, "tool") && listIn(it, "content").some((block) => isType(block, "document") && has(block, "document"))],
  [
    "Ollama",
    "ollama",
    (it) =>
      listIn(it, "tool_calls").some((call) => !has(call, "id") && isObject(given(given(call, "function"), "arguments"))) ||
      (isRole(it, "tool") && has(it, "tool_name") && !has(it, "tool_call_id")),
  ],
  [
    "what a tool of MCP answered",
    ": write its content as that of a result of the tool (anthropic)",
    (it) => has(it, "jsonrpc") || (!hasAny(it, "role type") && has(it, "content") && has(it, "isError")),
  ],
  ["MCP", "mcp", (it) => isObject(given(it, "content")) && textIn(given(it, "content"), "type") !== undefined],
  ["a history, not a message", ": hand over its `messages`", (it) => !has(it, "role") && Array.isArray(given(it, "messages"))],
];

/** What a message looks like, and what to do about it; undefined for one that looks like nothing. */
export function advice(message: unknown): string | undefined {
  const [name, fix = ""] = SHAPES.find(([, , isIt]) => isIt(message)) ?? [];
  if (name === undefined) return undefined;
  return `this looks like ${name}${fix.startsWith(":") ? fix : `: pass \`format: ${fix}\`, imported from context-compactor/formats`}`;
}

/** True for a message of the AI SDK 4 whose calls stand in no part of a later version. */
function losesInvocations(message: unknown): boolean {
  const isCall = (part: unknown): boolean => /^(tool-(?!invocation$)|dynamic-tool$)/.test(textIn(part, "type") ?? "");
  return listIn(message, "toolInvocations").length > 0 && !listIn(message, "parts").some(isCall) && !has(message, "tool_calls");
}

/** True for a message with calls, or the id of one, that stand nowhere in it where a format has them. */
function losesCalls(message: unknown): boolean {
  const hasCalls = listIn(message, "toolCalls").length > 0 && !has(message, "tool_calls");
  const isAnswer = isRole(message, "tool") && has(message, "toolCallId") && !has(message, "tool_call_id");
  const hasParts = has(message, "parts") || listIn(message, "content").some((block) => isType(block, "tool-call tool-result tool_use tool_result"));
  return losesInvocations(message) || ((hasCalls || isAnswer) && !hasParts);
}

/** What is wrong with a message whose calls no format would read; undefined for any other. */
export function lost(message: unknown): string | undefined {
  if (!losesCalls(message)) return undefined;
  const field = ["toolInvocations", "toolCalls"].find((key) => has(message, key)) ?? "toolCallId";
  return `its calls stand in \`${field}\`, which no known format has; ${advice(message)}`;
}

/** The field that probably holds what should stand in `content`. */
export function insteadOfContent(message: unknown): string {
  const key = ["text", "message", "parts", "body", "output", "result", "value", "input"].find((key) => has(message, key));
  return key === undefined ? "" : `; it has \`${key}\`: write that as \`content\``;
}
