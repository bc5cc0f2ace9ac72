/** What a tool answered, in messages of the AI SDK (`crates/wire/src/ai_sdk/output.rs`). */

import { kindOf, media, resultOf, type Media, type Part } from "./read.js";
import { bytesOf, dataLength, fieldOf, given, isObject, json, payloadLength, readable, textIn, textOf } from "./values.js";

/** A media part with its payload in this field. */
export function mediaOf(part: unknown, key: string): Media {
  const mime = textIn(part, "mediaType");
  const payload = given(part, key);
  return media(mime === undefined && key === "image" ? "image" : kindOf(mime), lengthOf(payload), payload);
}

/** Bytes of base64, bytes, a `data:` URL, or one of these in an object. What only points somewhere has none. */
function lengthOf(payload: unknown): number {
  if (isObject(payload)) {
    const text = textIn(payload, "text");
    return text === undefined ? lengthOf(given(payload, "data") ?? given(payload, "url")) : bytesOf(text);
  }
  const text = textOf(payload);
  return text?.includes(":") ? (dataLength(text) ?? 0) : payloadLength(payload);
}

/** A tagged output; one without a known tag is read like any other value. */
export function outputOf(output: unknown): Part[] {
  const [tag, value] = [textIn(output, "type"), fieldOf(output, "value")];
  if (tag === "execution-denied") return [{ result: textIn(output, "reason") ?? "", media: [] }];
  if (tag === "content" && Array.isArray(value)) {
    const parts = value.map(itemOf);
    return resultOf(parts, parts.filter((part) => typeof part === "string"));
  }
  const isTagged = value !== undefined && /^(error-)?(text|json)$/.test(tag ?? "");
  return [valueOf(isTagged ? value : (output ?? ""))];
}

/** Where items that are images or files have their payload. */
const PAYLOADS: [kinds: RegExp, key: string][] = [
  [/^(media|file|(file|image)-data)$/, "data"],
  [/^(file|image)-url$/, "url"],
  [/^(image-)?file-id$/, "fileId"],
  [/^(image-)?file-reference$/, "providerReference"],
];

function itemOf(item: unknown): Part {
  const kind = textIn(item, "type") ?? "";
  if (kind === "text") return textIn(item, kind) ?? "";
  const [, key] = PAYLOADS.find(([kinds]) => kinds.test(kind)) ?? [];
  if (key === undefined) return readable(item);
  return kind.startsWith("image-") ? media("image", 0, given(item, key)) : mediaOf(item, key);
}

/** A value of the app's own making: a string as it is, anything else as JSON, media counted apart. */
export function valueOf(value: unknown): Part {
  const all: Media[] = [];
  const rest = withoutMedia(value, all);
  return { result: textOf(rest) ?? json(rest), media: all };
}

/** The value with an empty text in the place of media. */
function withoutMedia(value: unknown, found: Media[]): unknown {
  const apart = textMedia(value);
  if (apart) {
    found.push(apart);
    return "";
  }
  if (Array.isArray(value)) return value.map((item) => withoutMedia(item, found));
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([key, field]) => {
    const own = fieldMedia(value, key, field);
    if (own) found.push(own);
    return [key, own ? "" : withoutMedia(field, found)] as const;
  });
  return Object.fromEntries(entries);
}

/** Media by what says so: bytes, and `data:` URLs. */
function textMedia(value: unknown): Media | undefined {
  if (value instanceof Uint8Array) return value.length > 0 ? media("document", value.length) : undefined;
  const text = textOf(value) ?? "";
  const bytes = dataLength(text);
  return bytes === undefined ? undefined : media(kindOf(text.slice(5)), bytes, value);
}

/** Media by what its object says of it. */
function fieldMedia(object: unknown, key: string, field: unknown): Media | undefined {
  if (key !== "data" || field === null) return undefined;
  const mime = textIn(object, "mediaType") ?? textIn(object, "mimeType");
  if (mime === undefined || (kindOf(mime) === "document" && mime !== "application/pdf")) return undefined;
  return media(kindOf(mime), textMedia(field)?.bytes ?? payloadLength(field), field);
}
