/** Reads messages of OpenAI Chat Completions and its dialects (`crates/wire/src/openai_chat/read.rs`). */

import { blocksOf, fail, failRole, list, may, media, need, needObject, resultOf, join, type Media, type Part, type Read } from "./read.js";
import { given, has, isObject, json, listIn, readable, textIn, textOf, urlLength } from "./values.js";

export function readChat(message: unknown): Read {
  const name = need(message, "role");
  switch (name) {
    case "system":
    case "developer":
    case "user":
      return { role: name === "user" ? name : "system", parts: [...content(message), ...images(message)] };
    case "tool":
    case "function":
      need(message, name === "tool" ? "tool_call_id" : "name");
      return { role: "tool", parts: resultOf(content(message)) };
    case "assistant":
      return { role: name, parts: ofModel(message) };
    default:
      return failRole(name, "system, developer, user, assistant, tool, function");
  }
}

function ofModel(message: unknown): Part[] {
  const parts: Part[] = [{ thought: reasoning(message) }, ...content(message), textIn(message, "tool_plan") ?? "", may(message, "refusal")];
  if (has(message, "audio")) parts.push(media("audio", 0));
  const calls = given(message, "tool_calls");
  if (calls !== undefined) list(calls, "tool_calls").forEach((call, nth) => parts.push(callOf(call, `tool_calls[${nth}]`)));
  if (has(message, "function_call")) {
    const call = needObject(message, "function_call", "");
    parts.push({ call: need(call, "name", "function_call"), input: need(call, "arguments", "function_call") });
  }
  return parts;
}

function content(message: unknown): Part[] {
  const found = given(message, "content");
  if (found === undefined) return [];
  const text = textOf(found);
  if (text !== undefined) return [text];
  if (!Array.isArray(found)) fail("content", "must be a string, an array of content blocks or null");
  return blocksOf(found, "content").map(([kind, block, at]) => {
    if (kind === "text" || kind === "refusal") return need(block, kind, at);
    if (kind === "thinking") return { thought: thinking(block) };
    return mediaOf(kind, block) ?? readable(block);
  });
}

/** Kinds of media of the API and of its dialects, and where their payload is. */
const MEDIA: Record<string, [Media["kind"], string]> = {
  image_url: ["image", "url"],
  input_audio: ["audio", "data"],
  file: ["document", "file_data"],
  document_url: ["document", "url"],
  video_url: ["video", "url"],
};

function mediaOf(type: string, block: unknown): Media | undefined {
  if (!Object.hasOwn(MEDIA, type)) return undefined;
  const [kind, key] = MEDIA[type] as [Media["kind"], string];
  const outer = given(block, type);
  const payload = isObject(outer) ? given(outer, key) : outer;
  return media(kind, urlLength(payload, kind === "audio"), payload);
}

/** Ollama's pictures stand beside the content, as base64. */
function images(message: unknown): Media[] {
  return listIn(message, "images").map((image) => media("image", 0, image));
}

/** Text of Mistral's `thinking` block: a string or blocks. */
function thinking(block: unknown): string {
  const blocks = given(block, "thinking");
  return Array.isArray(blocks) ? texts(blocks, "text") : (textOf(blocks) ?? "");
}

function texts(blocks: readonly unknown[], key: string, other = key): string {
  const found = blocks.map((block) => textOf(given(block, key) ?? given(block, other)));
  return found.filter((text) => text !== undefined).join("\n");
}

/** Reasoning stands in fields that no standard names. */
function reasoning(message: unknown): string {
  const [said] = ["reasoning_content", "reasoning", "thinking"].flatMap((key) => textIn(message, key) ?? []);
  return said || texts([...listIn(message, "reasoning_details"), ...listIn(message, "thinking_blocks")], "text", "thinking");
}

function callOf(call: unknown, at: string): Part {
  if (!isObject(call)) fail(at, "a tool call must be an object with an id");
  need(call, "id", at);
  const kind = has(call, "type") ? need(call, "type", at) : "function";
  if (kind !== "function" && kind !== "custom") return { call: kind, input: json(call) };
  const made = needObject(call, kind, at);
  const inside = join(at, kind);
  if (kind === "function") return { call: need(made, "name", inside), input: need(made, "arguments", inside) };
  const input = json(need(made, "input", inside));
  return { call: need(made, "name", inside), input };
}
