/** Reads contents of Gemini (`crates/wire/src/gemini`): each field has two spellings, and messages mix them. */

import { fail, failRole, isMedia, join, kindOf, list, may, media, need, ofUser, type Media, type Part, type Read } from "./read.js";
import { charsOf } from "./text.js";
import { given, has, isObject, json, payloadLength, readable, textIn, textOf } from "./values.js";

/** A field in the one of its two spellings that is `camelCase`. */
export function spelled(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** What is said about a part; every other field is what it holds. */
const ABOUT = ["thought", "thoughtSignature", "videoMetadata", "mediaResolution", "mediaProcessing", "speechMetadata", "partMetadata"];

/** The fields with what a part holds. There is one of them; a part with more is read whole. */
export function dataOf(part: unknown): string[] {
  return isObject(part) ? Object.keys(part).filter((key) => has(part, key) && !ABOUT.includes(spelled(key))) : [];
}

export function readGemini(message: unknown): Read {
  const role = has(message, "role") ? need(message, "role") : "user";
  if (role !== "user" && role !== "model" && role !== "function") failRole(role, "user, model; instructions go into `systemInstruction`");
  if (!has(message, "parts")) fail("parts", "must be an array of parts, and is missing");
  const parts = list(given(message, "parts"), "parts").flatMap((part, nth) => {
    const at = `parts[${nth}]`;
    if (!isObject(part)) fail(at, "a part must be an object");
    return dataOf(part).flatMap((key) => partsOf(key, part, at));
  });
  return role === "model" ? { role: "assistant", parts } : ofUser(parts);
}

function partsOf(key: string, part: unknown, at: string): Part[] {
  const data = given(part, key);
  switch (spelled(key)) {
    case "text": {
      const text = need(part, key, at);
      return [given(part, "thought") === true ? { thought: text } : text];
    }
    case "functionCall":
      return [{ call: nameOf(data, join(at, key)), input: json(given(data, "args") ?? {}) }];
    case "functionResponse":
      return result(data, join(at, key));
    default:
      return [mediaOf(key, data) ?? readable(data)];
  }
}

/** The name of a call or a response. */
function nameOf(data: unknown, at: string): string {
  if (!isObject(data)) fail(at, "must be an object with a name");
  may(data, "id", at);
  return need(data, "name", at);
}

function mediaOf(key: string, data: unknown): Media | undefined {
  const name = spelled(key);
  if (name !== "inlineData" && name !== "fileData") return undefined;
  const payload = given(data, "data");
  const mime = textOf(given(data, "mimeType") ?? given(data, "mime_type"));
  return media(kindOf(mime), name === "fileData" ? 0 : payloadLength(payload), payload);
}

function result(data: unknown, at: string): Part[] {
  nameOf(data, at);
  const parts = has(data, "parts") ? list(given(data, "parts"), join(at, "parts")) : [];
  const inner = parts.flatMap((part) => dataOf(part).map((key) => mediaOf(key, given(part, key)) ?? readable(given(part, key))));
  const others = inner.filter((part) => !isMedia(part));
  const [text, rest] = said(given(data, "response"));
  return [{ result: text, media: inner.filter(isMedia) }, ...others, rest];
}

/** What a response says, which is an object of any shape, and the characters of what stands beside it. */
function said(response: unknown): [text: string, rest: number] {
  if (response === undefined) return ["", 0];
  const words = ["output", "result", "content", "error"].filter((key) => textIn(response, key) !== undefined);
  const keys = isObject(response) ? Object.keys(response).filter((key) => has(response, key)) : [];
  // Where tools put what they say, or the only field.
  const [key = "", other] = words.length > 0 ? words : keys;
  const text = other === undefined ? textIn(response, key) : undefined;
  if (text === undefined) return [textOf(response) ?? json(response), 0];
  const beside = Object.entries(response as object).filter(([name, value]) => name !== key && isKept(value));
  return [text, beside.reduce((sum, [name, value]) => sum + charsOf(name) + readable(value), 0)];
}

/** Neither null, a flag nor a number that JSON has. */
function isKept(value: unknown): boolean {
  if (typeof value === "number") return !Number.isFinite(value) || Object.is(value, -0);
  return value !== null && typeof value !== "boolean";
}
