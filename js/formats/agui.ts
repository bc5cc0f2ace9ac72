/** Messages of the AG-UI protocol, which CopilotKit has, too. */

import type { CustomFormat } from "../types/formats.js";
import { patchChat, readCamel, writeCamel } from "./chat.js";
import { given, idFor, textIn, type Fields } from "./shared.js";

/** `messages` of AG-UI and CopilotKit. Messages of `reasoning` and `activity` are read as texts of the assistant. */
export const agui: CustomFormat = {
  name: "agui",
  base: "openai-chat",
  read: (message: Fields) => {
    const { role, content } = message;
    if (role !== "reasoning" && role !== "activity") return readCamel(message, Array.isArray(content) ? content.map(readBlock) : content);
    // No provider has these roles: `agui` says what to write again.
    const text = typeof content === "string" ? content : JSON.stringify(content);
    return { ...message, role: "assistant", content: text || " ", agui: role };
  },
  write: ({ agui: role, ...message }: Fields) => {
    const { content } = message;
    if (role === "activity") return { ...message, role, content: JSON.parse(content) };
    if (role === "reasoning") return { ...message, role, content: content.trimEnd() };
    const blocks = Array.isArray(content) && message["role"] === "user" ? content.map(writeBlock) : undefined;
    return writeCamel({ ...message, id: message["id"] ?? idFor(message) }, blocks ?? (content === null || content === undefined ? undefined : textIn(content)));
  },
  patch: (message: Fields, edits) => patchChat(message, edits, "toolCalls", textIn),
};

/** A picture is counted as one, and a file as one, not as text. */
function readBlock({ source, ...block }: Fields): Fields {
  const { type, data, url, mimeType = source?.mimeType, ...more } = block;
  const [value, isData] = source ? [source.value, source.type === "data"] : [data ?? url, data !== undefined];
  if (value === undefined) return block;
  const address = isData ? `data:${mimeType};base64,${value}` : value;
  const agui = given({ ...more, type, mimeType });
  const isPicture = type === "image" || (type === "binary" && String(mimeType).startsWith("image/"));
  return isPicture ? { type: "image_url", image_url: { url: address }, agui } : { type: "file", file: { file_data: address }, agui };
}

function writeBlock({ agui, image_url: image, file, ...block }: Fields): Fields {
  const address = image?.url ?? file?.file_data;
  if (address === undefined) return block;
  const { type = "image", mimeType, ...more } = Object(agui) as Fields;
  const [, kind, data] = /^data:([^,]*);base64,(.*)$/s.exec(address) ?? [];
  if (type === "binary") return given({ type, mimeType, ...more, ...(data === undefined ? { url: address } : { data }) });
  const source = data === undefined ? given({ type: "url", value: address, mimeType }) : { type: "data", value: data, mimeType: kind };
  return { type, source, ...more };
}
