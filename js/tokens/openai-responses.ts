/** Reads items of OpenAI Responses (`crates/wire/src/openai_responses/read.rs`). */

import { blocksOf, fail, failRole, list, may, media, need, needObject, resultOf, Unreadable, type Block, type Media, type Part, type Read, type Role } from "./read.js";
import { given, has, json, readable, textIn, textOf, urlLength } from "./values.js";

/** The item's type. A message need not tell it when it has a role, nor a reference, which is all `id`. */
export function typeOf(item: unknown): string | undefined {
  if (has(item, "type")) return textIn(item, "type");
  if (has(item, "role")) return "message";
  return textIn(item, "id") === undefined ? undefined : "item_reference";
}

export function readItem(item: unknown): Read {
  const type = typeOf(item) ?? fail("type", "must be a string: an item has a type, and a message at least a role");
  return { role: roleNamed(textIn(item, "role")) ?? roleOf(item, type), parts: partsOf(item, type) };
}

function roleNamed(name: string | undefined): Role | undefined {
  if (name === "developer") return "system";
  return name === "system" || name === "user" || name === "assistant" ? name : undefined;
}

/** Whose an item without a role is: what answers a call of the app is the tools', all else the model's. */
function roleOf(item: unknown, type: string): Role {
  if (type === "compaction_trigger") return "system";
  const [, stem] = /^([^]*)_(?:output|result|response)$/.exec(type) ?? [];
  const key = type === "mcp_approval_response" ? "approval_request_id" : "call_id";
  const id = textIn(item, key) ?? (type === "local_shell_call_output" ? textIn(item, "id") : undefined);
  const isOfServer = stem === undefined || /^program(_call)?$/.test(stem) || (type === "tool_search_output" && textIn(item, "execution") === "server");
  return id === undefined || isOfServer ? "assistant" : "tool";
}

/** Calls by their types: the name that they have, and the field with what they are called with. */
const CALLS: Record<string, [name: string, input: string]> = {
  local_shell_call: ["local_shell", "action"],
  shell_call: ["shell", "action"],
  apply_patch_call: ["apply_patch", "operation"],
};

function partsOf(item: unknown, type: string): Part[] {
  if (Object.hasOwn(CALLS, type)) {
    const [name, input] = CALLS[type] as [string, string];
    return call(item, name, json(needObject(item, input, "")));
  }
  switch (type) {
    case "message": {
      const name = need(item, "role");
      return roleNamed(name) ? content(item, "content") : failRole(name, "system, developer, user, assistant");
    }
    case "reasoning":
      return [{ thought: reasoning(item) }];
    case "function_call": {
      const name = need(item, "name");
      return call(item, name, need(item, "arguments"));
    }
    case "custom_tool_call": {
      const input = json(need(item, "input"));
      return call(item, need(item, "name"), input);
    }
    case "computer_call":
      // One action, or several at once.
      return call(item, "computer", json(given(item, "actions") ?? given(item, "action") ?? {}));
    case "shell_call_output":
      checkId(item, type);
      return [{ result: shellOutput(item), media: [] }];
    case "apply_patch_call_output": {
      const result = may(item, "output");
      checkId(item, type);
      return [{ result, media: [] }];
    }
    case "computer_call_output": {
      const screenshot = needObject(item, "output", "");
      checkId(item, type);
      return [{ result: "", media: [media("image", 0, given(screenshot, "image_url"))] }];
    }
    case "function_call_output":
    case "custom_tool_call_output":
    case "local_shell_call_output":
      checkId(item, type);
      return resultOf(content(item, "output"));
    case "image_generation_call":
      return [beside(item, "result"), ...(has(item, "result") ? [media("image", 0, given(item, "result"))] : [])];
    case "item_reference":
      need(item, "id");
      return [readable(item)];
    case "compaction":
    case "compaction_summary":
      return [readable(item)];
    default:
      // Items that are news to us may still hold prose that we know (messages between agents).
      try {
        return [...content(item, "content"), beside(item, "content")];
      } catch (error) {
        if (!(error instanceof Unreadable)) throw error;
        return [readable(item)];
      }
  }
}

/** Characters of an item beside a field that is told apart. */
function beside(item: unknown, key: string): number {
  return Math.max(0, readable(item) - readable(given(item, key)));
}

function call(item: unknown, name: string, input: string): Part[] {
  need(item, "call_id");
  return [{ call: name, input }];
}

function checkId(item: unknown, type: string): void {
  if (type !== "local_shell_call_output" || textIn(item, "id") === undefined) need(item, "call_id");
}

/** What each command wrote, one after the other. */
function shellOutput(item: unknown): string {
  if (!has(item, "output")) fail("output", "must be an array, and is missing");
  const texts = list(given(item, "output"), "output").flatMap((chunk, nth) => ["stdout", "stderr"].map((key) => may(chunk, key, `output[${nth}]`)));
  return texts.filter(Boolean).join("\n");
}

/** A summary for people, and the model's own words where a server shows them. */
function reasoning(item: unknown): string {
  const blocks = ["summary", "content"].flatMap((key): Block[] => (has(item, key) ? blocksOf(given(item, key), key) : []));
  return blocks.flatMap(([, block]) => textIn(block, "text") || []).join("\n");
}

function content(item: unknown, key: string): Part[] {
  const expected = "must be a string or an array of content parts";
  const found = given(item, key) ?? fail(key, `${expected}, and is missing`);
  const text = textOf(found);
  if (text !== undefined) return [text];
  if (!Array.isArray(found)) fail(key, expected);
  return blocksOf(found, key).map(([kind, block, at]) => {
    if (kind === "refusal") return need(block, kind, at);
    if (/^(?:(?:(?:in|out)put|summary|reasoning)_)?text$/.test(kind)) return need(block, "text", at);
    return mediaOf(kind, block) ?? readable(block);
  });
}

function mediaOf(kind: string, block: unknown): Media | undefined {
  const picture = given(block, "image_url");
  if (kind === "input_image" || kind === "computer_screenshot") return media("image", 0, picture);
  if (kind === "input_file") return media("document", urlLength(given(block, "file_data"), true));
  return kind === "input_audio" ? media("audio", urlLength(given(given(block, "input_audio"), "data"), true)) : undefined;
}
