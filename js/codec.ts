/**
 * The codec: messages as JSON bytes, with tags for what JSON has not: bytes, dates, URLs, `undefined`, special numbers
 * and ill-formed strings. What comes back is deeply equal to what went in; anything else is refused with its place.
 */

import { adviceFor, converter, named, notOne, ofAnswer } from "./advice.js";
import { refuseRecord } from "./boundaries.js";
import { CompactionError } from "./errors.js";

const TAG = "$cc";

/** Texts one after the other; text `i` ends at `ends[i]`. */
export interface Packed {
  bytes: Uint8Array;
  ends: Uint32Array;
}

/** JSON text of message `index`. */
export function encode(value: unknown, index: number): string {
  return kept(value, index, (plain) => JSON.stringify(plain));
}

/** Throws for a message that cannot be kept, as `encode` does. */
export function checkKept(value: unknown, index: number): void {
  kept(value, index, () => {});
}

function kept<T>(value: unknown, index: number, write: (plain: unknown) => T): T {
  const path = new Set<object>();
  try {
    // The common case is plain JSON, which the host's own stringify writes fastest.
    return write(isPlain(value, path) ? value : tagged(value, index, "", path));
  } catch (error) {
    if (CompactionError.isInstance(error)) throw error;
    // A getter or a proxy of the app.
    throw unsupported(index, "", "a property that throws when it is read", error);
  }
}

/** The value that `encode` wrote. */
export function decode(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return text.includes(`"${TAG}"`) ? untagged(value) : value;
}

/** Throws unless it is an array, as a history is. */
export function checkHistory(messages: unknown): void {
  if (Array.isArray(messages)) return;
  if (typeof messages === "object" && messages !== null) refuseRecord(messages);
  const given = adviceFor(messages, "messages") || `, and ${named(messages)} was given`;
  throw new CompactionError("invalid_message", `messages must be an array${given}`);
}

/** Throws unless it is an object that may be a message. */
export function checkMessage(message: unknown, index: number): asserts message is object {
  if (typeof message !== "object" || message === null || Array.isArray(message)) {
    const what = `message ${index}: a message must be an object with a role${notOne(message)}`;
    throw new CompactionError("invalid_message", what, { index, field: "" });
  }
  refuseRecord(message, index);
}

/** JSON texts of messages in one buffer. `first` is the index of the first for errors. */
export function pack(messages: readonly unknown[], first = 0): Packed {
  checkHistory(messages);
  // Not `map`, which leaves holes out.
  const texts = Array.from({ length: messages.length }, (_, nth) => {
    checkOne(messages[nth], first + nth);
    return encode(messages[nth], first + nth);
  });
  return packTexts(texts);
}

/** Throws unless it is an object that may be a message, and no whole answer of a model. */
export function checkOne(message: unknown, index: number): void {
  checkMessage(message, index);
  const whole = ofAnswer(message);
  if (whole !== "") throw new CompactionError("invalid_message", `message ${index}: ${whole}`, { index, field: "" });
}

/**
 * From so many characters on, a buffer has so many bytes more than its texts. The engine frees it before it reads them: a long text
 * fits into what it leaves, though small things that the engine makes meanwhile take some of that.
 */
const LARGE = 1 << 20;
const SPARE = 256 << 10;

/** Texts in one buffer. */
function packTexts(texts: readonly string[]): Packed {
  const encoder = new TextEncoder();
  const ends = new Uint32Array(texts.length);
  let room = 0;
  for (const text of texts) room += text.length;
  const spare = room < LARGE ? 0 : SPARE;
  // Most text is ASCII: grow only when it is not.
  let bytes = new Uint8Array(room + 64 + spare);
  let used = 0;
  texts.forEach((text, index) => {
    if (bytes.length - used < text.length * 3) {
      const needed = utf8Length(text);
      if (bytes.length - used < needed) {
        const larger = new Uint8Array(Math.max(bytes.length * 2, used + needed + spare));
        larger.set(bytes.subarray(0, used));
        bytes = larger;
      }
    }
    used += encoder.encodeInto(text, bytes.subarray(used)).written;
    ends[index] = used;
  });
  return { bytes: bytes.subarray(0, used + spare), ends };
}

function utf8Length(text: string): number {
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    // Each half of a surrogate pair is two of the pair's four bytes; a lone one never gets here.
    length += unit < 0x80 ? 1 : unit < 0x800 ? 2 : unit >= 0xd800 && unit <= 0xdfff ? 2 : 3;
  }
  return length;
}

/** True for a text without lone surrogates. */
export function isWellFormed(text: string): boolean {
  const method = (text as { isWellFormed?: () => boolean }).isWellFormed;
  return method ? method.call(text) : !/\p{Surrogate}/u.test(text);
}

/** True when JSON keeps the value as it is. Cycles and too much depth are left to `tagged`, which names the place. */
function isPlain(value: unknown, path: Set<object>): boolean {
  switch (typeof value) {
    case "string":
      return isWellFormed(value);
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0);
    case "boolean":
      return true;
    case "object": {
      if (value === null) return true;
      if (path.has(value) || path.size > MAX_DEPTH) return false;
      path.add(value);
      const plain = Array.isArray(value)
        ? isPlainArray(value) && value.every((item) => isPlain(item, path))
        : isPlainObject(value) &&
          !hasSymbols(value) &&
          !Object.hasOwn(value, TAG) &&
          Object.entries(value).every(([key, item]) => isWellFormed(key) && isPlain(item, path));
      path.delete(value);
      return plain;
    }
    default:
      return false;
  }
}

