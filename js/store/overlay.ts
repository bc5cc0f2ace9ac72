/** A store above another one, which is only read: what is written stays in memory. */

import { ownEntries, ownValues } from "../answers.js";
import { CompactionError } from "../errors.js";
import type { Batch, Key, Store } from "../types.js";
import { compareKeys, startsWith } from "./keys.js";
import type { ScanOptions, Value } from "./keys.js";

/**
 * `store` with changes of its own, for one writer: nobody else sees them, so nothing is expected of versions. Where `store`
 * refuses a read because something in it is damaged, each row is read by itself, and those that it refuses are damaged.
 */
export function overlayOf(store: Store): Store {
  /** What was written, and `undefined` for what was deleted. */
  const changes = new Map<string, { key: Key; value: Uint8Array | undefined }>();

  async function below(keys: Key[]): Promise<(Value | undefined)[]> {
    try {
      return ownValues(await store.read(keys), keys.length);
    } catch (error) {
      const damaged = damageIn(error);
      if (keys.length === 1) return [damaged];
      const values: (Value | undefined)[] = [];
      for (const key of keys) values.push(...(await below([key])));
      return values;
    }
  }

  async function pageBelow(prefix: Key, options: ScanOptions): Promise<[Key, Value][]> {
    try {
      return ownEntries(await store.scan(prefix, options), options.limit);
    } catch (error) {
      damageIn(error);
      if (options.keysOnly) throw error;
      const page: [Key, Value][] = [];
      let bytes = 0;
      for (const [key] of await store.scan(prefix, { ...options, keysOnly: true })) {
        const [value = { damaged: "it is among the keys, and has no value" }] = await below([key]);
        bytes += sizeOf(value);
        page.push([key, value]);
        // What is too much is left out when the page is handed over.
        if (bytes > options.maxBytes) break;
      }
      return page;
    }
  }

  return {
    caps: { ...store.caps, durable: "none", reportsDamage: true },

    async read(keys) {
      const values = await below(keys);
      return keys.map((key, i) => {
        const change = changes.get(nameOf(key));
        return change ? change.value?.slice() : values[i];
      });
    },

    async scan(prefix, options) {
      const { limit, maxBytes, reverse = false, keysOnly = false } = options;
      const order = (a: Key, b: Key) => (reverse ? compareKeys(b, a) : compareKeys(a, b));
      const own = [...changes.values()].filter(({ key }) => startsWith(key, prefix));
      for (let { after } = options; ;) {
        const found = await pageBelow(prefix, { ...options, ...(after && { after }) });
        const last = found.at(-1)?.[0];
        const isHere = (key: Key) => (!after || order(key, after) > 0) && (!last || order(key, last) <= 0);
        const rows: [Key, Value][] = found.filter(([key]) => !changes.has(nameOf(key)));
        for (const { key, value } of own) {
          if (value && isHere(key)) rows.push([[...key], keysOnly ? new Uint8Array() : value.slice()]);
        }
        rows.sort(([a], [b]) => order(a, b));
        if (rows.length === 0 && last) {
          after = last;
          continue;
        }
        let bytes = 0;
        const isFull = ([, value]: [Key, Value], i: number) => {
          bytes += sizeOf(value);
          return i === limit || (i > 0 && bytes > maxBytes);
        };
        const end = rows.findIndex(isFull);
        return end < 0 ? rows : rows.slice(0, end);
      }
    },

    commit({ puts, deletes }: Batch) {
      for (const [key, value] of puts) changes.set(nameOf(key), { key: [...key], value: value.slice() });
      for (const key of deletes) changes.set(nameOf(key), { key: [...key], value: undefined });
    },
  };
}

/** Why a row is damaged, by what was thrown; throws that where it says anything else. */
function damageIn(error: unknown): Value {
  if (CompactionError.isInstance(error) && error.code === "store_corrupt") return { damaged: error.message };
  throw error;
}

const sizeOf = (value: Value) => ("damaged" in value ? 0 : value.byteLength);

const nameOf = (key: Key) => JSON.stringify(key);
