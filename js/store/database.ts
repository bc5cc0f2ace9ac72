/** The store of browsers as the database holds it: one IndexedDB transaction per batch. */

import type { CompactionError } from "../errors.js";
import type { Batch, Damaged, Key, Store } from "../types.js";
import { Connection } from "./connection.js";
import type { IndexedDbOptions } from "./indexeddb.js";
import { checkKey, checkScan, conflict, isRowUnder, MAX_BATCH_OPS, MAX_VALUE_BYTES, ownBatch } from "./keys.js";
import type { ScanOptions, Value } from "./keys.js";
import { askToPersist, isPersisted } from "./persistence.js";
import { Queue } from "./queue.js";
import { rotateLog } from "./rotation.js";
import { sessionOf } from "./tabs.js";
import type { Changed } from "./tabs.js";
import { isOfARow, settle, storeError, TimedOut } from "./transaction.js";
import type { On } from "./transaction.js";

export { isRefused } from "./connection.js";

/** What an object store holds under `key.slice(1)`. */
interface Row {
  version: number;
  bytes: Uint8Array<ArrayBuffer>;
}

/** A store without encryption: with a key, only what it marks its database with. */
export function plainStore(options: IndexedDbOptions): Store {
  const { name = "context-compactor" } = options;
  const connection = new Connection(name, options.encryptionKey !== undefined);
  const queue = new Queue();
  const caps = {
    atomic: "batch",
    cas: true,
    durable: options.durability === "relaxed" ? "process" : "synced",
    maxValueBytes: MAX_VALUE_BYTES,
    maxBatchOps: MAX_BATCH_OPS,
    reportsDamage: true,
  } as const;

  /**
   * Runs `issue` in a transaction over the tables of `keys`. A lost connection is opened again once, unless writes may
   * have been written on it.
   */
  async function run<T>(
    keys: Key[],
    mode: "readonly" | "readwrite",
    durability: Batch["durability"],
    issue: (tx: IDBTransaction, on: On) => T,
  ): Promise<T> {
    const tables = keys.map(tableOf);
    for (let retried = false; ; retried = true) {
      const db = await connection.open();
      let sent = false;
      // Not before reading: a full disk can be read.
      if (mode === "readwrite") rotateLog();
      try {
        const tx = db.transaction(tables, mode, { durability });
        sent = mode === "readwrite";
        return await settle(tx, issue);
      } catch (error) {
        const failure = storeError(error);
        const lost = failure.code === "store_unavailable" || failure.code === "indeterminate";
        if (lost) connection.lose(db);
        if (!lost || (sent && !(error instanceof TimedOut)) || retried) throw failure;
      }
    }
  }

  const readTogether = (keys: Key[]) =>
    run(keys, "readonly", "relaxed", (tx, on) => {
      const values: (Value | undefined)[] = keys.map(() => undefined);
      keys.forEach((key, i) => on(get(tx, key), (row: Row | undefined) => (values[i] = row && bytesOf(row))));
      return values;
    });
  const scanTogether = (prefix: Key, options: ScanOptions) =>
    run([prefix], "readonly", "relaxed", (tx, on) => scan(tx, on, prefix, options));

  /** The same where the engine may be unable to read some of them, up to the value that makes them too large. */
  async function readApart(keys: Key[], maxBytes = Infinity): Promise<(Value | undefined)[]> {
    try {
      return await readInTurn(keys, maxBytes);
    } catch (error) {
      if (!isOfARow(error)) throw error;
    }
    // Chromium closes the connection over such a row: each gets one of its own.
    const values: (Value | undefined)[] = [];
    for (let bytes = 0; values.length < keys.length && bytes <= maxBytes; bytes += sizeOf(values.at(-1))) {
      values.push(await readAlone(keys[values.length]!));
    }
    return values;
  }
  const readInTurn = (keys: Key[], maxBytes: number) =>
    run(keys, "readonly", "relaxed", (tx) => {
      const values: (Value | undefined)[] = [];
      let bytes = 0;
      const next = (): void => {
        const key = keys[values.length];
        if (key && bytes <= maxBytes) getApart(tx, key, (value) => (values.push(value), (bytes += sizeOf(value)), next()));
      };
      next();
      return values;
    });
  async function readAlone(key: Key): Promise<Value | undefined> {
    try {
      return (await readInTurn([key], Infinity))[0];
    } catch (error) {
      if (!isOfARow(error)) throw error;
      // Where its key can be read, it is this value alone that cannot. Chromium's `getKey` reads the value too.
      const found = await run([key], "readonly", "relaxed", (tx, on) => {
        const keys: { count?: number } = {};
        on(tx.objectStore(tableOf(key)).count(rowOf(key)), (count: number) => (keys.count = count));
        return keys;
      });
      return found.count === 0 ? undefined : unreadable((error as CompactionError).cause);
    }
  }

  return {
    caps,
    name,

    async read(keys) {
      keys.forEach(checkKey);
      if (keys.length === 0) return [];
      try {
        return await readTogether(keys);
      } catch (error) {
        if (!isOfARow(error)) throw error;
        return readApart(keys);
      }
    },

    async scan(prefix, options) {
      checkScan(prefix, options);
      try {
        return await scanTogether(prefix, options);
      } catch (error) {
        if (options.keysOnly || !isOfARow(error)) throw error;
        const keys = (await scanTogether(prefix, { ...options, keysOnly: true })).map(([key]) => key);
        if (keys.length === 0) return [];
        const values = await readApart(keys, options.maxBytes);
        // The last one may be too much, and some may have been deleted since.
        const bytes = values.reduce((sum, value) => sum + sizeOf(value), 0);
        if (bytes > options.maxBytes && values.length > 1) values.pop();
        const page = values.map((value, i): [Key, Value | undefined] => [keys[i]!, value]);
        return page.filter((entry): entry is [Key, Value] => entry[1] !== undefined);
      }
    },

    async commit(batch) {
      const owned = ownBatch(batch, caps);
      const keys = [
        ...owned.expect.map(({ key }) => key),
        ...owned.puts.map(([key]) => key),
        ...owned.deletes,
      ];
      if (keys.length === 0) return;
      const durability = options.durability === "relaxed" ? "relaxed" : owned.durability;
      const written = sessionOf(owned);
      const write = () => run(keys, "readwrite", durability, (tx, on) => execute(tx, on, owned));
      if (written) {
        await queue.run(`context-compactor/${name}/${written.sid}`, write);
        connection.tabs.tell(written.sid, written.ver);
      } else await write();
      if (options.persist ?? true) askToPersist();
    },

    dataLoss: () => connection.dataLoss(),
    persisted: isPersisted,

    // Old browsers have no channels.
    ...(typeof BroadcastChannel !== "undefined" && {
      changes: (listener: Changed) => connection.tabs.listen(listener),
    }),

    close: () => connection.close(),
  };
}

