/**
 * Answers of the app's own stores and `fetch`, copied before they cross into the engine: a getter, a proxy or a
 * subclass that throws there would unwind through it and end it.
 */

import { CompactionError } from "./errors.js";
import { isPart } from "./store/keys.js";
import type { Damaged, Key } from "./types.js";

/** The values that a store read for `count` keys. */
export function ownValues(answer: unknown, count: number): (Uint8Array | Damaged | undefined)[] {
  return readable("read", () => {
    const values = ownArray(answer);
    if (values.length !== count) throw new TypeError(`${values.length} values for ${count} keys`);
    return Array.from({ length: count }, (_, at) => {
      const value = values[at];
      return value === undefined || value === null ? undefined : ownValue(value);
    });
  });
}

/** The entries that a store scanned, of which there are at most `limit`. */
export function ownEntries(answer: unknown, limit: number): [Key, Uint8Array | Damaged][] {
  return readable("scan", () => {
    const entries = ownArray(answer);
    if (entries.length > limit) throw new TypeError(`${entries.length} entries where ${limit} is the limit`);
    return Array.from({ length: entries.length }, (_, at) => {
      const [key, value] = ownArray(entries[at]);
      return [ownKey(key), ownValue(value)];
    });
  });
}

/** Headers of a response. */
export function ownHeaders(headers: Iterable<[string, string]>): [string, string][] {
  return Array.from(headers, ([name, value]) => [String(name), String(value)]);
}

function readable<T>(method: "read" | "scan", work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw new CompactionError("store_corrupt", `the store's \`${method}\` answered with what cannot be used: see \`cause\``, {
      cause,
    });
  }
}

function ownArray(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new TypeError("no array");
  return value as unknown[];
}

function ownKey(value: unknown): Key {
  const parts = ownArray(value);
  if (parts.length > MAX_KEY_PARTS) throw new TypeError("a key of too many parts");
  return Array.from({ length: parts.length }, (_, at) => {
    const part = parts[at];
    if (!isPart(part)) throw new TypeError("a key with a part that is neither a string nor a whole number from 0");
    return part;
  });
}

const MAX_KEY_PARTS = 16;

function ownValue(value: unknown): Uint8Array | Damaged {
  if (ArrayBuffer.isView(value)) return ownBytes(value);
  const { damaged } = Object(value) as { damaged?: unknown };
  if (typeof damaged !== "string") throw new TypeError("a value that is no Uint8Array");
  return { damaged };
}

/** The bytes of an array of any realm or subclass, read past whatever it overrides. */
function ownBytes(value: unknown): Uint8Array {
  if (!ArrayBuffer.isView(value) || tagOf.call(value) !== "Uint8Array") throw new TypeError("a value that is no Uint8Array");
  return new Uint8Array(value as Uint8Array);
}

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;
/** The name of a typed array's kind, which nothing can forge. */
const tagOf = Object.getOwnPropertyDescriptor(typedArray, Symbol.toStringTag)!.get as () => unknown;
