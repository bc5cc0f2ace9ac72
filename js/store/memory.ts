/** A store that lasts as long as the page or process: for tests, private windows and runtimes without storage. */

import type { Batch, Key, Store } from "../types.js";
import {
  checkKey,
  checkScan,
  compareKeys,
  conflict,
  MAX_BATCH_OPS,
  MAX_VALUE_BYTES,
  ownBatch,
  startsWith,
} from "./keys.js";
import type { ScanOptions } from "./keys.js";

interface Row {
  readonly key: Key;
  version: number;
  bytes: Uint8Array;
}

/** Stores sessions in memory, until the page or process ends. Its methods are synchronous. */
export function memoryStore(): Store {
  const caps = {
    atomic: "batch",
    cas: true,
    durable: "none",
    maxValueBytes: MAX_VALUE_BYTES,
    maxBatchOps: MAX_BATCH_OPS,
  } as const;
  /** Sorted by key. */
  const rows: Row[] = [];

  /** Index of the first row for which `reached` holds; rows before it do not, rows after it do. */
  function first(reached: (key: Key) => boolean): number {
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (reached(rows[middle]!.key)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Where `key` is, or where it would be inserted. */
  function position(key: Key): number {
    return first((other) => compareKeys(other, key) >= 0);
  }

  function find(key: Key): Row | undefined {
    const row = rows[position(key)];
    return row && compareKeys(row.key, key) === 0 ? row : undefined;
  }

  return {
    caps,

    read(keys) {
      keys.forEach(checkKey);
      return keys.map((key) => find(key)?.bytes.slice());
    },

    scan(prefix: Key, options: ScanOptions) {
      checkScan(prefix, options);
      const { after, limit, maxBytes, reverse = false, keysOnly = false } = options;
      const start = after && !reverse ? first((key) => compareKeys(key, after) > 0) : position(prefix);
      const end =
        after && reverse
          ? position(after)
          : first((key) => compareKeys(key, prefix) > 0 && !startsWith(key, prefix));
      const page: [Key, Uint8Array][] = [];
      let bytes = 0;
      for (let i = 0; i < end - start && page.length < limit; i++) {
        const row = rows[reverse ? end - 1 - i : start + i]!;
        const value = keysOnly ? new Uint8Array() : row.bytes.slice();
        bytes += value.byteLength;
        if (page.length > 0 && bytes > maxBytes) break;
        page.push([[...row.key], value]);
      }
      return page;
    },

    commit(batch: Batch) {
      // Everything that can fail comes before the first change.
      const { expect, puts, deletes } = ownBatch(batch, caps);
      for (const { key, version } of expect) {
        const found = find(key)?.version ?? null;
        if (found !== version) throw conflict(key, version, found);
      }
      for (const [key, bytes] of puts) {
        const row = find(key);
        if (row) Object.assign(row, { version: row.version + 1, bytes });
        else rows.splice(position(key), 0, { key, version: 1, bytes });
      }
      for (const key of deletes) {
        if (find(key)) rows.splice(position(key), 1);
      }
    },
  };
}
