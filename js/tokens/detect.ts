/** Reads a history, in the format that its fields tell (`crates/wire/src/detect.rs`). */

import { CompactionError } from "../errors.js";
import type { Format } from "../types/messages.js";
import { readAiSdk } from "./ai-sdk.js";
import { readAnthropic } from "./anthropic.js";
import { advice, insteadOfContent, lost } from "./foreign.js";
import { dataOf, readGemini, spelled } from "./gemini.js";
import { readChat } from "./openai-chat.js";
import { readItem, typeOf } from "./openai-responses.js";
import { fieldsOf, readTurn } from "./react.js";
import { fail, Unreadable, type Read, type Reader } from "./read.js";
import { has, isObject, listIn, textIn } from "./values.js";

/** How surely a message is in a format: it cannot be, it could be, it has a field that only this format has. */
type Evidence = undefined | false | true;

interface Wire {
  read: Reader;
  /** Fields of messages of other formats. */
  foreign: readonly string[];
  /** Of a message that can be read and has none of those. */
  evidence: (message: unknown) => Evidence;
}

/** In the order in which detection asks them. */
const WIRES: Record<Format, Wire> = {
  "openai-chat": {
    read: readChat,
    foreign: ["parts", "providerOptions"],
    evidence(message) {
      const isOwn = /^(tool|function)$/.test(textIn(message, "role") ?? "") || ["tool_calls", "function_call", "refusal"].some((key) => has(message, key));
      return ofBlocks(message, "0", isOwn, (type, block) => type === "file" && has(block, "file"));
    },
  },
  anthropic: {
    read: readAnthropic,
    foreign: ["tool_calls", "function_call", "parts", "providerOptions"],
    evidence: (message) => ofBlocks(message, "1", false, (type, block) => hasOwn(OF_ANTHROPIC, type, block) || /_tool_(use|result)$/.test(type)),
  },
  "openai-responses": {
    read: readItem,
    foreign: ["tool_calls", "tool_call_id", "parts", "providerOptions"],
    evidence: (item) => (typeOf(item) === "message" ? ofBlocks(item, "2", has(item, "type"), () => false) : isKnown(item)),
  },
  gemini: {
    read: readGemini,
    foreign: ["content", "tool_calls", "providerOptions", "type"],
    evidence(message) {
      const parts = listIn(message, "parts");
      // The parts of others say what they are in a `type`; these in the field that they have.
      if (parts.some((part) => textIn(part, "type") !== undefined)) return undefined;
      return textIn(message, "role") === "model" || parts.some((part) => dataOf(part).some((key) => DATA.includes(spelled(key))));
    },
  },
  "ai-sdk": {
    read: readAiSdk,
    foreign: ["tool_calls", "tool_call_id", "function_call"],
    evidence(message) {
      // Of the formats whose messages have parts, only this one gives them types.
      if (has(message, "parts")) return listIn(message, "parts").length > 0;
      const hasOptions = (value: unknown): boolean => has(value, "providerOptions");
      return ofBlocks(message, "4", hasOptions(message), (type, part) => hasOptions(part) || hasOwn(OF_AI_SDK, type, part));
    },
  },
  react: {
    read: readTurn,
    foreign: ["role", "parts"],
    evidence: (turn) => (fieldsOf(turn) < 2 ? undefined : has(turn, "thought") && has(turn, "action")),
  },
};

export const FORMATS = Object.keys(WIRES) as Format[];

/** Types of block that are a format's own when they have this field. */
const OF_ANTHROPIC = { thinking: "signature", image: "source", document: "source", compaction: "content", container_upload: "file_id", search_result: "source" };
const OF_AI_SDK = { image: "image", file: "mediaType", reasoning: "text", custom: "kind" };

/** What a part of Gemini holds, of kinds that are known. */
const DATA = ["text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"];

/** Types of content block and the formats that have them, by their places in `FORMATS`; any other is news to all. */
const BLOCKS = new Map(
  "text:014 image:14 file:04 thinking:01 refusal:02 reasoning:24 compaction:12 image_url:0 input_audio:02 video_url:0 document_url:0 tool_use:1 tool_result:1 server_tool_use:1 mcp_tool_use:1 redacted_thinking:1 document:1 input_text:2 output_text:2 input_image:2 input_file:2 computer_screenshot:2 summary_text:2 tool-call:4 tool-result:4 tool-approval-request:4 tool-approval-response:4 step-start:4 reasoning-file:4 source-url:4 source-document:4 steering-message:4 dynamic-tool:4"
    .split(" ")
    .map((entry) => entry.split(":") as [string, string]),
);

/** Items of Responses, as against those that are news to us. */
const ITEMS =
  /^(reasoning|compaction(_summary|_trigger)?|item_reference|additional_tools|((function|custom_tool|local_shell|shell|apply_patch|computer)_call|program)(_output)?|tool_search_(call|output)|mcp_(list_tools|approval_request|approval_response|call)|(web_search|file_search|code_interpreter|image_generation)_call)$/;

function isKnown(item: unknown): boolean {
  return ITEMS.test(textIn(item, "type") ?? "");
}

function hasOwn(own: Record<string, string>, type: string, block: unknown): boolean {
  return Object.hasOwn(own, type) && has(block, own[type] as string);
}

