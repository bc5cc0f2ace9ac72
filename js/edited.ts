/** Calls and results of a message, by format: what the engine may have edited in one of the app's. */

import type { Fields } from "./bare.js";
import type { EditedCall, EditedResult } from "./types/formats.js";
import type { Format, Message } from "./types.js";

interface Pair {
  /** Of the call; of a format without ids, its name. */
  id: string;
  value: unknown;
}

/** The calls of a message with their inputs, and its results with their contents, each in its order. */
export interface Paired {
  calls: Pair[];
  results: Pair[];
}

/** Where each format has them. */
const PLACES: Record<Format, (message: Fields, found: Paired) => void> = {
  "openai-chat"({ role, content, tool_calls, function_call: call, tool_call_id, name }, { calls, results }) {
    for (const { id, function: made, custom } of list(tool_calls)) calls.push({ id, value: parsed(made?.arguments) ?? custom?.input });
    if (call) calls.push({ id: call.name, value: parsed(call.arguments) });
    if (role === "tool" || role === "function") results.push({ id: role === "tool" ? tool_call_id : name, value: content });
  },
  anthropic({ content }, { calls, results }) {
    for (const { type, id, input, tool_use_id, content: said } of list(content)) {
      if (type === "tool_use") calls.push({ id, value: input });
      if (type === "tool_result") results.push({ id: tool_use_id, value: said });
    }
  },
  "openai-responses"({ type = "", call_id: id, arguments: input, output }, { calls, results }) {
    if (id === undefined) return;
    if (type.endsWith("_output")) results.push({ id, value: output });
    else calls.push({ id, value: parsed(input) });
  },
  gemini({ parts }, { calls, results }) {
    for (const part of list(parts)) {
      const [call, result] = [part.functionCall ?? part.function_call, part.functionResponse ?? part.function_response];
      if (call) calls.push({ id: call.id ?? call.name, value: call.args });
      if (result) results.push({ id: result.id ?? result.name, value: result.response });
    }
  },
  "ai-sdk"({ parts, content }, { calls, results }) {
    for (const { type, toolCallId: id, input, rawInput, output, errorText } of list(parts ?? content)) {
      if (id === undefined) continue;
      if (type !== "tool-result") calls.push({ id, value: input ?? rawInput });
      if (output !== undefined || errorText !== undefined) results.push({ id, value: output ?? errorText });
    }
  },
  // A turn has one call, which no id names.
  react() {},
};

export function pairedIn(format: Format, message: Message): Paired {
  const found: Paired = { calls: [], results: [] };
  PLACES[format](message, found);
  return found;
}

/** One text for a message's calls and results: that of an edited copy is the same. Empty without any. */
export function tieOf({ calls, results }: Paired): string {
  if (calls.length + results.length === 0) return "";
  return JSON.stringify([calls, results].map((pairs) => pairs.map(({ id }) => id)));
}

/** The calls and results of `after` that differ from those of `before`. */
export function editsOf(before: Paired, after: Paired): { results: EditedResult[]; calls: EditedCall[] } {
  const changed = (pairs: Pair[], others: Pair[]) =>
    pairs.flatMap(({ id, value }, nth) => (isSame(value, others[nth]?.value) ? [] : [{ nth, id, value }]));
  return {
    results: changed(after.results, before.results).map(({ nth, id, value }) => ({ nth, id, content: value })),
    calls: changed(after.calls, before.calls).map(({ nth, id, value }) => ({ nth, id, input: value as Fields })),
  };
}

/** True for two messages of one format that say the same, whatever their metadata, which no format counts. */
export function sayTheSame(one: Message, other: Message): boolean {
  return isSame(bare(one), bare(other));
}

function bare({ metadata: _, ...message }: Fields): Fields {
  const { content, parts } = message;
  const items = (given: unknown) => (Array.isArray(given) ? given.map((item) => (typeof item === "object" && item !== null ? bare(item) : item)) : given);
  return { ...message, content: items(content), parts: items(parts) };
}

/** True for two values that say the same: the order of fields and those without a value do not count. */
function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) || ArrayBuffer.isView(one)) {
    const [list, others] = [one, other] as unknown as [unknown[], unknown[]];
    return one.constructor === other.constructor && list.length === others.length && list.every((item, at) => isSame(item, others[at]));
  }
  if (one instanceof Date || one instanceof URL) return one.constructor === other.constructor && one.toJSON() === (other as Date).toJSON();
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => isSame((one as Fields)[name], (other as Fields)[name]));
}

function list(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "object" && item !== null) : [];
}

/** The input of a call, of which some formats have the JSON text. */
function parsed(input: unknown): unknown {
  if (typeof input !== "string") return input;
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}
