/** Messages of MCP sampling: the content of most is one block. */

import type { CustomFormat } from "../types/formats.js";
import { blocksOf, edited, given, type Fields } from "./shared.js";

/** `messages` of MCP's `sampling/createMessage`, with tools or without. */
export const mcp: CustomFormat = {
  name: "mcp",
  base: "anthropic",
  read: ({ role, content }: Fields) => ({ role, content: blocksOf(content).map(readBlock) }),
  write: ({ role, content }: Fields) => {
    const blocks = blocksOf(content).map(writeBlock);
    return { role, content: blocks.length === 1 ? blocks[0] : blocks };
  },
  patch: (message: Fields, edits) => {
    const blocks = edited(
      blocksOf(message["content"]),
      edits,
      (block, input) => (block["type"] === "tool_use" ? { ...block, input } : undefined),
      // What is structured says the same as the content, which is another one now.
      ({ structuredContent: _, ...block }, content) => (block["type"] === "tool_result" ? { ...block, content: blocksOf(content).map(writeBlock) } : undefined),
    );
    return { ...message, content: Array.isArray(message["content"]) ? blocks : blocks[0] };
  },
};

function readBlock(block: Fields): Fields {
  const { type, data, mimeType, toolUseId, content, structuredContent, isError } = block;
  if (type === "image") return { type, source: { type: "base64", media_type: mimeType, data } };
  if (type !== "tool_result") return block;
  const said = blocksOf(content).map(readBlock);
  const alone = said.length === 0 && structuredContent ? [{ type: "text", text: JSON.stringify(structuredContent) }] : said;
  return given({ type, tool_use_id: toolUseId, content: alone, is_error: isError });
}

function writeBlock(block: Fields): Fields {
  const { type, source, tool_use_id: toolUseId, content, is_error: isError } = block;
  if (type === "image") return { type, data: source.data, mimeType: source.media_type };
  return type === "tool_result" ? given({ type, toolUseId, content: blocksOf(content).map(writeBlock), isError }) : block;
}
