/** Reads messages of the AI SDK, UI messages and model messages (`crates/wire/src/ai_sdk`). */

import { mediaOf, outputOf, valueOf } from "./ai-sdk-output.js";
import { blocksOf, fail, failRole, need, roleNamed, type Block, type Part, type Read, type Role } from "./read.js";
import { charsOf } from "./text.js";
import { fieldOf, given, has, isObject, json, readable, textIn, textOf } from "./values.js";

export function readAiSdk(message: unknown): Read {
  const [role, isUi] = [need(message, "role"), has(message, "parts")];
  if (role !== "system" && role !== "user" && role !== "assistant" && (role !== "tool" || isUi)) {
    if (!isUi) failRole(role, "system, user, assistant, tool");
    fail("role", `a UI message is from system, user or assistant, and never from ${roleNamed(role)}`);
  }
  if (isUi) return { role, parts: blocksOf(given(message, "parts"), "parts").flatMap(partsOfUi) };
  return { role, parts: content(message, role) };
}

function content(message: unknown, role: Role): Part[] {
  const what = { system: "must be a string", tool: "must be an array of parts", user: "", assistant: "" }[role] || "must be a string or an array of parts";
  const found = given(message, "content") ?? fail("content", `${what}, and is missing`);
  const text = textOf(found);
  if (text !== undefined && role !== "tool") return [text];
  if (!Array.isArray(found) || role === "system") fail("content", what);
  return blocksOf(found, "content").flatMap((block) => partsOfModel(block, role));
}

function partsOfModel([kind, part, at]: Block, role: Role): Part[] {
  if (kind === "image" || kind === "file" || kind === "reasoning-file") return [mediaOf(part, kind === "image" ? kind : "data")];
  if (kind === "tool-call" && given(part, "providerExecuted") !== true) {
    need(part, "toolCallId", at);
    return [{ call: need(part, "toolName", at), input: inputOf(part, ["input"]) }];
  }
  if (kind === "tool-result" && role !== "assistant") {
    need(part, "toolCallId", at);
    return outputOf(given(part, "output"));
  }
  const shared = partOfBoth(kind, part, at);
  // What is tied to another part says to which.
  const tie = shared === undefined && /^(?=tool-)[^]*-(?:(request|response)|call|result|output)$/.exec(kind);
  if (tie) need(part, tie[1] ? "approvalId" : "toolCallId", at);
  return [shared ?? readable(part)];
}

function partsOfUi([kind, part, at]: Block): Part[] {
  if (kind === "file" || kind === "reasoning-file") return [mediaOf(part, "url")];
  // What the user said while the model was working.
  if (kind === "steering-message") return has(part, "parts") ? blocksOf(given(part, "parts"), `${at}.parts`).flatMap(partsOfUi) : [];
  if (kind === "dynamic-tool" || kind.startsWith("tool-")) return toolOf(kind, part, at);
  // Steps, sources and data are for the screen: the model is sent none of them.
  return /^(step-start$|source-|data-)/.test(kind) ? [] : [partOfBoth(kind, part, at) ?? readable(part)];
}

function partOfBoth(kind: string, part: unknown, at: string): Part | undefined {
  if (kind === "reasoning") return { thought: need(part, "text", at) };
  if (kind === "custom") return readable(part);
  if (kind !== "text") return undefined;
  const text = need(part, kind, at);
  return isCompaction(part) ? charsOf(text) : text;
}

/** True for Anthropic's compaction block, which comes as a text. */
function isCompaction(part: unknown): boolean {
  const notes = ["providerOptions", "providerMetadata", "callProviderMetadata"].map((key) => fieldOf(part, key));
  return notes.some((note) => isObject(note) && Object.values(note).some((of) => textIn(of, "type") === "compaction"));
}

function inputOf(part: unknown, keys: readonly string[]): string {
  const input = keys.map((key) => fieldOf(part, key)).find((value) => value !== undefined);
  return input === undefined ? "" : json(input);
}

function toolOf(kind: string, part: unknown, at: string): Part[] {
  need(part, "toolCallId", at);
  const name = kind === "dynamic-tool" ? need(part, "toolName", at) : kind.slice(5);
  const state = need(part, "state", at);
  if (given(part, "providerExecuted") === true) return [readable(part)];
  const parts: Part[] = [{ call: name, input: inputOf(part, ["input", "rawInput"]) }];
  const output = fieldOf(part, "output");
  if (state === "output-available") parts.push(valueOf(output === undefined ? "" : output));
  if (state === "output-error") parts.push({ result: textIn(part, "errorText") ?? "", media: [] });
  if (state === "output-denied") parts.push({ result: textIn(given(part, "approval"), "reason") ?? "Tool call execution denied.", media: [] });
  return parts;
}
