/** Messages of the models of TanStack AI, and the parts that those of its user interface have as well. */

import type { CustomFormat } from "../types/formats.js";
import { blocksOf, given, parsed, type Edits, type Fields } from "./shared.js";

/** Messages of TanStack AI as its models are sent them: `ModelMessage`. */
export const tanstackModel = {
  name: "tanstack",
  base: "ai-sdk",
  read: readModel,
  write: writeModel,
  patch: patchModel,
} satisfies CustomFormat;

/** The provider answered it itself: there may be no result. */
export function isHosted({ metadata }: Fields): boolean {
  return metadata?.providerExecuted === true;
}

/** A part of content, as both have it. `is` is that of `ai-sdk` in model messages or those of the interface. */
export function readPart(part: Fields, key: "data" | "url"): Fields {
  const { type, content, source, signature, ...more } = part;
  if (type === "text") return { type, ...more, text: content };
  if (type === "thinking") {
    const signed = signature ? { [key === "url" ? "providerMetadata" : "providerOptions"]: { anthropic: { signature } } } : {};
    return { type: "reasoning", ...more, text: content, ...signed };
  }
  if (!source) return part;
  const { type: kind, value, mimeType } = source;
  const address = kind === "data" && key === "url" ? `data:${mimeType};base64,${value}` : value;
  return given({ type: "file", ...more, media: type, source: kind, [key]: address, mediaType: mimeType ?? `${type}/*` });
}

export function writePart(part: Fields): Fields {
  const { type, text, media, source, data, url, mediaType, providerMetadata, providerOptions, ...more } = part;
  if (type === "text") return { type, ...more, content: text };
  if (type === "reasoning") return given({ type: "thinking", ...more, content: text, signature: (providerMetadata ?? providerOptions)?.anthropic?.signature });
  if (type !== "file" || !media) return part;
  const [, value = data ?? url] = /^data:[^,]*;base64,(.*)$/s.exec(url ?? "") ?? [];
  return { type: media, ...more, source: given({ type: source, value, mimeType: mediaType === `${media}/*` ? undefined : mediaType }) };
}

function readModel({ content, toolCalls, toolCallId, thinking, error, ...message }: Fields): Fields {
  const { role, name = "" } = message;
  if (role === "tool") {
    const value = Array.isArray(content) ? content.map((part) => readPart(part, "data")) : (content ?? "");
    const output = Array.isArray(value) ? { type: "content", value: value.map(mediaOf) } : { type: error === undefined ? "text" : "error-text", value };
    return { ...message, content: [given({ type: "tool-result", toolCallId, toolName: name, output, error })] };
  }
  if (!toolCalls?.length && !thinking && typeof content === "string") return { ...message, content };
  const thoughts = (thinking ?? []).map((part: Fields) => readPart({ type: "thinking", ...part }, "data"));
  const calls = (toolCalls ?? []).map((call: Fields) => {
    if (isHosted(call)) return { ...call, type: "hosted" };
    const { id, type: _, function: made, ...more } = call;
    return { ...more, type: "tool-call", toolCallId: id, toolName: made.name, input: parsed(made.arguments) };
  });
  return { ...message, content: [...thoughts, ...blocksIn(content).map((part) => readPart(part, "data")), ...calls] };
}

/** Content as parts of TanStack AI. */
function blocksIn(content: unknown): Fields[] {
  return typeof content === "string" ? (content === "" ? [] : [{ type: "text", content }]) : blocksOf(content);
}

/** In the output of a tool, files have another name. */
function mediaOf(part: Fields): Fields {
  return part["type"] === "file" ? { ...part, type: "media" } : part;
}

function writeModel({ content, ...message }: Fields): Fields {
  if (typeof content === "string") return { ...message, content };
  const [first] = content as Fields[];
  if (first?.["type"] === "tool-result") {
    const { toolCallId, toolName, output, error } = first;
    return given({ ...message, ...(toolName ? { name: toolName } : {}), content: written(output), toolCallId, error });
  }
  const parts = content as Fields[];
  const thinking = parts.filter(({ type }) => type === "reasoning").map(writePart).map(({ type: _, ...thought }) => thought);
  const toolCalls = parts.flatMap(({ type, toolCallId: id, toolName: name, input, ...more }) => {
    if (type === "hosted") return [{ ...more, type: "function" }];
    return type === "tool-call" ? [{ id, type: "function", function: { name, arguments: JSON.stringify(input ?? {}) }, ...more }] : [];
  });
  const said = parts.filter(({ type }) => !["reasoning", "hosted", "tool-call"].includes(type)).map(writePart);
  const isText = said.every(({ type }) => type === "text");
  return {
    ...message,
    content: said.length === 0 ? null : isText && said.length === 1 ? said[0]!["content"] : said,
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
    ...(thinking.length > 0 ? { thinking } : {}),
  };
}

function written({ type, value }: Fields): unknown {
  return type === "content" ? value.map((part: Fields) => writePart(part["type"] === "media" ? { ...part, type: "file" } : part)) : value;
}

function patchModel(message: Fields, { calls, results: [result] }: Edits): Fields {
  const inputs = new Map(calls.map(({ id, input }) => [id, input]));
  const toolCalls = message["toolCalls"]?.map((call: Fields) => {
    const input = inputs.get(call["id"]);
    return input ? { ...call, function: { ...call["function"], arguments: JSON.stringify(input) } } : call;
  });
  return given({ ...message, toolCalls, ...(result ? { content: written(Object(result.content)["type"] ? (result.content as Fields) : { value: result.content }) } : {}) });
}
