/** Messages of Ollama's own API: calls have no ids, their arguments are objects. */

import type { CustomFormat } from "../types/formats.js";
import { patchChat, withJson, withObject } from "./chat.js";
import { given, textIn, type Fields } from "./shared.js";

/** `messages` of Ollama's `/api/chat`. A result is paired with its call by `tool_name` and order. */
export const ollama: CustomFormat = {
  name: "ollama",
  base: "openai-chat",
  read: ({ tool_name: name, tool_calls: calls, ...message }: Fields) =>
    given({ ...message, name: name ?? undefined, tool_calls: calls?.length > 0 ? calls.map((call: Fields) => ({ type: "function", ...withJson(call) })) : undefined }),
  write: ({ tool_calls: calls, tool_call_id: id, name, content, ...message }: Fields) =>
    given({
      ...message,
      content: textIn(content),
      // The names of calls begin their ids where those were made for the pairing.
      tool_name: name ?? (message["role"] === "tool" ? String(id).replace(/_\d+$/, "") : undefined),
      tool_calls: calls?.map(({ id: _, type: __, ...call }: Fields) => withObject(call)),
    }),
  patch: (message: Fields, edits) => patchChat(message, edits, "tool_calls", textIn),
};
