/** Messages of Bedrock's Converse API: blocks that say what they are by the field that they have. */

import type { CustomFormat } from "../types/formats.js";
import { blocksOf, edited, given, kindOf, type Fields } from "./shared.js";

/** `messages` of Amazon Bedrock's Converse API. `cachePoint` blocks are not counted; `json` of a result is read as its text. */
export const bedrock: CustomFormat = {
  name: "bedrock",
  base: "anthropic",
  read: ({ role, content }: Fields) => ({ role, content: blocksOf(content).flatMap(readBlock) }),
  write: ({ role, content }: Fields) => ({ role, content: blocksOf(content).map(writeBlock) }),
  patch: (message: Fields, edits) => ({
    ...message,
    content: edited(
      message["content"],
      edits,
      ({ toolUse, ...more }, input) => toolUse && { ...more, toolUse: { ...toolUse, input } },
      ({ toolResult, ...more }, said) => toolResult && { ...more, toolResult: { ...toolResult, content: blocksOf(said).map(writeBlock) } },
    ),
  }),
};

/** Readers by the field that a block has. */
const READERS: Record<string, (value: any) => Fields | undefined> = {
  text: (text) => ({ type: "text", text }),
  json: (json) => ({ type: "text", text: JSON.stringify(json) }),
  image: ({ format, source }) => ({ type: "image", source: sourceOf(source, `image/${format}`) }),
  document: ({ format, name, source, context, citations }) =>
    given({ type: "document", title: name, source: sourceOf(source, `application/${format}`), context, citations }),
  toolUse: ({ toolUseId: id, name, input }) => ({ type: "tool_use", id, name, input: input ?? {} }),
  toolResult: ({ toolUseId: id, content, status }) => ({
    type: "tool_result",
    tool_use_id: id,
    content: blocksOf(content).flatMap(readBlock),
    ...(status === "error" ? { is_error: true } : {}),
  }),
  reasoningContent: ({ reasoningText, redactedContent }) =>
    reasoningText
      ? given({ type: "thinking", thinking: reasoningText.text, signature: reasoningText.signature })
      : { type: "redacted_thinking", data: redactedContent },
  guardContent: ({ text, image }) => (text ? READERS["text"]!(text.text) : READERS["image"]!(image)),
  citationsContent: ({ content }) => ({ type: "text", text: (content ?? []).map(({ text = "" }: Fields) => text).join("") }),
  cachePoint: () => undefined,
};

function readBlock(block: Fields): Fields[] {
  return Object.entries(block).flatMap(([kind, value]) => {
    if (value === undefined) return [];
    const read = READERS[kind];
    // Videos, sounds and blocks to come.
    return (read ? read(value) : { type: kind, [kind]: value }) ?? [];
  });
}

/** Bytes, or where they are. */
function sourceOf({ bytes, s3Location, text, content }: Fields, type: string): Fields {
  if (bytes) return { type: "base64", media_type: type, data: bytes };
  if (s3Location) return given({ type: "url", media_type: type, url: s3Location.uri, bucketOwner: s3Location.bucketOwner });
  return { type: "text", media_type: type, data: text ?? blocksOf(content).map(({ text }) => text).join("\n") };
}

function writeBlock({ type, ...block }: Fields): Fields {
  switch (type) {
    case "text":
      return { text: block["text"] };
    case "image":
      return { image: { format: kindOf(block["source"].media_type), source: written(block["source"]) } };
    case "document": {
      const { title, source, context, citations } = block;
      return { document: given({ format: kindOf(source.media_type), name: title, source: written(source), context, citations }) };
    }
    case "tool_use": {
      const { id: toolUseId, name, input } = block;
      return { toolUse: { toolUseId, name, input } };
    }
    case "tool_result": {
      const { tool_use_id: toolUseId, content, is_error } = block;
      return { toolResult: { toolUseId, content: blocksOf(content).map(writeBlock), ...(is_error ? { status: "error" } : {}) } };
    }
    case "thinking":
      return { reasoningContent: { reasoningText: given({ text: block["thinking"], signature: block["signature"] }) } };
    case "redacted_thinking":
      return { reasoningContent: { redactedContent: block["data"] } };
    default:
      return block;
  }
}

function written({ type, data, url: uri, bucketOwner }: Fields): Fields {
  if (type === "base64") return { bytes: data };
  return type === "url" ? { s3Location: given({ uri, bucketOwner }) } : { text: data };
}