/** Issues every request of `batch` at once: an expectation that fails aborts the writes queued after it. */
function execute(tx: IDBTransaction, on: On, batch: Batch): void {
  const expected = new Map<string, number>();
  for (const { key, version } of batch.expect) {
    expected.set(JSON.stringify(key), version ?? 0);
    on(get(tx, key), (row: Row | undefined) => {
      const found = row?.version ?? null;
      if (found !== version) throw conflict(key, version, found);
    });
  }
  for (const [key, value] of batch.puts) {
    const bytes = value as Row["bytes"];
    const version = expected.get(JSON.stringify(key));
    if (version === undefined) putUnversioned(tx, on, key, bytes);
    else tx.objectStore(tableOf(key)).put({ version: version + 1, bytes } satisfies Row, rowOf(key));
  }
  for (const key of batch.deletes) tx.objectStore(tableOf(key)).delete(rowOf(key));
}

/** Most rows are written once, so this adds, and only counts a version up when the row is there already. */
function putUnversioned(tx: IDBTransaction, on: On, key: Key, bytes: Row["bytes"]): void {
  const table = tx.objectStore(tableOf(key));
  const request = table.add({ version: 1, bytes } satisfies Row, rowOf(key));
  request.onerror = (event) => {
    if (request.error?.name !== "ConstraintError") return;
    event.preventDefault();
    event.stopPropagation();
    on(get(tx, key), (row: Row) => table.put({ version: row.version + 1, bytes } satisfies Row, rowOf(key)));
  };
}

