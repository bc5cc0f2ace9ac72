/** Values of messages as the engine reads them (`crates/wire/src/tagged.rs`), also those that JSON has not. */

import { charsOf } from "./text.js";

type Fields = Record<string, unknown>;

const encoder = new TextEncoder();
const LONE = /\p{Surrogate}/u;

/** Bytes of a text as UTF-8. */
export function bytesOf(text: string): number {
  return encoder.encode(text).length;
}

/** True for a plain object. */
export function isObject(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return !(value instanceof Uint8Array || value instanceof Date || value instanceof URL);
}

/** A field of an object; absent and undefined are the same. */
export function fieldOf(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined;
}

/** A field that is given: neither undefined nor null. */
export function given(value: unknown, key: string): unknown {
  return fieldOf(value, key) ?? undefined;
}

/** True when a field is given. */
export function has(value: unknown, key: string): boolean {
  return given(value, key) !== undefined;
}

/** What is said by a text, a date or an address. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "invalid" : value.toISOString();
  return value instanceof URL ? value.href : undefined;
}

/** The text of a field. */
export function textIn(value: unknown, key: string): string | undefined {
  return textOf(fieldOf(value, key));
}

/** The items of a field that is a list; none of another. */
export function listIn(value: unknown, key: string): readonly unknown[] {
  const list = fieldOf(value, key);
  return Array.isArray(list) ? list : [];
}

/** A text without lone surrogates. */
export function isWhole(value: unknown): value is string {
  return typeof value === "string" && !LONE.test(value);
}

/** The JSON that a provider is sent for a value, with numbers as the engine writes them. */
export function json(value: unknown): string {
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") return number(value);
  const text = value instanceof Uint8Array ? btoa(Array.from(value, (byte) => String.fromCharCode(byte)).join("")) : textOf(value);
  if (text !== undefined) return JSON.stringify(text.replace(/\p{Surrogate}/gu, "\ufffd"));
  if (Array.isArray(value)) return `[${value.map(json).join()}]`;
  if (!isObject(value)) return "null";
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${json(item)}`).join()}}`;
}

function number(value: number): string {
  if (!Number.isFinite(value)) return "null";
  const size = Math.abs(value);
  const isShort = value === 0 || (size >= 1e-5 && size < 2 ** 64 && value > -(2 ** 63));
  return isShort ? String(value) : value.toExponential();
}

/** Characters of a value's JSON that a model would read: of bytes, also in a `data:` URL, there are none. */
export function readable(value: unknown): number {
  if (value === undefined || value instanceof Uint8Array) return 0;
  if (Object.is(value, -0)) return 4;
  if (typeof value === "number") return Number.isFinite(value) ? number(value).length : String(value).length + 2;
  const text = textOf(value);
  if (text === value && LONE.test(text)) return text.length;
  if (text !== undefined) return dataLength(text) === undefined ? charsOf(text) + 2 : 0;
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + readable(item) + 1, 2);
  if (!isObject(value)) return 4;
  return Object.entries(value).reduce((sum, [key, item]) => sum + charsOf(key) + readable(item) + 4, 2);
}

/** Bytes of what base64 stands for. */
function base64Length(text: string): number {
  let end = text.length;
  while (text[end - 1] === "=" || text[end - 1] === "\n") end--;
  return Math.floor((bytesOf(text.slice(0, end)) * 3) / 4);
}

/** Bytes of what a `data:` URL holds; undefined for any other text. */
export function dataLength(url: string): number | undefined {
  const comma = url.indexOf(",");
  if (comma < 0 || !url.startsWith("data:")) return undefined;
  const data = url.slice(comma + 1);
  return url.slice(0, comma).endsWith(";base64") ? base64Length(data) : bytesOf(data);
}

/** Bytes of a payload: bytes, or base64. */
export function payloadLength(value: unknown): number {
  if (value instanceof Uint8Array) return value.length;
  return isWhole(value) ? base64Length(value) : 0;
}

/** The same where a text may be a `data:` URL, and else is base64 only when `isBare`. */
export function urlLength(value: unknown, isBare: boolean): number {
  if (!isWhole(value)) return payloadLength(value);
  return dataLength(value) ?? (isBare ? base64Length(value) : 0);
}
