/** Messages of LangChain: instances of its classes, whatever copy of it made them, and both of their forms as JSON. */

import type { CustomFormat } from "../types/formats.js";
import { chatCall } from "./chat.js";
import { given, parsed, type Edits, type Fields } from "./shared.js";

/** Messages of LangChain: instances of `BaseMessage`, what their `toDict()` and `toJSON()` return, and `{ role, content }`. */
export const langchain: CustomFormat = {
  name: "langchain",
  base: "openai-chat",
  read,
  write,
  patch,
};

/** The roles of Chat Completions by the types of messages. */
const ROLES: Record<string, string> = { human: "user", ai: "assistant", system: "system", developer: "developer", tool: "tool", function: "function" };
const TYPES: Record<string, string> = Object.fromEntries(Object.entries(ROLES).map(([type, role]) => [role, type]));

/** What a message has, in whatever form it is, and the message again with other fields. */
interface Form {
  type: string;
  fields: Fields;
  again(fields: Fields): Fields;
}

function formOf(message: Fields): Form {
  const { type, lc, data, kwargs, id } = message;
  if (lc !== undefined && kwargs) {
    const name = String(id?.at(-1) ?? "").replace(/Message(Chunk)?$/, "");
    return { type: kwargs.type ?? name.toLowerCase(), fields: kwargs, again: (fields) => ({ ...message, kwargs: { ...kwargs, ...fields } }) };
  }
  if (typeof type === "string" && data && !("content" in message)) return { type, fields: data, again: (fields) => ({ ...message, data: { ...data, ...fields } }) };
  const kind = type ?? message["_getType"]?.();
  const isPlain = kind === undefined || typeof message["lc_kwargs"] !== "object";
  return { type: kind, fields: message, again: (fields) => (isPlain ? { ...message, ...fields } : madeLike(message, fields)) };
}

/** A message of the same class with other fields. */
export function madeLike(message: Fields, fields: Fields): Fields {
  const { lc_kwargs: kwargs, id, name } = message;
  return new (message.constructor as new (fields: object) => Fields)({ ...kwargs, id, name, ...fields });
}

function read(message: Fields): Fields {
  const { type, fields } = formOf(message);
  const { id, name, content = "", tool_calls: calls = [], tool_call_id: answered, additional_kwargs: more } = fields;
  const role = ROLES[type] ?? fields["role"] ?? type;
  const called = calls.map((call: Fields) => (call["function"] ? call : chatCall({ id: call["id"], name: call["name"], input: call["args"] })));
  const legacy = called.length === 0 ? more?.["function_call"] : undefined;
  return given({
    role,
    id: id || undefined,
    content: Array.isArray(content) ? content.filter(({ type }: Fields) => !CALLS.has(type)).map(media) : content,
    tool_calls: called.length > 0 ? called : undefined,
    function_call: legacy,
    tool_call_id: role === "tool" ? answered || undefined : undefined,
    name: role === "function" || role === "tool" ? name : undefined,
  });
}

/** Blocks that say what is in `tool_calls` too. */
const CALLS = new Set(["tool_use", "tool_call", "tool_call_chunk", "input_json_delta", "function_call"]);

/** A picture is counted as one, and not as text. */
function media(block: Fields): Fields {
  const { type, url, source } = block;
  const data = block["data"] ?? source?.data;
  if (type !== "image" || (!url && typeof data !== "string")) return block;
  const kind = block["mimeType"] ?? block["mime_type"] ?? source?.media_type ?? "image/png";
  return { type: "image_url", image_url: { url: url ?? `data:${kind};base64,${data}` } };
}

function patch(message: Fields, { results, calls: changed }: Edits): Fields {
  const { fields, again } = formOf(message);
  const { content, tool_calls: calls, additional_kwargs: more, response_metadata: about } = fields;
  const inputs = new Map(changed.map(({ nth, input }) => [nth, input]));
  const byId = new Map(changed.map(({ id, input }) => [id, input]));
  const said = results.length > 0 ? results[0]!.content : content;
  const isCall = ({ type, id }: Fields) => type === "tool_use" && byId.has(id);
  // Copies of the calls, and the raw answer, which some models send again in place of the message.
  const { tool_calls: _, ...kwargs } = Object(more) as Fields;
  const { output: __, ...metadata } = Object(about) as Fields;
  const call = (call: Fields, nth: number) => {
    const input = inputs.get(nth);
    if (!input) return call;
    return call["function"] ? { ...call, function: { ...call["function"], arguments: JSON.stringify(input) } } : { ...call, args: input };
  };
  return again({
    content: Array.isArray(said) ? said.map((block: Fields) => (isCall(block) ? { ...block, input: byId.get(block["id"]) } : block)) : said,
    ...(calls ? { tool_calls: calls.map(call) } : {}),
    ...(more ? { additional_kwargs: kwargs } : {}),
    ...(about ? { response_metadata: metadata } : {}),
  });
}

function write({ role, content, tool_calls: calls, function_call: legacy, ...message }: Fields, newest: readonly Fields[]): Fields {
  const fields = given({
    ...message,
    content: content ?? "",
    tool_calls: calls?.map(({ id, function: { name, arguments: json } }: Fields) => ({ id, name, args: parsed(json), type: "tool_call" })),
    additional_kwargs: legacy ? { function_call: legacy } : {},
    response_metadata: {},
  });
  const like = newest.find((other) => read(other)["role"] === role) ?? newest[0] ?? {};
  const type = TYPES[role] ?? role;
  const { lc, id, data } = like;
  if (lc !== undefined && Array.isArray(id)) {
    const name = `${type === "ai" ? "AI" : type.replace(/^./, (first: string) => first.toUpperCase())}Message`;
    return { ...like, id: [...id.slice(0, -1), name], kwargs: fields };
  }
  if (data) return { type, data: fields };
  const isLike = typeof like["lc_kwargs"] === "object" && read(like)["role"] === role;
  // Without one like it, what the models of the SDK take for a message.
  return isLike ? new (like.constructor as new (fields: object) => Fields)(fields) : { role, ...fields };
}