function scan(tx: IDBTransaction, on: On, prefix: Key, options: ScanOptions): [Key, Value][] {
  const { after, limit, maxBytes, reverse = false, keysOnly = false } = options;
  const table = tx.objectStore(tableOf(prefix));
  // An array sorts after every string and number: this is past all rows under the prefix.
  const end = [...rowOf(prefix), []];
  const start = rowOf(prefix);
  const page: [Key, Value][] = [];
  let bytes = 0;
  let largest = 0;

  /** The key of a row that the index found here, and undefined where it says another one (seen in Firefox, bits flipped). */
  function keyOf(row: IDBValidKey): Key | undefined {
    const key = [tableOf(prefix), ...(Array.isArray(row) ? row : [])];
    return isRowUnder(key, prefix) ? key : undefined;
  }

  /** False when the page is full. */
  function add(row: IDBValidKey, stored: unknown): boolean {
    const key = keyOf(row);
    if (!key) return true;
    const value = keysOnly ? new Uint8Array() : bytesOf(stored);
    const size = sizeOf(value);
    bytes += size;
    if (page.length > 0 && bytes > maxBytes) return false;
    largest = Math.max(largest, size);
    page.push([key, value]);
    return page.length < limit;
  }

  /** `getAll` is many times faster than a cursor but knows no bytes, so its counts grow with what the rows weigh. */
  function forward(range: IDBKeyRange, wanted: number, wrong = 0): void {
    const count = Math.min(wanted, limit - page.length) + wrong;
    const keys = table.getAllKeys(range, count);
    on(keysOnly ? keys : table.getAll(range, count), (rows: unknown[]) => {
      const room = rows.every((row, i) => add(keys.result[i]!, row));
      if (!room || rows.length < count) return;
      const fitting = Math.floor((maxBytes - bytes) / Math.max(largest, 1));
      let last = rows.length - 1;
      while (last >= 0 && !keyOf(keys.result[last]!)) last--;
      forward(
        last < 0 ? range : IDBKeyRange.bound(keys.result[last], end, true, true),
        Math.max(1, Math.min(count * 4, fitting)),
        // These are found again.
        rows.length - 1 - last,
      );
    });
  }

  function backward(range: IDBKeyRange): void {
    const request = keysOnly ? table.openKeyCursor(range, "prev") : table.openCursor(range, "prev");
    on(request, (cursor: IDBCursorWithValue | null) => {
      if (cursor && add(cursor.key, cursor.value)) cursor.continue();
    });
  }

  if (reverse) backward(IDBKeyRange.bound(start, after ? rowOf(after) : end, false, true));
  else
    forward(IDBKeyRange.bound(after ? rowOf(after) : start, end, Boolean(after), true), keysOnly ? limit : 4);
  return page;
}

function get(tx: IDBTransaction, key: Key): IDBRequest {
  return tx.objectStore(tableOf(key)).get(rowOf(key));
}

/** Reads one row; one that the engine cannot read is damaged, and its transaction goes on. */
function getApart(tx: IDBTransaction, key: Key, take: (value: Value | undefined) => void): void {
  const request = get(tx, key);
  const cannot = (error: unknown) => take(unreadable(error));
  request.onsuccess = () => {
    let row: unknown;
    try {
      row = request.result;
    } catch (error) {
      // Firefox has it, and cannot make a value of it.
      return cannot(error);
    }
    take(row === undefined ? undefined : bytesOf(row));
  };
  request.onerror = (event) => {
    event.preventDefault();
    event.stopPropagation();
    cannot(request.error);
  };
}

function unreadable(error: unknown): Damaged {
  return { damaged: `the browser cannot read it (${(error as Error).name})` };
}

function sizeOf(value: Value | undefined): number {
  return value instanceof Uint8Array ? value.byteLength : 0;
}

function bytesOf(row: unknown): Value {
  const bytes = (row as Partial<Row> | undefined)?.bytes;
  return bytes instanceof Uint8Array ? bytes : DAMAGED;
}

const DAMAGED: Damaged = { damaged: "it was not written by this library" };

function tableOf(key: Key): string {
  return key[0] as string;
}

function rowOf(key: Key): (string | number)[] {
  return key.slice(1);
}
