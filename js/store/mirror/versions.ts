/** Versions of rows, which stores count and do not report. */

import { CompactionError } from "../../errors.js";
import type { Batch, Key, Store } from "../../types.js";

/** Guesses that are asked, or puts that are made, at once. */
const AT_ONCE = 64;
const MAX_VERSION = 2 ** 24;

/** How often the rows of `keys` were put, `null` where there is none: what an expectation that holds says. */
export async function versionsOf(store: Store, keys: Key[]): Promise<(number | null)[]> {
  const values = keys.length > 0 ? await store.read(keys) : [];
  const versions: (number | null)[] = [];
  for (const [i, key] of keys.entries()) versions.push(values[i] === undefined ? null : await versionOf(store, key));
  return versions;
}

async function versionOf(store: Store, key: Key): Promise<number | null> {
  // From the beginning again each time: it may have been put while it was asked for, and be one that was asked already.
  for (let most = 4; most <= MAX_VERSION; most *= 4) {
    for (let from = 1; from <= most; from += AT_ONCE) {
      const guesses = Array.from({ length: Math.min(AT_ONCE, most + 1 - from) }, (_, i) => from + i);
      const held = await Promise.all(guesses.map((version) => holds(store, [{ key, version }])));
      const at = held.indexOf(true);
      if (at >= 0) return guesses[at]!;
    }
    // Deleted meanwhile.
    if (await holds(store, [{ key, version: null }])) return null;
  }
  throw new CompactionError("store_corrupt", `${JSON.stringify(key)} has no version: the store does not keep to its contract`);
}

/** True when all of `expect` holds. */
export async function holds(store: Store, expect: Batch["expect"]): Promise<boolean> {
  if (expect.length === 0) return true;
  try {
    await store.commit({ expect, puts: [], deletes: [], durability: "relaxed" });
    return true;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}

export function isConflict(error: unknown): boolean {
  return CompactionError.isInstance(error) && error.code === "conflict";
}

/** Puts a row of version `from` until it has version `to`. `put` expects the version that it is given. */
export async function raise(put: (version: number | null) => Promise<void>, from: number | null, to: number): Promise<void> {
  for (let version = from ?? 0, count = AT_ONCE; version < to; ) {
    const versions = Array.from({ length: Math.min(count, to - version) }, (_, i) => version + i);
    const done = await Promise.allSettled(versions.map((version) => put(version || null)));
    const failed = done.findIndex(({ status }) => status === "rejected");
    if (failed < 0) version += versions.length;
    // A store may take those that are made at once in another order: then one after the other.
    else if (count === 1 || done.some((one) => one.status === "rejected" && !isConflict(one.reason))) {
      throw (done.find(({ status }) => status === "rejected") as PromiseRejectedResult).reason;
    } else [version, count] = [version + done.filter(({ status }) => status === "fulfilled").length, 1];
  }
}
