/** Messages of Mistral's client for JavaScript, which writes fields in camelCase. */

import type { CustomFormat } from "../types/formats.js";
import { patchChat, readCamel, withJson, writeCamel } from "./chat.js";
import type { Fields } from "./shared.js";

/** `messages` of `@mistralai/mistralai`. A call without an id is paired with its result by order. */
export const mistral: CustomFormat = {
  name: "mistral",
  base: "openai-chat",
  read: (message: Fields) => readCamel(message, renamed(message["content"], READ), (call) => withJson(untied(call))),
  write: (message: Fields) => writeCamel(message, renamed(message["content"], WRITTEN)),
  patch: (message: Fields, edits) => patchChat(message, edits, "toolCalls", (content) => renamed(content, WRITTEN)),
};

/** Fields of blocks, in both spellings. */
const NAMES = [
  ["imageUrl", "image_url"],
  ["documentUrl", "document_url"],
  ["documentName", "document_name"],
  ["inputAudio", "input_audio"],
  ["referenceIds", "reference_ids"],
  ["fileId", "file_id"],
] as const;
const READ = new Map<string, string>(NAMES);
const WRITTEN = new Map<string, string>(NAMES.map(([camel, snake]) => [snake, camel]));

function renamed(content: unknown, names: ReadonlyMap<string, string>): unknown {
  if (!Array.isArray(content)) return content;
  return content.map((block: Fields) => Object.fromEntries(Object.entries(block).map(([key, value]) => [names.get(key) ?? key, value])));
}

/** The client writes `null` as a text for an id that a model did not give. */
function untied({ id, ...call }: Fields): Fields {
  return id && id !== "null" ? { id, ...call } : call;
}
