/** Messages as Mastra's memory stores them. */

import type { CustomFormat } from "../types/formats.js";
import { blocksOf, given, type Fields } from "./shared.js";
import { patchSaid, readSaid, writeSaid } from "./ui.js";

/** Messages of Mastra's storage: `content: { format: 2, parts }`. */
export const mastra: CustomFormat = {
  name: "mastra",
  base: "ai-sdk",
  read: ({ id, role, content, ...more }: Fields) => {
    const { parts, metadata } = readSaid(content);
    return { ...given({ id }), role: role === "signal" ? "user" : role, parts, metadata: { ...more, role, content: metadata } };
  },
  write: ({ id, role, parts, content, metadata }: Fields) => {
    const { role: was = role, content: said = { format: 2 }, createdAt = new Date(), ...more } = Object(metadata) as Fields;
    return { ...given({ id, role: was, createdAt }), ...more, content: writeSaid(parts ?? blocksOf(content), said, "parts") };
  },
  patch: (message: Fields, edits) => ({ ...message, content: patchSaid(message["content"], edits) }),
};
