/** Items of the OpenAI Agents SDK, which writes fields of the Responses API in camelCase. */

import type { CustomFormat } from "../types/formats.js";
import { blocksOf, given, type Edits, type Fields } from "./shared.js";

/** Items of the OpenAI Agents SDK, as runs return them and its sessions store them. */
export const openaiAgents: CustomFormat = {
  name: "openaiAgents",
  base: "openai-responses",
  read,
  write,
  patch,
};

const TYPES: Record<string, string> = { function_call_result: "function_call_output", computer_call_result: "computer_call_output" };
const OWN: Record<string, string> = Object.fromEntries(Object.entries(TYPES).map(([own, type]) => [type, own]));

/** How ids begin that Responses gives. Other models give one id to all items of an answer. */
const IDS: Record<string, string> = { message: "msg_", function_call: "fc_" };

function isOwn(type = "message", id = ""): boolean {
  return id !== "FAKE_ID" && id.startsWith(IDS[type] ?? "");
}

function read({ type, id, callId, caller, content, output, rawContent, ...more }: Fields): Fields {
  const { providerData, name } = more;
  const own = given({
    type: TYPES[type] ?? type,
    id: isOwn(type, id) ? id : undefined,
    call_id: callId ?? undefined,
    ...more,
    caller: caller && given({ type: caller.type, caller_id: caller.callerId }),
  });
  switch (type) {
    case "reasoning": {
      const encrypted_content = providerData?.encryptedContent ?? providerData?.encrypted_content;
      const thought = rawContent && { content: rawContent };
      return given({ ...own, summary: blocksOf(content).map((block) => ({ ...block, type: "summary_text" })), ...thought, encrypted_content });
    }
    case "function_call_result":
      return { ...own, output: readOutput(output) };
    case "computer_call_result": {
      const { data: image_url, ...shot } = output;
      return { ...own, output: { ...shot, image_url } };
    }
    case "program_output":
      return { ...own, result: output };
    // What the provider did itself, as its own item.
    case "hosted_tool_call":
    case "unknown":
      if (providerData) return given({ id, status: more["status"], caller: own["caller"], ...providerData, type: providerData.type ?? name ?? type, was: type });
  }
  return given({ ...own, content: Array.isArray(content) ? content.map(readBlock) : content, output });
}

/** A text, one block of an older release, or a list of blocks. */
function readOutput(output: unknown): unknown {
  const { type, text } = Object(output) as Fields;
  if (typeof output === "string" || output === undefined) return output ?? "";
  return type === "text" ? text : blocksOf(output).map(readBlock);
}

/** What a block holds beside text. */
const MEDIA: Record<string, string> = { input_image: "image", image: "image", input_file: "file", file: "file", audio: "audio" };

function readBlock(block: Fields): Fields {
  const { type, image, file = image, audio: source = file, ...more } = block;
  const kind = MEDIA[type];
  if (!kind || source === undefined) return block;
  const { id, fileId = id, url, data, mediaType } = typeof source === "object" ? source : ({ [/^https?:/.test(source) ? "url" : "data"]: source } as Fields);
  return given({
    ...more,
    type: `input_${kind}`,
    image_url: kind === "image" ? (url ?? dataUrl(data, mediaType)) : undefined,
    input_audio: kind === "audio" ? { data } : undefined,
    file_data: kind === "file" ? dataUrl(data, mediaType) : undefined,
    file_url: kind === "file" ? url : undefined,
    file_id: fileId,
    was: type === `input_${kind}` ? undefined : type,
  });
}

/** Bytes of a tool's picture or file in the form in which the runner stores them; a text without a type as it is. */
function dataUrl(data: string | Uint8Array | undefined, mediaType: string | undefined): string | undefined {
  if (typeof data === "object") return dataUrl(btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join("")), mediaType ?? "image/png");
  return data && mediaType && !data.startsWith("data:") ? `data:${mediaType};base64,${data}` : data;
}

function writeBlock(block: Fields): Fields {
  const { type, was = type, image_url: image, file_id: id, file_data: data = image, file_url: url = data, input_audio: audio, ...more } = block;
  const kind = MEDIA[was];
  return kind ? { ...more, type: was, [kind]: url ?? audio?.data ?? { id } } : block;
}

function write({ was, ...item }: Fields): Fields {
  if (!was) return writeItem(item);
  const { type, id, status } = item;
  return given({ type: was, id, name: type, status, providerData: item });
}

function writeItem({ type, call_id: callId, caller, content, output, summary, encrypted_content, result, image_url: _, ...more }: Fields): Fields {
  const own = given({
    type: OWN[type] ?? type,
    callId,
    ...more,
    caller: caller && given({ type: caller.type, callerId: caller.caller_id }),
  });
  switch (type) {
    case "reasoning":
      return given({ ...own, content: (summary ?? []).map((block: Fields) => ({ ...block, type: "input_text" })), rawContent: content });
    case "function_call_output":
      return { name: "", status: "completed", ...own, output: writeOutput(output) };
    case "computer_call_output": {
      const { image_url: data, ...shot } = output;
      return { ...own, output: { ...shot, data } };
    }
    case "program_output":
      return { ...own, output: result };
    case "compaction":
      return { ...own, encrypted_content };
    default: {
      const { role } = more;
      const said = Array.isArray(content) ? content.map(writeBlock) : content;
      // What the assistant says is a list of blocks.
      if (role === "assistant") return { status: "completed", ...own, content: Array.isArray(said) ? said : [{ type: "output_text", text: said }] };
      return given({ ...own, content: said, output, result, encrypted_content });
    }
  }
}

function writeOutput(output: unknown): unknown {
  return Array.isArray(output) ? output.map(writeBlock) : output;
}

function patch(item: Fields, { results: [result], calls: [call] }: Edits): Fields {
  const { type, output } = item;
  const content = result?.content as Fields | undefined;
  const said = () => {
    if (type === "computer_call_result") return { ...output, data: content?.["image_url"] };
    return Object(output).type === "text" && typeof content === "string" ? { ...output, text: content } : writeOutput(content);
  };
  return { ...item, ...(result ? { output: said() } : {}), ...(call ? { arguments: JSON.stringify(call.input) } : {}) };
}
