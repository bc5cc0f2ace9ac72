/** The store of browsers: one IndexedDB transaction per batch. */

import { checkOptions } from "../checks.js";
import { CompactionError } from "../errors.js";
import type { Batch, Key, Store } from "../types.js";
import { Connection, storeError } from "./connection.js";
import { checkKey, checkScan, conflict, MAX_BATCH_OPS, MAX_VALUE_BYTES, ownBatch } from "./keys.js";
import type { ScanOptions } from "./keys.js";

/** What an object store holds under `key.slice(1)`. */
interface Row {
  version: number;
  bytes: Uint8Array<ArrayBuffer>;
}

/** A transaction that was created while its connection was being lost gets no event at all in some engines. */
const LOST_WAIT_MS = 500;

/** Attaches `handle` to a request's success; what it throws aborts the transaction. */
type On = <R>(request: IDBRequest, handle: (result: R) => void) => void;

/**
 * Keeps everything in the IndexedDB database `name` (default `context-compactor`), one object store per table.
 * `durability: "relaxed"` never waits for the disk: such commits survive a crash of the browser, not a power cut.
 * Default `strict`: every batch is as durable as it asks.
 */
export function indexedDbStore(options: { name?: string; durability?: "strict" | "relaxed" } = {}): Store {
  checkOptions(options, ["name", "durability"]);
  const { name = "context-compactor" } = options;
  const connection = new Connection(name);
  const caps = {
    atomic: "batch",
    cas: true,
    durable: options.durability === "relaxed" ? "process" : "synced",
    maxValueBytes: MAX_VALUE_BYTES,
    maxBatchOps: MAX_BATCH_OPS,
  } as const;

  /**
   * Runs `issue` in a transaction over the tables of `keys`. A lost connection is opened again once, unless writes may
   * have been sent on it.
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
      try {
        const tx = db.transaction(tables, mode, { durability });
        sent = mode === "readwrite";
        return await settle(tx, issue);
      } catch (error) {
        const failure = storeError(error);
        const lost = failure.code === "store_unavailable" || failure.code === "indeterminate";
        if (lost) connection.lose(db);
        if (!lost || sent || retried) throw failure;
      }
    }
  }

  return {
    caps,
    name,

    async read(keys) {
      keys.forEach(checkKey);
      if (keys.length === 0) return [];
      return run(keys, "readonly", "relaxed", (tx, on) => {
        const values: (Uint8Array | undefined)[] = keys.map(() => undefined);
        keys.forEach((key, i) =>
          on(get(tx, key), (row: Row | undefined) => (values[i] = row && bytesOf(row, key))),
        );
        return values;
      });
    },

    async scan(prefix, options) {
      checkScan(prefix, options);
      return run([prefix], "readonly", "relaxed", (tx, on) => scan(tx, on, prefix, options));
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
      await run(keys, "readwrite", durability, (tx, on) => execute(tx, on, owned));
    },

    close: () => connection.close(),
  };
}

/** Issues every request of `batch` at once: an expectation that fails aborts the writes queued behind it. */
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

function scan(tx: IDBTransaction, on: On, prefix: Key, options: ScanOptions): [Key, Uint8Array][] {
  const { after, limit, maxBytes, reverse = false, keysOnly = false } = options;
  const table = tx.objectStore(tableOf(prefix));
  // An array sorts after every string and number: this is past all rows under the prefix.
  const end = [...rowOf(prefix), []];
  const start = rowOf(prefix);
  const page: [Key, Uint8Array][] = [];
  let bytes = 0;
  let largest = 0;

  /** False when the page is full. */
  function add(row: IDBValidKey, stored: unknown): boolean {
    const key = [tableOf(prefix), ...(row as (string | number)[])];
    const value = keysOnly ? new Uint8Array() : bytesOf(stored, key);
    bytes += value.byteLength;
    if (page.length > 0 && bytes > maxBytes) return false;
    largest = Math.max(largest, value.byteLength);
    page.push([key, value]);
    return page.length < limit;
  }

  /** `getAll` is many times faster than a cursor but knows no bytes, so its counts grow with what the rows weigh. */
  function forward(range: IDBKeyRange, wanted: number): void {
    const count = Math.min(wanted, limit - page.length);
    const keys = table.getAllKeys(range, count);
    on(keysOnly ? keys : table.getAll(range, count), (rows: unknown[]) => {
      const room = rows.every((row, i) => add(keys.result[i]!, row));
      if (!room || rows.length < count) return;
      const fitting = Math.floor((maxBytes - bytes) / Math.max(largest, 1));
      forward(
        IDBKeyRange.bound(keys.result.at(-1), end, true, true),
        Math.max(1, Math.min(count * 4, fitting)),
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

/**
 * Calls `issue` and settles with the transaction. Only `complete` proves a commit: requests report success before an
 * abort for lack of space.
 */
function settle<T>(tx: IDBTransaction, issue: (tx: IDBTransaction, on: On) => T): Promise<T> {
  return new Promise((resolve, reject) => {
    let reason: unknown;
    const abort = (error: unknown) => {
      reason ??= error;
      try {
        tx.abort();
      } catch {
        // It has ended by itself, and its event follows.
      }
    };
    const on: On = (request, handle) => {
      request.onsuccess = () => {
        try {
          handle(request.result);
        } catch (error) {
          abort(error);
        }
      };
    };
    const fail = () => {
      const causes = [reason, tx.error] as (Error | null | undefined)[];
      const cause = causes.find((error) => error && error.name !== "AbortError") ?? reason ?? tx.error;
      const unwritten =
        reason !== undefined || tx.mode === "readonly" || tx.error?.name === "QuotaExceededError";
      const unknown = "IndexedDB failed at the commit: read again to see whether it was written";
      reject(unwritten ? cause : new CompactionError("indeterminate", unknown, { cause }));
    };
    const lost = () => setTimeout(fail, LOST_WAIT_MS);
    const { db } = tx;
    db.addEventListener("close", lost);
    let result: T;
    tx.oncomplete = () => {
      db.removeEventListener("close", lost);
      resolve(result);
    };
    // A request that failed was still under way, so nothing can have been committed.
    tx.onerror = (event) => (reason ??= (event.target as IDBRequest).error);
    tx.onabort = () => {
      db.removeEventListener("close", lost);
      fail();
    };
    try {
      result = issue(tx, on);
    } catch (error) {
      abort(error);
    }
  });
}

function get(tx: IDBTransaction, key: Key): IDBRequest {
  return tx.objectStore(tableOf(key)).get(rowOf(key));
}

function bytesOf(row: unknown, key: Key): Uint8Array {
  const bytes = (row as Partial<Row> | undefined)?.bytes;
  if (bytes instanceof Uint8Array) return bytes;
  throw new CompactionError("store_corrupt", `${JSON.stringify(key)} was not written by this library`);
}

function tableOf(key: Key): string {
  return key[0] as string;
}

function rowOf(key: Key): (string | number)[] {
  return key.slice(1);
}
