/** What the formats that are like Chat Completions do: calls beside the content, each result a message of its own. */

import { given, parsed, type Edits, type Fields } from "./shared.js";

/** A call as Chat Completions has it. */
export function chatCall({ id, name, input }: { id?: string | undefined; name: string; input: unknown }): Fields {
  return given({ id, type: "function", function: { name, arguments: typeof input === "string" ? input : JSON.stringify(input ?? {}) } });
}

/** A message in which the fields of calls are written in camelCase, as in `toolCalls`. */
export function readCamel(message: Fields, content: unknown, callOf = (call: Fields) => call): Fields {
  const { toolCalls, toolCallId, ...rest } = message;
  return given({
    ...rest,
    content,
    tool_calls: toolCalls?.length > 0 ? toolCalls.map(callOf) : undefined,
    tool_call_id: toolCallId ?? undefined,
  });
}

export function writeCamel({ tool_calls: toolCalls, tool_call_id: toolCallId, ...rest }: Fields, content: unknown, callOf = (call: Fields) => call): Fields {
  return given({ ...rest, content, toolCalls: toolCalls?.map(callOf), toolCallId });
}

/** An edited copy of a message whose calls are in `calls`, where one says its input as `arguments`: JSON text, or an object. */
export function patchChat(message: Fields, { results, calls }: Edits, field: string, contentOf: (content: unknown) => unknown): Fields {
  const [result] = results;
  const inputs = new Map(calls.map(({ nth, input }) => [nth, input]));
  const again = (call: Fields, nth: number) => {
    const input = inputs.get(nth);
    if (!input) return call;
    const { arguments: before } = call["function"];
    return { ...call, function: { ...call["function"], arguments: typeof before === "string" ? JSON.stringify(input) : input } };
  };
  return {
    ...message,
    ...(result ? { content: contentOf(result.content) } : {}),
    ...(calls.length > 0 ? { [field]: message[field].map(again) } : {}),
  };
}

/** The call with its input as an object. */
export function withObject(call: Fields): Fields {
  return { ...call, function: { ...call["function"], arguments: parsed(call["function"].arguments) } };
}

/** The call with its input as JSON text. */
export function withJson(call: Fields): Fields {
  const { arguments: input } = call["function"];
  return { ...call, function: { ...call["function"], arguments: typeof input === "string" ? input : JSON.stringify(input ?? {}) } };
}
