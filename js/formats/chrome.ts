/** Prompts of the model that is built into Chrome: blocks say what they hold in `value`. */

import type { CustomFormat } from "../types/formats.js";
import type { Fields } from "./shared.js";

/** Prompts of Chrome's Prompt API (`LanguageModel`). Pictures and sounds that are bytes are stored; other objects, such as an
 *  `ImageBitmap`, are counted, and replaced by a text where a message is read from the store. */
export const chrome: CustomFormat = {
  name: "chrome",
  base: "openai-chat",
  read: ({ content, ...message }: Fields) => ({ ...message, content: Array.isArray(content) ? content.map(readBlock) : content }),
  write: ({ content, ...message }: Fields) => ({ ...message, content: Array.isArray(content) ? content.map(writeBlock) : content }),
};

/** In the place of an object that no store keeps. */
const LIVE = "live:";

function readBlock({ type, value }: Fields): Fields {
  if (type === "text") return { type, text: value };
  const data = value instanceof ArrayBuffer ? new Uint8Array(value) : value instanceof Uint8Array ? value : LIVE;
  return type === "image" ? { type: "image_url", image_url: data } : { type: "input_audio", input_audio: data };
}

function writeBlock({ type, text, image_url: image, input_audio: audio }: Fields): Fields {
  if (type === "text") return { type, value: text };
  if (image === LIVE || audio === LIVE) return { type: "text", value: image ? "[a picture]" : "[a sound]" };
  return type === "image_url" ? { type: "image", value: image } : { type: "audio", value: audio };
}
