/** The store of Cloudflare Workers: the SQLite of a Durable Object, and a bucket for what is big. */

import { checkOptions } from "../../checks.js";
import { CompactionError } from "../../errors.js";
import type { Batch, Key, Store } from "../../types.js";
import { checkKey, checkScan, MAX_BATCH_OPS, ownBatch } from "../keys.js";
import type { ScanOptions, Value } from "../keys.js";
import { storageError, unconfirmed } from "./errors.js";
import { BIG_BYTES, bytesOf, Objects } from "./objects.js";
import { MAX_VALUE_BYTES } from "./parts.js";
import type { DurableObjectContext, ObjectBucket } from "./platform.js";
import { Tables } from "./tables.js";
import type { Stored } from "./tables.js";

/** A value is read again when it was replaced while its object was on its way. */
const TRIES = 10;

/**
 * Stores sessions in the SQLite database of a Durable Object, in its own tables (`context_compactor_…`). Pass the
 * object's `ctx`; list the class under `new_sqlite_classes`. An object can hold any number of sessions. Usually each user
 * or conversation has its own object, named after the authenticated user.
 *
 * A commit is one transaction. An `append` resolves after `ctx.storage.sync()`, when the platform has confirmed the
 * write; it survives a crash of the object from then on.
 *
 * With `bigObjects`, an R2 bucket, values over 256 KiB are stored there (`context-compactor/{id of the object}/…`) and do
 * not count against the object's 10 GB. From then on the bucket is needed to read them. Objects left by a crash are
 * deleted an hour later; a missing or changed object damages its row alone. When you delete a whole Durable Object,
 * delete that folder, too.
 *
 * Errors: `store_unavailable`, `quota_exceeded` (10 GB, or the plan's limits), `too_large` (a value over 16 MiB),
 * `store_corrupt`, `schema_too_new`, `conflict`, `closed`; `indeterminate` when a write was not confirmed.
 */
export function durableObjectStore(
  ctx: DurableObjectContext,
  options: { bigObjects?: ObjectBucket | undefined } = {},
): Store {
  checkOptions(options, ["bigObjects"]);
  checkContext(ctx);
  if (options.bigObjects !== undefined) checkBucket(options.bigObjects);
  const caps = {
    atomic: "batch",
    cas: true,
    durable: "synced",
    maxValueBytes: MAX_VALUE_BYTES,
    maxBatchOps: MAX_BATCH_OPS,
    reportsDamage: true,
  } as const;
  const tables = new Tables(ctx);
  const objects = options.bigObjects && new Objects(options.bigObjects, tables, ctx);
  const running = new Set<Promise<unknown>>();
  let closed = false;
  let swept = false;
  /** Writes that can be read, and that the platform did not confirm. */
  let doubts = 0;

  /** Runs an operation; `close` waits for it. */
  function run<T>(work: () => Promise<T>): Promise<T> {
    if (closed) return Promise.reject(new CompactionError("closed", "The store was closed: make a new one"));
    const operation = work();
    follow(operation);
    if (!swept) sweep();
    return operation;
  }

  function follow(work: Promise<unknown>): void {
    const ended = () => void running.delete(settled);
    const settled: Promise<void> = work.then(ended, ended);
    running.add(settled);
  }

  function sweep(): void {
    swept = true;
    if (objects) follow(objects.sweep(confirm));
  }

  /**
   * The values of what `find` finds. When an object is gone its row was replaced meanwhile: what is found then is of a
   * later moment, so everything is looked up again.
   */
  async function whole<T extends Stored | undefined>(find: () => T[]): Promise<[T, Value | undefined][]> {
    for (let tries = 0; tries < TRIES; tries++) {
      const found = find();
      const values = await bytesOf(found, objects);
      const isReplaced = found.some((stored, i) => {
        if (!stored || values[i]) return false;
        const object = objectOf(stored);
        if (object !== objectOf(tables.find(stored.key))) return true;
        values[i] = { damaged: `its object is not in the bucket: ${object}` };
        return false;
      });
      if (!isReplaced) return found.map((stored, i) => [stored, values[i]]);
    }
    throw new CompactionError("store_unavailable", "A value was replaced each time that it was read: try again");
  }

  async function confirm(): Promise<void> {
    try {
      await ctx.storage.sync();
    } catch (error) {
      doubts++;
      throw unconfirmed(error);
    }
  }

  /** Who reads again to see whether something was written must not find what may be gone with the object. */
  async function sure(): Promise<void> {
    for (let known = doubts; known > 0; known = doubts) {
      await confirm();
      if (known === doubts) doubts = 0;
    }
  }

  /** Uploads the big values of a batch; their objects by the place of the put. */
  async function upload({ expect, puts }: Batch): Promise<Map<number, string>> {
    const big = puts.flatMap(([, value], i) => (value.byteLength > BIG_BYTES ? [i] : []));
    if (!objects || big.length === 0) return new Map();
    // Looked at twice: here to spare an upload in vain, and in the transaction.
    tables.check(expect);
    try {
      const names = await objects.upload(
        big.map((i) => puts[i]![1]),
        () => ctx.storage.sync(),
      );
      return new Map(names.map((name, nth) => [big[nth]!, name]));
    } catch (error) {
      throw storageError(error);
    }
  }

  return {
    caps,

    read(keys) {
      return run(async () => {
        keys.forEach(checkKey);
        const wanted = keys.map((key) => [...key]);
        await sure();
        return (await whole(() => tables.findAll(wanted))).map(([, value]) => value);
      });
    },

    scan(prefix: Key, options: ScanOptions) {
      return run(async () => {
        checkScan(prefix, options);
        const [from, how] = [[...prefix], { ...options }];
        await sure();
        return (await whole(() => tables.scan(from, how))).map(([{ key }, value]): [Key, Value] => [key, value!]);
      });
    },

    commit(batch: Batch) {
      return run(async () => {
        const owned = ownBatch(batch, caps);
        const uploaded = await upload(owned);
        let dropped;
        try {
          dropped = tables.write(owned, uploaded);
        } catch (error) {
          if (uploaded.size > 0) {
            objects?.abandon([...uploaded.values()]);
            sweep();
          }
          throw error;
        }
        if (owned.durability === "strict" || dropped.length > 0) await confirm();
        if (dropped.length > 0) sweep();
      });
    },

    async close() {
      closed = true;
      while (running.size > 0) await Promise.all(running);
    },
  };
}

function objectOf(stored: Stored | undefined): string | undefined {
  return stored && "object" in stored ? stored.object : undefined;
}

function checkContext(ctx: unknown): void {
  const { storage } = Object(ctx) as Partial<DurableObjectContext>;
  if (typeof storage?.transactionSync === "function") return;
  throw new CompactionError(
    "invalid_option",
    "`durableObjectStore` takes the `ctx` that the constructor of a Durable Object gets",
    { field: "ctx" },
  );
}

function checkBucket(bucket: unknown): void {
  const { put, get } = Object(bucket) as Partial<ObjectBucket>;
  if (typeof put === "function" && typeof get === "function") return;
  throw new CompactionError("invalid_option", "`bigObjects` takes an R2 bucket, as in `env.BUCKET`", {
    field: "bigObjects",
  });
}
