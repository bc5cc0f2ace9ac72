/** Messages of TanStack AI: of its user interface, and of its models. */

import type { CustomFormat } from "../types/formats.js";
import { edited, given, parsed, type Edits, type Fields } from "./shared.js";
import { isHosted, readPart, tanstackModel, writePart } from "./tanstack-model.js";

/** Messages of TanStack AI: `UIMessage`, whose parts have `content` for `text`, and `ModelMessage`, whose calls are in
 *  `toolCalls`. A history has one of the two. */
export const tanstack: CustomFormat = {
  name: "tanstack",
  base: "ai-sdk",
  read: (message: Fields) => (message["parts"] ? readUi(message) : tanstackModel.read(message)),
  write: (message: Fields) => (message["parts"] ? writeUi(message) : tanstackModel.write(message)),
  patch: (message: Fields, edits) => (message["parts"] ? patchUi(message, edits) : tanstackModel.patch(message, edits)),
};

/** The result of each call is a part of its own; `output` is what a client's tool returned. */
function readUi({ parts, metadata, createdAt, name, ...message }: Fields): Fields {
  const results = new Map((parts as Fields[]).flatMap((part) => (part["type"] === "tool-result" ? [[part["toolCallId"], part]] : [])));
  const calls = new Set((parts as Fields[]).map(({ type, id }) => type === "tool-call" && id));
  const read = (part: Fields): Fields[] => {
    if (part["type"] === "tool-result" && calls.has(part["toolCallId"])) return [];
    if (isAlone(part, parts)) return [{ ...part, type: "hosted" }];
    return [part["type"] === "tool-call" ? readCall(part, results.get(part["id"])) : readPart(part, "url")];
  };
  return { ...message, parts: parts.flatMap(read), metadata: given({ metadata, createdAt, name }) };
}

/** A call that the provider answered itself, without a result. */
function isAlone(part: Fields, parts: readonly Fields[]): boolean {
  return part["type"] === "tool-call" && isHosted(part) && part["output"] === undefined && !parts.some(({ toolCallId }) => toolCallId === part["id"]);
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
  const write = (part: Fields) => {
    if (part["type"] === "hosted") return [{ ...part, type: "tool-call" }];
    return part["toolCallId"] && String(part["type"]).startsWith("tool-") ? writeCall(part) : [writePart(part)];
  };
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
  const changed = edited(parts, { calls, results: [] }, (part, input) => (part["type"] === "tool-call" && !isAlone(part, parts) ? { ...part, input, arguments: JSON.stringify(input) } : undefined), () => undefined);
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
