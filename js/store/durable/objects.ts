/**
 * Values too big for the tables, as objects of a bucket. An object is written once, under a name of its own, before the
 * transaction that refers to it, and deleted after the transaction that drops it is confirmed. In between it is in the
 * table of objects: what a crash leaves is an object without a reference, never a reference without an object, and it is
 * found there and deleted later.
 */

import { CompactionError } from "../../errors.js";
import { objectError } from "./errors.js";
import type { DurableObjectContext, ObjectBucket } from "./platform.js";
import type { Stored, Tables } from "./tables.js";
import { hex } from "../keys.js";
import type { Value } from "../keys.js";

/**
 * Values above this are objects. The engine stores long texts in rows of 1 MiB: those go. What a session reads to open,
 * messages and views, is smaller as a rule, and needs no request; and an object costs less than its row within months.
 */
export const BIG_BYTES = 256 * 1024;
/** Longer than any upload takes. */
const ABANDONED_MS = 60 * 60 * 1000;
/** Deletions in one request may be 1,000. */
const SWEEP = 1000;
/** A Worker may wait for six responses at once. */
const AT_ONCE = 6;
const TRIES = 4;
const WAIT_MS = 100;

export class Objects {
  readonly #bucket: ObjectBucket;
  readonly #tables: Tables;
  readonly #folder: string;

  constructor(bucket: ObjectBucket, tables: Tables, context: DurableObjectContext) {
    this.#bucket = bucket;
    this.#tables = tables;
    this.#folder = `context-compactor/${context.id.toString()}`;
  }

  /**
   * Uploads `values` under names of their own, which end with the hash of what is in them, and are staged first; `confirm`
   * waits until that is on disk. After a
   * failure they stay staged until they are old: a request without an answer may arrive yet.
   */
  async upload(values: Uint8Array[], confirm: () => Promise<void>): Promise<string[]> {
    const hashes = await Promise.all(values.map(hashOf));
    const names = hashes.map((hash) => `${this.#folder}/${crypto.randomUUID()}.${hash}`);
    this.#tables.stage(names);
    await confirm();
    await each(names, (name, i) => this.#put(name, values[i] as Uint8Array<ArrayBuffer>));
    return names;
  }

  /** Gives up objects that were uploaded for a batch that failed. */
  abandon(names: string[]): void {
    try {
      this.#tables.abandon(names);
    } catch {
      // They are staged still, and given up when they are old.
    }
  }

  /** The bytes of an object, or undefined when it is not there. */
  async get(name: string, size: number): Promise<Value | undefined> {
    const body = await persistently("read", async () => (await this.#bucket.get(name))?.arrayBuffer());
    if (!body) return undefined;
    if (body.byteLength !== size) return { damaged: `the object ${name} has ${body.byteLength} bytes, not ${size}` };
    // Earlier releases gave no object its hash.
    const hash = HASHED.exec(name)?.[1];
    const bytes = new Uint8Array(body);
    if (hash === undefined || hash === (await hashOf(bytes))) return bytes;
    return { damaged: `the object ${name} is not what was uploaded` };
  }

  /**
   * Deletes what no row names: what was dropped, once that is on disk, and what was staged too long ago. Failures are
   * for the next time.
   */
  async sweep(confirm: () => Promise<void>): Promise<void> {
    try {
      for (;;) {
        const names = this.#tables.orphans(Date.now() - ABANDONED_MS, SWEEP);
        if (names.length === 0) return;
        await confirm();
        await persistently("delete", () => this.#bucket.delete(names));
        this.#tables.forget(names);
      }
    } catch {
      // The table of objects still has them.
    }
  }

  async #put(name: string, value: Uint8Array<ArrayBuffer>): Promise<void> {
    await persistently("write", async () => {
      const options = { onlyIf: { etagDoesNotMatch: "*" } };
      // Nobody else has this name: when it is taken, an earlier try has arrived, and its answer was lost.
      const object = (await this.#bucket.put(name, value, options)) ?? (await this.#bucket.head(name));
      if (object?.size !== value.byteLength) throw new Error("the object is not what was written");
    });
  }
}

const HASHED = /\.([0-9a-f]{64})$/;

async function hashOf(bytes: Uint8Array): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>)));
}

/** Fills in what is in objects. `objects` is undefined when the store was made without a bucket. */
export async function bytesOf(
  found: readonly (Stored | undefined)[],
  objects: Objects | undefined,
): Promise<(Value | undefined)[]> {
  const values = found.map((stored): Value | undefined => {
    if (!stored || "object" in stored) return undefined;
    return "bytes" in stored ? stored.bytes : { damaged: stored.damaged };
  });
  const away = found.flatMap((stored, i) => (stored && "object" in stored ? [{ ...stored, i }] : []));
  if (away.length > 0 && !objects) {
    throw new CompactionError(
      "store_unavailable",
      "A value is in a bucket: pass `bigObjects`, the bucket that the store was used with before",
    );
  }
  await each(away, async ({ object, size, i }) => {
    values[i] = await objects?.get(object, size);
  });
  return values;
}

/** Runs `work` for each item, few at once. When one fails, waits for those that are under way, and throws what it threw. */
async function each<T>(items: readonly T[], work: (item: T, i: number) => Promise<void>): Promise<void> {
  for (let i = 0; i < items.length; i += AT_ONCE) {
    const running = items.slice(i, i + AT_ONCE).map((item, nth) => work(item, i + nth));
    const failed = (await Promise.allSettled(running)).find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }
}

/** Tries a request again that may be tried again: an object never changes, so it does no harm. */
async function persistently<T>(what: string, request: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await request();
    } catch (error) {
      const failure = objectError(what, error);
      if (failure.code !== "store_unavailable" || tries === TRIES) throw failure;
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS * 2 ** (tries - 1)));
    }
  }
}
