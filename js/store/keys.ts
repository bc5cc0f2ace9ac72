/** What every store does with keys and batches before it touches its data: order, ranges and checks. */

import { CompactionError } from "../errors.js";
import type { Batch, Damaged, Key, Store } from "../types.js";

/** The first part of every key. */
export const TABLES = ["meta", "sessions", "log", "blobs", "views", "jobs"] as const;

/** Bounds of our own: engines accept values of hundreds of MB and fail later, in ways that differ. */
export const MAX_VALUE_BYTES = 64 * 1024 * 1024;
export const MAX_BATCH_OPS = 10_000;

export type ScanOptions = Parameters<Store["scan"]>[1];

/** What a store answers: a value, or why it is not what was written. */
export type Value = Uint8Array | Damaged;

export function isDamaged(value: Value | undefined): value is Damaged {
  return value !== undefined && "damaged" in value;
}

/** Negative, zero or positive, in the order that `Key` documents; IndexedDB orders arrays of these parts alike. */
export function compareKeys(a: Key, b: Key): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const order = compareParts(a[i]!, b[i]!);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareParts(a: string | number, b: string | number): number {
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

export function startsWith(key: Key, prefix: Key): boolean {
  return key.length >= prefix.length && prefix.every((part, i) => part === key[i]);
}

/** Whether a key that a platform found under `prefix` names a row there: where its bits flipped, it may say anything. */
export function isRowUnder(key: readonly unknown[], prefix: Key): key is Key {
  return key.length > 1 && key.every(isPart) && startsWith(key, prefix);
}

/** What a key may be made of. */
export function isPart(part: unknown): part is string | number {
  return typeof part === "string" || (Number.isSafeInteger(part) && (part as number) >= 0);
}

/** Throws `invalid_option` unless `key` names a row: a known table, then one part at least. */
export function checkKey(key: Key): void {
  checkPrefix(key);
  if (key.length < 2) throw invalid(key, "names a table but no row");
}

/** Throws `invalid_option` unless `prefix` is a table and any number of parts. */
function checkPrefix(prefix: Key): void {
  if (!(TABLES as readonly unknown[]).includes(prefix[0])) {
    throw invalid(prefix, `does not begin with a table (${TABLES.join(", ")})`);
  }
  for (const part of prefix) {
    if (!isPart(part)) throw invalid(prefix, "has a part that is neither a string nor a whole number from 0");
  }
}

export function checkScan(prefix: Key, options: ScanOptions): void {
  checkPrefix(prefix);
  if (options.after && !startsWith(options.after, prefix))
    throw invalid(options.after, "is not under the scan's prefix");
  if (!(options.limit >= 1))
    throw new CompactionError("invalid_option", "`limit` of a scan must be 1 or more");
}

/**
 * A checked copy of `batch`, which the caller's later changes do not reach. Throws `too_large` for a value or a batch
 * over `caps`, `unsupported_value` for one
 * that is no `Uint8Array`, `invalid_option` for a bad key or one that is written twice.
 */
export function ownBatch(batch: Batch, caps: Store["caps"]): Batch {
  const operations = batch.expect.length + batch.puts.length + batch.deletes.length;
  if (operations > caps.maxBatchOps) {
    throw new CompactionError(
      "too_large",
      `A batch of ${operations} operations is over the store's ${caps.maxBatchOps}: split it`,
    );
  }
  batch.expect.forEach(({ key }) => checkKey(key));
  const written = new Set<string>();
  for (const key of [...batch.puts.map(([key]) => key), ...batch.deletes]) {
    checkKey(key);
    if (written.size === written.add(JSON.stringify(key)).size)
      throw invalid(key, "is written twice in one batch");
  }
  for (const [key, value] of batch.puts) {
    if (!(value instanceof Uint8Array)) {
      throw new CompactionError("unsupported_value", `The value of ${JSON.stringify(key)} is no Uint8Array`);
    }
    if (value.byteLength > caps.maxValueBytes) {
      throw new CompactionError(
        "too_large",
        `A value of ${value.byteLength} bytes is over the store's ${caps.maxValueBytes}: store it in parts`,
        { field: JSON.stringify(key) },
      );
    }
  }
  return {
    expect: batch.expect.map(({ key, version }) => ({ key: [...key], version })),
    // `new Uint8Array` and not `slice`: a view of WASM memory or a Node Buffer becomes a plain array of exact length.
    puts: batch.puts.map(([key, value]) => [[...key], new Uint8Array(value)]),
    deletes: batch.deletes.map((key) => [...key]),
    durability: batch.durability,
  };
}

/** `bytes` random ones, as text. `crypto.randomUUID` is not there in every page. */
export function randomId(bytes: number): string {
  return hex(crypto.getRandomValues(new Uint8Array(bytes)));
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The error of a batch whose expectation does not hold. */
export function conflict(key: Key, expected: number | null, found: number | null): CompactionError {
  const words = (version: number | null) => (version === null ? "absent" : `version ${version}`);
  return new CompactionError(
    "conflict",
    `${JSON.stringify(key)} is ${words(found)}, not ${words(expected)}: nothing was written; read again and retry`,
    { field: JSON.stringify(key) },
  );
}

function invalid(key: Key, problem: string): CompactionError {
  return new CompactionError("invalid_option", `Key ${JSON.stringify(key)} ${problem}`, {
    field: JSON.stringify(key),
  });
}