/** What the blocks of a message's content say, beside the message itself. */
function ofBlocks(message: unknown, place: string, isOwn: boolean, isTheirs: (type: string, block: unknown) => boolean): Evidence {
  let found = isOwn;
  for (const block of listIn(message, "content")) {
    const type = textIn(block, "type") ?? "";
    const formats = BLOCKS.get(type) ?? place;
    if (!formats.includes(place)) return undefined;
    found ||= isTheirs(type, block) || (BLOCKS.has(type) && formats === place);
  }
  return found;
}

/** What a history says about a format that it may be in; nothing about one that it cannot be in. */
interface Rated {
  format: Format;
  isCertain: boolean;
  reads: Read[];
}

function rate(format: Format, messages: readonly unknown[]): Rated | undefined {
  const { read, foreign, evidence } = WIRES[format];
  // A history of the AI SDK has messages of one shape.
  if (format === "ai-sdk" && messages.some((message) => has(message, "parts") !== has(messages[0], "parts"))) return undefined;
  const reads: Read[] = [];
  let isCertain = false;
  for (const message of messages) {
    if (foreign.some((key) => has(message, key))) return undefined;
    const found = reading(read, message);
    const own = found instanceof Unreadable ? undefined : evidence(message);
    if (own === undefined) return undefined;
    isCertain ||= own;
    reads.push(found as Read);
  }
  // An object of any type could be an item; that it is one, others must tell.
  const isStrange = format === "openai-responses" && !isCertain && messages.some((message) => typeOf(message) !== "message" && !isKnown(message));
  return isStrange ? undefined : { format, isCertain, reads };
}

function reading(read: Reader, message: unknown): Read | Unreadable {
  try {
    if (!isObject(message)) fail("", "a message must be an object with a role");
    return read(message);
  } catch (error) {
    if (error instanceof Unreadable) return error;
    throw error;
  }
}

/** The messages of a history, in this format or the one that they tell. Throws `invalid_message` and `unknown_format`. */
export function readAll(messages: readonly unknown[], format: Format | undefined): Read[] {
  if (messages.length === 0) return [];
  if (format === undefined) return detect(messages).reads;
  return messages.map((message, index) => {
    const read = readOne(format, message, index);
    if (read instanceof CompactionError) throw read;
    return read;
  });
}

function readOne(format: Format, message: unknown, index: number): Read | CompactionError {
  const isLost = lost(message);
  if (isLost !== undefined) return unknown(isLost, { index });
  const read = reading(WIRES[format].read, message);
  if (!(read instanceof Unreadable)) return read;
  const { field, what } = read;
  const looks = advice(message);
  const told = `${what}${field === "content" && !has(message, field) ? insteadOfContent(message) : ""}${looks === undefined ? "" : `; ${looks}`}`;
  return failure("invalid_message", told, { index, field });
}

/** A history in its format; one that more than one could have written as it stands is read as the first of them. */
function detect(messages: readonly unknown[]): Rated {
  for (const [index, message] of messages.entries()) {
    const isLost = lost(message);
    if (isLost !== undefined) throw unknown(isLost, { index });
  }
  const rated = FORMATS.flatMap((format) => rate(format, messages) ?? []);
  const certain = rated.filter(({ isCertain }) => isCertain);
  if (certain.length > 1) throw unknown(`the messages carry fields of ${certain.map(({ format }) => format).join(" and ")}; pass \`format\``);
  const found = certain[0] ?? rated[0];
  if (found) return found;
  throw malformed(messages) ?? unknown(messages.map(advice).find(Boolean) ?? "no known format has messages of this shape, or they mix the fields of several; pass `format`");
}

const NEEDS = 'a message needs a role (`user`, `assistant`, `system` or `tool`) and its content, as in { role: "user", content: "…" }';

/** What is wrong with the first message that no format can read: the message, where others can be read, else the format. */
function malformed(messages: readonly unknown[]): CompactionError | undefined {
  const isReadable = (message: unknown): boolean => FORMATS.some((format) => !(reading(WIRES[format].read, message) instanceof Unreadable));
  const index = messages.findIndex((message) => !isReadable(message));
  if (index < 0) return undefined;
  const message = messages[index];
  const error = readOne(formatBefore(messages.slice(0, index)), message, index) as CompactionError;
  if (messages.some(isReadable)) return error;
  const { field, message: told } = error;
  const looks = advice(message);
  const what = told.slice(told.indexOf(": ") + 2);
  const says = looks !== undefined ? `; ${looks}` : field === "role" ? ` (role: ${what}); ${NEEDS}` : ` (${what}); pass \`format\``;
  return unknown(`no known format has such messages${says}`, { index, field });
}

function formatBefore(messages: readonly unknown[]): Format {
  if (messages.length === 0) return "openai-chat";
  try {
    return detect(messages).format;
  } catch {
    return "openai-chat";
  }
}

function unknown(what: string, place: { index?: number; field?: string | undefined } = {}): CompactionError {
  return failure("unknown_format", what, place);
}

function failure(code: "invalid_message" | "unknown_format", what: string, place: { index?: number; field?: string | undefined }): CompactionError {
  const { index, field } = place;
  const where = [index === undefined ? "" : `message ${index}`, field ?? ""].filter(Boolean).join(", ");
  return new CompactionError(code, where === "" ? what : `${where}: ${what}`, place);
}