/** The engine reads at most 128 levels; tags need some of them. */
const MAX_DEPTH = 100;

/** No holes and no other properties: JSON would lose both. */
function isPlainArray(value: unknown[]): boolean {
  return Object.keys(value).length === value.length && !("toJSON" in value);
}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  const plain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return plain && typeof (value as { toJSON?: unknown }).toJSON !== "function";
}

/** Properties that no list of keys shows, and that would be lost. */
function hasSymbols(value: object): boolean {
  const symbols = Object.getOwnPropertySymbols(value);
  return symbols.some((symbol) => Object.prototype.propertyIsEnumerable.call(value, symbol));
}

function tag(kind: string, value?: unknown): object {
  return value === undefined ? { [TAG]: kind } : { [TAG]: kind, v: value };
}

function tagged(value: unknown, index: number, field: string, path: Set<object>): unknown {
  switch (typeof value) {
    case "string":
      return isWellFormed(value) ? value : tag("utf16", base64(utf16(value)));
    case "number":
      if (Object.is(value, -0)) return tag("number", "-0");
      return Number.isFinite(value) ? value : tag("number", String(value));
    case "boolean":
      return value;
    case "undefined":
      return tag("undefined");
    case "object":
      return value === null ? null : taggedObject(value, index, field, path);
    default:
      throw unsupported(index, field, `a ${typeof value}`);
  }
}

function taggedObject(value: object, index: number, field: string, path: Set<object>): unknown {
  if (path.has(value)) throw unsupported(index, field, "a cycle");
  if (path.size > MAX_DEPTH) throw unsupported(index, field, `more than ${MAX_DEPTH} levels`);
  if (value instanceof Uint8Array) return tag("bytes", base64(value));
  if (value instanceof Date) return tag("date", Number.isNaN(value.getTime()) ? "invalid" : value.toISOString());
  if (value instanceof URL) return tag("url", value.href);
  path.add(value);
  try {
    if (Array.isArray(value)) {
      if (!isPlainArray(value)) throw unsupported(index, field, "an array with holes or other properties");
      return value.map((item, at) => tagged(item, index, `${field}[${at}]`, path));
    }
    if (!isPlainObject(value)) throw unsupported(index, field, `an instance of ${nameOf(value)}`, undefined, converter(value));
    if (hasSymbols(value)) throw unsupported(index, field, "a property whose key is a symbol");
    const copy: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
    for (const [key, item] of Object.entries(value)) {
      if (!isWellFormed(key)) throw unsupported(index, field, "a key with a lone surrogate");
      copy[key] = tagged(item, index, field === "" ? key : `${field}.${key}`, path);
    }
    return Object.hasOwn(value, TAG) ? tag("object", copy) : copy;
  } finally {
    path.delete(value);
  }
}

function nameOf(value: object): string {
  const constructor: unknown = (value as { constructor?: unknown }).constructor;
  return typeof constructor === "function" && constructor.name !== "" ? constructor.name : "a class";
}

function unsupported(index: number, field: string, what: string, cause?: unknown, advice = ""): CompactionError {
  const place = field === "" ? `message ${index}` : `message ${index}, ${field}`;
  return new CompactionError(
    "unsupported_value",
    `${place}: ${what} cannot be kept; use plain objects, arrays, texts, numbers, Uint8Array, Date or URL${advice}`,
    cause === undefined ? { index, field } : { index, field, cause },
  );
}

function untagged(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(untagged);
  const object = value as Record<string, unknown>;
  if (!Object.hasOwn(object, TAG)) return untaggedEntries(object);
  const content = object["v"];
  switch (object[TAG]) {
    case "undefined":
      return undefined;
    case "number":
      return content === "-0" ? -0 : Number(content);
    case "utf16":
      return fromUtf16(fromBase64(String(content)));
    case "bytes":
      return fromBase64(String(content));
    case "date":
      return new Date(content === "invalid" ? Number.NaN : String(content));
    case "url":
      return new URL(String(content));
    case "object":
      return untaggedEntries(content as Record<string, unknown>);
    default:
      throw new CompactionError("store_corrupt", "a stored message has a value of a kind that this release cannot read");
  }
}

function untaggedEntries(object: Record<string, unknown>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(object)) {
    // Assigning `__proto__` would set the prototype instead.
    Object.defineProperty(copy, key, { value: untagged(item), enumerable: true, configurable: true, writable: true });
  }
  return copy;
}

function utf16(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length * 2);
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    bytes[at * 2] = unit & 0xff;
    bytes[at * 2 + 1] = unit >> 8;
  }
  return bytes;
}

function fromUtf16(bytes: Uint8Array): string {
  const parts: string[] = [];
  const units = new Uint16Array(bytes.length >> 1);
  for (let at = 0; at < units.length; at++) units[at] = (bytes[at * 2] ?? 0) | ((bytes[at * 2 + 1] ?? 0) << 8);
  for (let at = 0; at < units.length; at += 8192) parts.push(String.fromCharCode(...units.subarray(at, at + 8192)));
  return parts.join("");
}

function base64(bytes: Uint8Array): string {
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; at += 8192) parts.push(String.fromCharCode(...bytes.subarray(at, at + 8192)));
  return btoa(parts.join(""));
}

function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
