/** Messages of Cohere's Chat API, version 2, as its client writes them and as the API does. */

import type { CustomFormat } from "../types/formats.js";
import { patchChat } from "./chat.js";
import { given, parsed, type Fields } from "./shared.js";

/** `messages` of Cohere's Chat API v2. The documents of a result are read as their text. */
export const cohere: CustomFormat = {
  name: "cohere",
  base: "openai-chat",
  read: ({ toolCalls, toolCallId, toolPlan, ...message }: Fields) => {
    const { content, tool_calls: calls = toolCalls, tool_call_id = toolCallId, tool_plan = toolPlan, ...rest } = message;
    const isCamel = Boolean(toolCalls ?? toolCallId ?? toolPlan);
    const said = Array.isArray(content) ? content.map(readBlock) : content;
    return given({
      ...rest,
      content: said === undefined && calls ? null : said,
      ...{ tool_calls: calls?.length > 0 ? calls : undefined, tool_call_id, tool_plan },
      // The API writes other names than its client.
      metadata: isCamel ? { isCamel } : undefined,
    });
  },
  write: ({ metadata, tool_calls, tool_call_id, tool_plan, content, ...message }: Fields) => {
    const fields = metadata?.isCamel ? { toolCalls: tool_calls, toolCallId: tool_call_id, toolPlan: tool_plan } : { tool_calls, tool_call_id, tool_plan };
    return given({ ...message, content: writeContent(content), ...fields });
  },
  patch: (message: Fields, edits) => patchChat(message, edits, message["toolCalls"] ? "toolCalls" : "tool_calls", writeContent),
};

function readBlock({ imageUrl, document, ...block }: Fields): Fields {
  if (imageUrl) return { ...block, image_url: imageUrl, metadata: { isCamel: true } };
  if (document === undefined) return block;
  // A text, or fields of any name; with an id, or alone.
  const { id, data = document } = Object(document) as Fields;
  return { type: "text", text: typeof data === "string" ? data : JSON.stringify(data), metadata: given({ document: true, id }) };
}

function writeContent(content: unknown): unknown {
  if (content === null) return undefined;
  return Array.isArray(content) ? content.map(writeBlock) : content;
}

function writeBlock({ metadata, image_url: image, ...block }: Fields): Fields {
  if (image) return { ...block, [metadata?.isCamel ? "imageUrl" : "image_url"]: image };
  const data = metadata?.document ? parsed(block["text"]) : undefined;
  // Where a reference is in its place, there is no document.
  if (typeof data !== "object") return block;
  return { type: "document", document: given({ data, id: metadata.id }) };
}
