/** Messages of version 4 of the AI SDK. */

import type { CustomFormat } from "../types/formats.js";
import { edited, given, type Edits, type Fields } from "./shared.js";
import { patchSaid, readSaid, writeSaid } from "./ui.js";

/** Messages of the AI SDK 4: of its user interface, whose calls are in `toolInvocations` or parts, and of its models (`CoreMessage`).
 *  A history has one of the two; a message with an `id` is of the user interface. */
export const aiSdk4: CustomFormat = {
  name: "aiSdk4",
  base: "ai-sdk",
  read: (message: Fields) => (isUi(message) ? readUi(message) : { ...message, ...contentOf(message, readBlock) }),
  write: (message: Fields) => (message["parts"] ? writeUi(message) : { ...message, ...contentOf(message, writeBlock) }),
  patch: (message: Fields, edits) => (isUi(message) ? patchSaid(message, edits) : { ...message, content: patchBlocks(message["content"], edits) }),
};

function isUi({ id, parts, toolInvocations, role, content }: Fields): boolean {
  return parts !== undefined || toolInvocations !== undefined || (id !== undefined && role !== "tool" && !Array.isArray(content));
}

function readUi({ id, role, ...said }: Fields): Fields {
  const { parts, metadata } = readSaid(said);
  return given({ id, role: role === "data" ? "user" : role, parts, metadata: { ...metadata, role } });
}

function writeUi({ id, role, parts, metadata }: Fields): Fields {
  const { role: was = role, ...more } = Object(metadata) as Fields;
  return given({ id, role: was, ...writeSaid(parts, more, "parts,content") });
}

function contentOf({ content }: Fields, how: (block: Fields) => Fields): Fields {
  return { content: Array.isArray(content) ? content.map(how) : content };
}

function readBlock({ type, ...block }: Fields): Fields {
  const { args, result, isError, experimental_content: content, mimeType: mediaType, ...more } = block;
  switch (type) {
    case "tool-call":
      return { type, ...more, input: args };
    case "tool-result":
      return { type, ...more, output: content ? { type: "content", value: content.map(readMedia) } : tagged(result, isError) };
    case "redacted-reasoning":
      return { type: "reasoning", text: "", providerOptions: { ...more["providerOptions"], anthropic: { redactedData: more["data"] } } };
    case "reasoning":
      return more["signature"] ? { type, ...more, providerOptions: { ...more["providerOptions"], anthropic: { signature: more["signature"] } } } : { type, ...more };
    default:
      return given({ type, ...more, mediaType });
  }
}

/** A result with the tag that says what it is. */
function tagged(value: unknown, isError = false): Fields {
  const kind = typeof value === "string" ? "text" : "json";
  return { type: isError ? `error-${kind}` : kind, value: value === undefined ? null : value };
}

function readMedia({ mimeType: mediaType, ...item }: Fields): Fields {
  return item["type"] === "image" ? { type: "media", data: item["data"], mediaType: mediaType ?? "image/*" } : item;
}

function writeBlock({ type, ...block }: Fields): Fields {
  const { input: args, output, mediaType: mimeType, providerOptions, ...more } = block;
  const { anthropic, ...others } = Object(providerOptions) as Fields;
  const options = Object.keys(others).length > 0 ? { providerOptions: others } : {};
  if (type === "reasoning" && anthropic?.redactedData) return { type: "redacted-reasoning", data: anthropic.redactedData, ...options };
  if (type === "reasoning" && more["signature"]) return { type, ...more, ...options };
  const rest = given({ ...more, providerOptions });
  if (type === "tool-call") return { type, ...rest, args };
  return type === "tool-result" ? { type, ...rest, ...written(output) } : given({ type, ...rest, mimeType });
}

function written({ type, value }: Fields): Fields {
  if (type !== "content") return { result: value, ...(type.startsWith("error-") ? { isError: true } : {}) };
  const items = value.map(({ mediaType: mimeType, ...item }: Fields) => (item["type"] === "media" ? { type: "image", data: item["data"], mimeType } : item));
  return { result: items, experimental_content: items };
}

function patchBlocks(blocks: readonly Fields[], edits: Edits): Fields[] {
  return edited(
    blocks,
    edits,
    (block, args) => (block["type"] === "tool-call" ? { ...block, args } : undefined),
    ({ experimental_content: _, isError: __, ...block }, output) => (block["type"] === "tool-result" ? { ...block, ...written(Object(output)["type"] ? output : tagged(output)) } : undefined),
  );
}
