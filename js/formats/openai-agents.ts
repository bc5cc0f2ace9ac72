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

/** What the SDK gives items of models that give none. */
const NO_ID = "FAKE_ID";

function read({ type, id, callId, caller, content, output, rawContent, ...more }: Fields): Fields {
  const own = given({
    type: TYPES[type] ?? type,
    id: id === NO_ID ? undefined : id,
    call_id: callId ?? undefined,
    ...more,
    caller: caller && given({ type: caller.type, caller_id: caller.callerId }),
  });
  switch (type) {
    case "reasoning": {
      const encrypted_content = more["providerData"]?.encryptedContent ?? more["providerData"]?.encrypted_content;
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
    default:
      return given({ ...own, content: Array.isArray(content) ? content.map(readBlock) : content, output });
  }
}

/** A text, one block of an older release, or a list of blocks. */
function readOutput(output: unknown): unknown {
  const { type, text } = Object(output) as Fields;
  if (typeof output === "string" || output === undefined) return output ?? "";
  return type === "text" ? text : blocksOf(output).map(readBlock);
}

function readBlock(block: Fields): Fields {
  const { type, image, file, ...more } = block;
  if (type === "input_image" || type === "image") {
    const { id, fileId = id, url, data, mediaType } = Object(image) as Fields;
    const address = typeof image === "string" ? image : (url ?? (data && `data:${mediaType};base64,${data}`));
    return given({ ...more, type: "input_image", image_url: address, file_id: fileId, was: type === "image" ? type : undefined });
  }
  if ((type !== "input_file" && type !== "file") || file === undefined) return block;
  const { id, fileId = id, url } = Object(file) as Fields;
  const data = typeof file === "string" && !/^https?:/.test(file) ? file : undefined;
  return given({ ...more, type: "input_file", file_data: data, file_url: url ?? (data === undefined && typeof file === "string" ? file : undefined), file_id: fileId, was: type === "file" ? type : undefined });
}

function writeBlock(block: Fields): Fields {
  const { type, was, image_url: image, file_id: id, file_data: data, file_url: url, ...more } = block;
  if (type === "input_image") return { ...more, type: was ?? type, image: image ?? { id } };
  return type === "input_file" ? { ...more, type: was ?? type, file: data ?? url ?? { id } } : block;
}

function write({ type, call_id: callId, caller, content, output, summary, encrypted_content, result, image_url: _, ...more }: Fields): Fields {
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
