/** What a message says, whatever its format: texts, calls and results. */

import type { Message } from "../index.js";

/** A part of a message. */
export interface Part {
  kind: "text" | "thinking" | "call" | "result";
  role: "system" | "user" | "assistant" | "tool";
  /** Of a call: the values of its input, one in a line. */
  text: string;
  /** Of a call or result: the call's id, where the format has one. */
  id?: string;
  /** Of a call, and of a result that names it: the tool. */
  name?: string;
  /** Of a call: its input. */
  input?: unknown;
}

type Fields = Record<string, unknown>;

const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const textIn = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** All texts of a value, one in a line; names of fields are none. */
export function textsOf(value: unknown): string {
  const found: string[] = [];
  (function gather(one: unknown, field: string): void {
    if (typeof one === "string") {
      if (!OPAQUE.has(field)) found.push(one);
    } else if (typeof one === "number") found.push(String(one));
    else if (Array.isArray(one)) one.forEach((each) => gather(each, field));
    else if (typeof one === "object" && one !== null) Object.entries(one).forEach(([name, each]) => gather(each, name));
  })(value, "");
  return found.join("\n");
}

/** Fields whose texts nobody reads: media, signatures, names of kinds. */
const OPAQUE = new Set(["data", "signature", "thoughtSignature", "encrypted_content", "type", "media_type", "mimeType", "tool_use_id", "toolCallId", "call_id"]);

function parsed(text: unknown): unknown {
  if (typeof text !== "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The parts of a message, in order. */
export function partsOf(message: Message): Part[] {
  const fields = fieldsOf(message);
  const role = roleOf(fields);
  const call = (id: unknown, name: unknown, given: unknown): Part => {
    const input = parsed(given);
    const part: Part = { kind: "call", role: "assistant", text: textsOf(input), name: textIn(name) ?? "?", input };
    if (typeof id === "string") part.id = id;
    return part;
  };
  const result = (id: unknown, value: unknown): Part => {
    const part: Part = { kind: "result", role: "tool", text: textIn(value) ?? textsOf(value) };
    if (typeof id === "string") part.id = id;
    return part;
  };
  // Items of the Responses API.
  const type = textIn(fields["type"]) ?? "";
  if (fields["role"] === undefined) {
    if (/_call$/.test(type)) return [call(fields["call_id"], fields["name"] ?? type, fields["arguments"] ?? fields["input"] ?? fields["action"])];
    if (/_output$/.test(type)) return [result(fields["call_id"], fields["output"])];
    if (type === "reasoning") return [{ kind: "thinking", role: "assistant", text: textsOf(fields["summary"]) }];
  }
  if (role === "tool" && textIn(fields["tool_call_id"])) return [result(fields["tool_call_id"], fields["content"])];
  const parts: Part[] = [];
  const content = fields["content"] ?? fields["parts"];
  for (const piece of typeof content === "string" ? [content] : listOf(content)) parts.push(...partsOfPiece(piece, role, call, result));
  for (const one of listOf(fields["tool_calls"])) {
    const { id, function: called, custom } = fieldsOf(one);
    const { name, arguments: given, input } = fieldsOf(called ?? custom);
    parts.push(call(id, name, given ?? input));
  }
  return parts;
}

function partsOfPiece(
  piece: unknown,
  role: Part["role"],
  call: (id: unknown, name: unknown, input: unknown) => Part,
  result: (id: unknown, value: unknown) => Part,
): Part[] {
  if (typeof piece === "string") return [{ kind: "text", role, text: piece }];
  const block = fieldsOf(piece);
  const type = textIn(block["type"]) ?? "";
  if (/^(server_|mcp_)?tool_use$/.test(type)) return [call(block["id"], block["name"], block["input"])];
  if (/tool_result$/.test(type)) return [result(block["tool_use_id"], block["content"])];
  if (type === "tool-call") return [call(block["toolCallId"], block["toolName"], block["input"] ?? block["args"])];
  if (type === "tool-result") {
    const { value = block["output"] ?? block["result"] } = fieldsOf(block["output"]);
    return [result(block["toolCallId"], value)];
  }
  if (/^(tool-|dynamic-tool$)/.test(type)) {
    const made = call(block["toolCallId"], block["toolName"] ?? type.slice(5), block["input"]);
    const output = block["output"] ?? block["errorText"];
    return output === undefined ? [made] : [made, result(block["toolCallId"], output)];
  }
  // As JavaScript spells it, and as Python does.
  const [called, answered] = [block["functionCall"] ?? block["function_call"], block["functionResponse"] ?? block["function_response"]];
  if (called) {
    const { id, name, args } = fieldsOf(called);
    return [call(id, name, args)];
  }
  if (answered) {
    const { id, name, response } = fieldsOf(answered);
    return [{ ...result(id, response), name: textIn(name) ?? "?" }];
  }
  if (type === "thinking" || type === "reasoning" || block["thought"] === true) {
    return [{ kind: "thinking", role, text: textIn(block["thinking"]) ?? textIn(block["text"]) ?? "" }];
  }
  const text = textIn(block["text"]);
  return text === undefined ? [] : [{ kind: "text", role, text }];
}

function roleOf({ role, type }: Fields): Part["role"] {
  if (role === "model" || role === "assistant") return "assistant";
  if (role === "system" || role === "developer") return "system";
  if (role === "tool" || role === "function") return "tool";
  return role === undefined && typeof type === "string" && /(_call|^reasoning)$/.test(type) ? "assistant" : "user";
}

/** Who says a message, also one whose parts are not known. */
export function speakerOf(message: Message): Part["role"] {
  const parts = partsOf(message);
  return parts.length === 0 ? roleOf(fieldsOf(message)) : (parts.find(({ kind }) => kind !== "result")?.role ?? "tool");
}

/** True for what a model answered, which a call came before. */
export function isAnswer(message: Message): boolean {
  return partsOf(message).some(({ role, kind }) => role === "assistant" && kind !== "result");
}

/** What a call is about, in a line: its file, command or query. */
export function targetOf(part: Part, most = 120): string {
  const input = fieldsOf(part.input);
  const names = ["command", "cmd", "pattern", "query", "file_path", "path", "filePath", "filename", "url", "prompt", "description"];
  const named = names.map((name) => input[name]).find((value) => typeof value === "string" || Array.isArray(value));
  const text = Array.isArray(named) ? named.join(" ") : (textIn(named) ?? part.text);
  return shortened(text, most);
}

/** A text as one line of at most `most` characters; of a path the end, from the beginning of a name. */
export function shortened(text: string, most: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  if (line.length <= most) return line;
  // A path may stand after the name of a tool.
  const [, tool = "", path] = /^(\S{1,24} )?([~/.…]\S*|[\w.@+-]+\/[\w.@+/-]+)$/.exec(line) ?? [];
  if (path === undefined || tool.length + 8 > most) return `${line.slice(0, most - 1)}…`;
  const end = path.slice(1 + tool.length - most);
  const name = end.indexOf("/");
  return `${tool}…${name > 0 && name < end.length / 2 ? end.slice(name) : end}`;
}
