/** Messages of TanStack AI: of its user interface, and of its models. */

import type { CustomFormat } from "../types/formats.js";
import { blocksOf, edited, given, parsed, type Edits, type Fields } from "./shared.js";

/** Messages of TanStack AI: `UIMessage`, whose parts have `content` for `text`, and `ModelMessage`, whose calls are in
 *  `toolCalls`. A history has one of the two. */
export const tanstack: CustomFormat = {
  name: "tanstack",
  base: "ai-sdk",
  read: (message: Fields) => (message["parts"] ? readUi(message) : readModel(message)),
  write: (message: Fields) => (message["parts"] ? writeUi(message) : writeModel(message)),
  patch: (message: Fields, edits) => (message["parts"] ? patchUi(message, edits) : patchModel(message, edits)),
};

/** A part of content, as both have it. `is` is that of `ai-sdk` in model messages or those of the interface. */
function readPart(part: Fields, key: "data" | "url"): Fields {
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

function writePart(part: Fields): Fields {
  const { type, text, media, source, data, url, mediaType, providerMetadata, providerOptions, ...more } = part;
  if (type === "text") return { type, ...more, content: text };
  if (type === "reasoning") return given({ type: "thinking", ...more, content: text, signature: (providerMetadata ?? providerOptions)?.anthropic?.signature });
  if (type !== "file" || !media) return part;
  const [, value = data ?? url] = /^data:[^,]*;base64,(.*)$/s.exec(url ?? "") ?? [];
  return { type: media, ...more, source: given({ type: source, value, mimeType: mediaType === `${media}/*` ? undefined : mediaType }) };
}

/** The result of each call is a part of its own; `output` is what a client's tool returned. */
function readUi({ parts, metadata, createdAt, name, ...message }: Fields): Fields {
  const results = new Map((parts as Fields[]).flatMap((part) => (part["type"] === "tool-result" ? [[part["toolCallId"], part]] : [])));
  const calls = new Set((parts as Fields[]).map(({ type, id }) => type === "tool-call" && id));
  const read = (part: Fields): Fields[] => {
    if (part["type"] === "tool-result" && calls.has(part["toolCallId"])) return [];
    return [part["type"] === "tool-call" ? readCall(part, results.get(part["id"])) : readPart(part, "url")];
  };
  return { ...message, parts: parts.flatMap(read), metadata: given({ metadata, createdAt, name }) };
}

function readCall(call: Fields, result: Fields | undefined): Fields {
  const { type: _, id: toolCallId, name, arguments: json, input = parsed(json), state, output, approval, ...more } = call;
  const known = given({ ...more, type: `tool-${name}`, toolCallId, input, approval: approval && given(approval) });
  const written = { was: state, result: result && without(result) };
  if (result?.["error"] !== undefined || result?.["state"] === "error") return { ...known, ...given(written), state: "output-error", errorText: result["error"] ?? result["content"] };
  const said = result ? contentOf(result["content"]) : output;
  if (said !== undefined) return { ...known, ...given(written), state: "output-available", output: said, ...(output === undefined ? {} : { hasOutput: true }) };
  const isAsked = state === "approval-requested" || state === "approval-responded";
  return { ...known, ...given(written), state: isAsked ? state : state === "input-complete" ? "input-available" : "input-streaming" };
}

/** A result without what it says, which the part of the call has. */
function without({ type: _, toolCallId: __, content: ___, error: ____, ...more }: Fields): Fields {
  return more;
}

/** A result's content as an output, and back: a list of parts is tagged, so that its pictures count as such. */
function contentOf(content: unknown): unknown {
  return Array.isArray(content) ? content.map((part: Fields) => readPart(part, "data")) : content;
}

function contentFrom(output: unknown): unknown {
  return Array.isArray(output) ? output.map(writePart) : output;
}

function writeUi({ parts, metadata, ...message }: Fields): Fields {
  const write = (part: Fields) => (part["toolCallId"] && String(part["type"]).startsWith("tool-") ? writeCall(part) : [writePart(part)]);
  return { ...message, parts: parts.flatMap(write), ...metadata };
}

function writeCall({ type, toolCallId: id, input, state, output, errorText, was, result, hasOutput, ...more }: Fields): Fields[] {
  const call = given({ type: "tool-call", id, name: type.slice("tool-".length), arguments: JSON.stringify(input ?? {}), input, state: was ?? "complete", ...more, output: hasOutput ? output : undefined });
  if (output === undefined && errorText === undefined) return [call];
  if (hasOutput && !result) return [call];
  const said = errorText === undefined ? { content: contentFrom(output), state: "complete" } : { content: errorText, state: "error", error: errorText };
  return [call, { type: "tool-result", toolCallId: id, ...said, ...result }];
}

function patchUi(message: Fields, { calls, results }: Edits): Fields {
  const parts: Fields[] = message["parts"];
  // A result counts where its call is.
  const answered = parts.filter(({ type, id, output }) => type === "tool-call" && (output !== undefined || parts.some((part) => part["type"] === "tool-result" && part["toolCallId"] === id)));
  const saying = new Map(results.map(({ nth, content }) => [answered[nth]?.["id"], content]));
  const changed = edited(parts, { calls, results: [] }, (part, input) => (part["type"] === "tool-call" ? { ...part, input, arguments: JSON.stringify(input) } : undefined), () => undefined);
  return {
    ...message,
    parts: changed.map((part) => {
      const { type, id, toolCallId, output, error } = part;
      const content = saying.get(type === "tool-call" ? id : toolCallId);
      if (content === undefined) return part;
      if (type === "tool-call") return output === undefined ? part : { ...part, output: content };
      return { ...part, content: contentFrom(content), ...(error === undefined ? {} : { error: content }) };
    }),
  };
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
  const calls = (toolCalls ?? []).map(({ id, type: _, function: { name: toolName, arguments: json }, ...more }: Fields) => ({ ...more, type: "tool-call", toolCallId: id, toolName, input: parsed(json) }));
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
  const of = (type: string, is = true) => (content as Fields[]).filter((part) => (part["type"] === type) === is);
  const thinking = of("reasoning").map(writePart).map(({ type: _, ...thought }) => thought);
  const toolCalls = of("tool-call").map(({ type: _, toolCallId: id, toolName: name, input, ...more }) => ({ id, type: "function", function: { name, arguments: JSON.stringify(input ?? {}) }, ...more }));
  const said = of("reasoning", false).filter(({ type }) => type !== "tool-call").map(writePart);
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

function patchModel(message: Fields, { calls, results }: Edits): Fields {
  const inputs = new Map(calls.map(({ nth, input }) => [nth, input]));
  const [result] = results;
  const toolCalls = message["toolCalls"]?.map((call: Fields, nth: number) =>
    inputs.has(nth) ? { ...call, function: { ...call["function"], arguments: JSON.stringify(inputs.get(nth)) } } : call,
  );
  return given({ ...message, toolCalls, ...(result ? { content: written(Object(result.content)["type"] ? (result.content as Fields) : { value: result.content }) } : {}) });
}
