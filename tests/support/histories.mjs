/** Histories of an agent in every format, and what databases and SDKs make of them. */

/** Question `nth`, a call, its result and an answer. */
const EXCHANGES = {
  "openai-chat": (nth, text) => [
    { role: "user", content: `Question ${nth}` },
    { role: "assistant", content: null, tool_calls: [{ id: `call_${nth}`, type: "function", function: { name: "read", arguments: `{"path":"f${nth}","lines":[1,2]}` } }] },
    { role: "tool", tool_call_id: `call_${nth}`, content: text },
    { role: "assistant", content: `Answer ${nth}` },
  ],
  anthropic: (nth, text) => [
    { role: "user", content: `Question ${nth}` },
    { role: "assistant", content: [{ type: "text", text: "I read." }, { type: "tool_use", id: `toolu_${nth}`, name: "read", input: { path: `f${nth}`, lines: [1, 2] } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: `toolu_${nth}`, content: text }] },
    { role: "assistant", content: [{ type: "text", text: `Answer ${nth}` }] },
  ],
  "openai-responses": (nth, text) => [
    { role: "user", content: `Question ${nth}` },
    { type: "function_call", call_id: `call_${nth}`, name: "read", arguments: `{"path":"f${nth}","lines":[1,2]}` },
    { type: "function_call_output", call_id: `call_${nth}`, output: text },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: `Answer ${nth}` }] },
  ],
  gemini: (nth, text) => [
    { role: "user", parts: [{ text: `Question ${nth}` }] },
    { role: "model", parts: [{ functionCall: { name: "read", args: { path: `f${nth}`, lines: [1, 2] } } }] },
    { role: "user", parts: [{ functionResponse: { name: "read", response: { text } } }] },
    { role: "model", parts: [{ text: `Answer ${nth}` }] },
  ],
  "ai-sdk": (nth, text) => [
    { role: "user", content: [{ type: "text", text: `Question ${nth}` }] },
    { role: "assistant", content: [{ type: "tool-call", toolCallId: `call_${nth}`, toolName: "read", input: { path: `f${nth}`, lines: [1, 2] } }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: `call_${nth}`, toolName: "read", output: { type: "text", value: text } }] },
    { role: "assistant", content: [{ type: "text", text: `Answer ${nth}` }] },
  ],
  react: (nth, text) =>
    Array.from({ length: 4 }, (_, step) => ({
      thought: `Thought ${nth}.${step}`,
      action: { tool: "read", args: { path: `f${nth}`, lines: [1, step] } },
      result: text,
    })),
};

export const FORMATS = Object.keys(EXCHANGES);

/** `count` exchanges from exchange `from` on, of `chars` characters a result. */
export function exchanges(format, count, { from = 0, chars = 80 } = {}) {
  const text = (nth) => `${nth} `.repeat(Math.ceil(chars / 2)).slice(0, chars);
  return Array.from({ length: count }, (_, nth) => EXCHANGES[format](from + nth, text(from + nth))).flat();
}

/** A message of the user. */
export function asked(format, text) {
  if (format === "react") return { thought: text, action: { tool: "read", args: {} }, result: "" };
  return format === "gemini" ? { role: "user", parts: [{ text }] } : { role: "user", content: text };
}

/** A message as Postgres gives it back from `jsonb`: shorter keys first, then by their bytes. */
export function jsonb(value) {
  if (Array.isArray(value)) return value.map(jsonb);
  if (typeof value !== "object" || value === null) return value;
  const keys = Object.keys(value).sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
  return Object.fromEntries(keys.map((key) => [key, jsonb(value[key])]));
}

/** Ways in which an app has its history from one call to the next. */
export const COPIES = {
  "same objects": (messages) => messages,
  "JSON copy": (messages) => JSON.parse(JSON.stringify(messages)),
  jsonb: (messages) => jsonb(JSON.parse(JSON.stringify(messages))),
};
