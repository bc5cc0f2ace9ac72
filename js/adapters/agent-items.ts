/** Items of the OpenAI Agents SDK, and what the engine reads in their place: items of Responses. */

import type { Message } from "../types.js";
import type { Translation } from "./twins.js";

/** An item, as far as it is looked at. */
export interface Item {
  type?: string;
  role?: string;
  id?: string;
  name?: string;
  callId?: string | null;
  content?: any;
  output?: any;
  [field: string]: any;
}

export const ITEMS: Translation<Item> = {
  read,
  fields: ({ content, output, arguments: args }) => [content, output, args],
  patch,
  write,
};

const TYPES: Record<string, string> = { function_call_result: "function_call_output", computer_call_result: "computer_call_output" };

function read(item: Item): Message {
  const { type = "message", callId, id, caller, providerData, status: _, ...rest } = item;
  const said = {
    ...rest,
    ...(callId ? { call_id: callId } : {}),
    ...(caller?.type === "program" ? { caller: { type: "program", caller_id: caller.callerId } } : {}),
    type: TYPES[type] ?? type,
  };
  switch (type) {
    case "message":
      return { ...said, content: parts(item.content) } as Message;
    case "function_call":
      // Other models than those of Responses give one id to all items of an answer.
      return { ...said, ...(id?.startsWith("fc_") ? { id } : {}) } as Message;
    case "function_call_result":
      return { ...said, output: parts(item.output) } as Message;
    case "computer_call_result":
      return { ...said, output: { type: item.output.type, image_url: item.output.data } } as Message;
    case "reasoning": {
      const { encryptedContent, encrypted_content: encrypted = encryptedContent } = Object(providerData);
      return { ...said, id, content: item["rawContent"] ?? [], summary: item.content, encrypted_content: encrypted } as Message;
    }
    case "hosted_tool_call":
    case "unknown":
      return { ...said, id, ...providerData, type: providerData?.type ?? type } as Message;
    default:
      return { ...said, id } as Message;
  }
}

type Part = Record<string, any>;

/** A text, a part or several: as Responses has them. */
function parts(content: string | Part | Part[] = ""): string | Part[] {
  if (typeof content === "string") return content;
  return [content].flat().map((part) => {
    const { type, image, file, audio, format } = part;
    if (type === "input_image" || type === "image") return { type: "input_image", image_url: address(image ?? part["data"], "image/png") };
    if (type === "input_file" || type === "file") return { type: "input_file", file_data: address(file, "application/octet-stream") };
    if (type === "audio") return { type: "input_audio", input_audio: { data: address(audio, `audio/${format}`) } };
    return part;
  });
}

/** Where a picture, a file or a sound is: its bytes as a data URL, which the runner stores in their place. */
function address(source: any, kind: string): string | undefined {
  if (typeof source === "string" || !source) return source;
  const { data, url, id = url, fileId = id, mediaType = kind } = source;
  if (!data) return fileId;
  if (typeof data === "string" && data.startsWith("data:")) return data;
  const base64 = typeof data === "string" ? data : btoa(Array.from(data as Uint8Array, (byte) => String.fromCharCode(byte)).join(""));
  return `data:${mediaType};base64,${base64}`;
}

/** What the parts say. */
export function plain(content: string | Part[] = ""): string {
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
}

function patch(item: Item, edited: Message): Item {
  const { arguments: args, output } = edited as Item;
  if (item.type === "function_call") return { ...item, arguments: args };
  // The id is that of another output, if the provider gave one.
  const { id: _, ...rest } = item;
  if (item.type !== "function_call_result" || typeof item.output === "string") return { ...rest, output };
  const text = plain(output);
  if (item.output.type === "text") return { ...rest, output: { ...item.output, text } };
  const media = [item.output].flat().filter(({ type }) => type === "input_image" || type === "input_file");
  return { ...rest, output: [{ type: "input_text", text }, ...media] };
}

function write(message: Message): Item {
  const { role, content } = message as Item;
  const text = plain(content);
  if (role !== "assistant") return { type: "message", role: role as string, content: text };
  return { type: "message", role, status: "completed", content: [{ type: "output_text", text }] };
}
