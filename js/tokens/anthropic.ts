/** Reads messages of Anthropic (`crates/wire/src/anthropic/read.rs`). */

import { blocksOf, fail, failRole, join, media, may, need, needObject, ofUser, resultOf, type Block, type Media, type Part, type Read } from "./read.js";
import { bytesOf, given, has, json, payloadLength, readable, textIn, textOf } from "./values.js";

const WANTED = "must be a string or an array of content blocks";

export function readAnthropic(message: unknown): Read {
  const role = need(message, "role");
  if (role !== "user" && role !== "assistant" && role !== "system") failRole(role, "user, assistant, system");
  if (!has(message, "content")) fail("content", `${WANTED}, and is missing`);
  const content = given(message, "content");
  const parts = contentOf(content, "content", partsOf);
  return role === "user" ? ofUser(parts) : { role, parts };
}

/** A text, or what blocks are read as. */
function contentOf(content: unknown, at: string, read: (block: Block) => Part[]): Part[] {
  const text = textOf(content);
  if (text !== undefined) return [text];
  return Array.isArray(content) ? blocksOf(content, at).flatMap(read) : fail(at, WANTED);
}

function partsOf([kind, block, at]: Block): Part[] {
  switch (kind) {
    case "text":
      return [need(block, kind, at)];
    case "tool_use": {
      const input = needObject(block, "input", at);
      need(block, "id", at);
      return [{ call: need(block, "name", at), input: json(input) }];
    }
    case "tool_result":
      return result(block, at);
    case "thinking":
      may(block, "signature", at);
      return [{ thought: need(block, kind, at) }];
    case "redacted_thinking":
      return [];
    default:
      return [mediaOf(kind, block) ?? readable(block)];
  }
}

function mediaOf(kind: string, block: unknown): Media | undefined {
  if ((kind !== "image" && kind !== "document") || !has(block, "source")) return undefined;
  const source = given(block, "source");
  const data = given(source, "data");
  return media(kind, textIn(source, "type") === "text" ? bytesOf(textOf(data) ?? "") : payloadLength(data), data);
}

function result(block: unknown, at: string): Part[] {
  need(block, "tool_use_id", at);
  if (has(block, "is_error") && typeof given(block, "is_error") !== "boolean") fail(join(at, "is_error"), "must be true or false");
  if (!has(block, "content")) return [{ result: "", media: [] }];
  const inside = contentOf(given(block, "content"), join(at, "content"), ([kind, inner, place]) => [
    kind === "text" ? need(inner, kind, place) : (mediaOf(kind, inner) ?? readable(inner)),
  ]);
  // Here an empty text is one, too.
  return resultOf(inside, inside.filter((part) => typeof part === "string"));
}
