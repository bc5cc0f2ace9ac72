/** The tables of the store in the object's SQLite. Everything here is synchronous: one call is one moment. */

import { CompactionError } from "../../errors.js";
import type { Batch, Damaged, Key } from "../../types.js";
import { conflict } from "../keys.js";
import type { ScanOptions } from "../keys.js";
import { storageError } from "./errors.js";
import { decodeKey, encodeKey, pastKey, rangeOf } from "./key.js";
import { PART_BYTES, SCHEMA, SCHEMA_END } from "./parts.js";
import type { DurableObjectContext, DurableObjectStorage, SqlValue } from "./platform.js";

/** Larger values lie in parts of their own, so that a query of `PAGE_ROWS` rows brings 4 MiB at most: SQLite's memory
 *  is the isolate's. */
const INLINE_BYTES = 64 * 1024;
const PAGE_ROWS = 64;
const PAGE_KEYS = 1024;

const TABLES = [
  `CREATE TABLE IF NOT EXISTS context_compactor_meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID`,
  // A value is in `bytes`, or the object that `object` names, or in parts.
  `CREATE TABLE IF NOT EXISTS context_compactor_rows (key BLOB PRIMARY KEY, version INTEGER NOT NULL,
     size INTEGER NOT NULL, object TEXT, bytes BLOB) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS context_compactor_parts (key BLOB, part INTEGER, bytes BLOB NOT NULL,
     PRIMARY KEY (key, part)) WITHOUT ROWID`,
  // Every object of the bucket that no row names: `staged` before it is uploaded, `dropped` when it is to be deleted.
  `CREATE TABLE IF NOT EXISTS context_compactor_objects (name TEXT PRIMARY KEY, state TEXT NOT NULL,
     since INTEGER NOT NULL) WITHOUT ROWID`,
];

/** A row as a query brings it. */
interface Row {
  key: ArrayBuffer;
  size: number;
  object: string | null;
  bytes: ArrayBuffer | null;
}

/** A row with its value, or with where that is: in the object that is named; or why it has none. */
export type Stored = { key: Key; size: number } & (Damaged | { bytes: Uint8Array<ArrayBuffer> } | { object: string });

export class Tables {
  readonly #context: DurableObjectContext;
  #ready = false;

  constructor(context: DurableObjectContext) {
    this.#context = context;
  }

  /** What is stored under `key`. */
  find(key: Key): Stored | undefined {
    return this.#run(() => this.#find(key));
  }

  /** What is stored under each of `keys`, at one moment. */
  findAll(keys: Key[]): (Stored | undefined)[] {
    return this.#run(() => keys.map((key) => this.#find(key)));
  }

  /** Rows as `Store.scan` documents them, but for values that are in objects. */
  scan(prefix: Key, options: ScanOptions): Stored[] {
    return this.#run(() => this.#scan(prefix, options));
  }

  /** Throws `conflict` unless all of `expect` hold. */
  check(expect: Batch["expect"]): void {
    this.#run(() => this.#check(expect));
  }

  /**
   * Executes `batch` in one transaction. `objects` names those that hold the values of puts, by their place; each must
   * still be staged. Returns the objects that no row names any more.
   */
  write(batch: Batch, objects: ReadonlyMap<number, string>): string[] {
    return this.#transaction(() => {
      this.#check(batch.expect);
      for (const name of objects.values()) this.#claim(name);
      const dropped = [
        ...batch.puts.map(([key, value], i) => this.#put(encodeKey(key), value, objects.get(i))),
        ...batch.deletes.map((key) => this.#remove(encodeKey(key))),
      ].filter((name) => name !== undefined);
      for (const name of dropped) this.#note(name, "dropped");
      return dropped;
    });
  }

  /** Notes objects that are about to be uploaded, so that none is ever unknown. */
  stage(names: string[]): void {
    this.#transaction(() => names.forEach((name) => this.#note(name, "staged")));
  }

  /** Notes that objects which were staged will not be referred to. */
  abandon(names: string[]): void {
    this.#transaction(() => names.forEach((name) => this.#note(name, "dropped")));
  }

  /** Forgets objects that were deleted. */
  forget(names: string[]): void {
    this.#transaction(() => {
      for (const name of names) this.#sql("DELETE FROM context_compactor_objects WHERE name = ?", name);
    });
  }

  /** Abandons what was staged before `time`, and returns up to `limit` objects that are to be deleted. */
  orphans(time: number, limit: number): string[] {
    return this.#transaction(() => {
      this.#sql("UPDATE context_compactor_objects SET state = 'dropped' WHERE state = 'staged' AND since < ?", time);
      const rows = this.#sql("SELECT name FROM context_compactor_objects WHERE state = 'dropped' LIMIT ?", limit);
      return rows.map(({ name }) => name as string);
    });
  }

  #find(key: Key): Stored | undefined {
    const query = "SELECT key, size, object, bytes FROM context_compactor_rows WHERE key = ?";
    const [row] = this.#sql<Row>(query, encodeKey(key));
    return row && this.#stored(key, row);
  }

  #scan(prefix: Key, options: ScanOptions): Stored[] {
    const { limit, maxBytes, reverse = false, keysOnly = false } = options;
    const columns = keysOnly ? "key, 0 AS size, NULL AS object, x'' AS bytes" : "key, size, object, bytes";
    const query = `SELECT ${columns} FROM context_compactor_rows WHERE key >= ? AND key < ?
      ORDER BY key ${reverse ? "DESC" : "ASC"} LIMIT ?`;
    const page: Stored[] = [];
    let { low, high } = rangeOf(prefix, options);
    let bytes = 0;
    while (page.length < limit) {
      const wanted = Math.ceil(Math.min(limit - page.length, keysOnly ? PAGE_KEYS : PAGE_ROWS));
      const rows = this.#sql<Row>(query, low, high, wanted);
      for (const row of rows) {
        bytes += row.size;
        if (page.length > 0 && bytes > maxBytes) return page;
        page.push(this.#stored(decodeKey(new Uint8Array(row.key)), row));
      }
      const last = rows.at(-1);
      if (!last || rows.length < wanted) break;
      if (reverse) high = new Uint8Array(last.key);
      else low = pastKey(new Uint8Array(last.key));
    }
    return page;
  }

  /** A row with its value, if that is in SQLite. */
  #stored(key: Key, { key: encoded, size, object, bytes }: Row): Stored {
    if (object !== null) return { key, size, object };
    if (bytes) return { key, size, bytes: new Uint8Array(bytes) };
    const whole = new Uint8Array(size);
    for (let part = 0; part * PART_BYTES < size; part++) {
      const query = "SELECT bytes FROM context_compactor_parts WHERE key = ? AND part = ?";
      const [row] = this.#sql<{ bytes: ArrayBuffer }>(query, new Uint8Array(encoded), part);
      if (row?.bytes.byteLength !== Math.min(PART_BYTES, size - part * PART_BYTES)) {
        return { key, size, damaged: `part ${part} of it is missing or not whole` };
      }
      whole.set(new Uint8Array(row.bytes), part * PART_BYTES);
    }
    return { key, size, bytes: whole };
  }

  #check(expect: Batch["expect"]): void {
    for (const { key, version } of expect) {
      const query = "SELECT version FROM context_compactor_rows WHERE key = ?";
      const [row] = this.#sql<{ version: number }>(query, encodeKey(key));
      const found = row?.version ?? null;
      if (found !== version) throw conflict(key, version, found);
    }
  }

  /** Writes a value, and returns the object of the one before. */
  #put(key: Uint8Array<ArrayBuffer>, value: Uint8Array, object: string | undefined): string | undefined {
    const before = this.#release(key);
    const inline = object === undefined && value.byteLength <= INLINE_BYTES ? (value as Uint8Array<ArrayBuffer>) : null;
    this.#sql(
      `INSERT INTO context_compactor_rows (key, version, size, object, bytes) VALUES (?, 1, ?, ?, ?) ON CONFLICT (key)
       DO UPDATE SET version = version + 1, size = excluded.size, object = excluded.object, bytes = excluded.bytes`,
      key,
      value.byteLength,
      object ?? null,
      inline,
    );
    if (object !== undefined || inline) return before;
    for (let part = 0; part * PART_BYTES < value.byteLength; part++) {
      const bytes = value.subarray(part * PART_BYTES, (part + 1) * PART_BYTES) as Uint8Array<ArrayBuffer>;
      this.#sql("INSERT INTO context_compactor_parts (key, part, bytes) VALUES (?, ?, ?)", key, part, bytes);
    }
    return before;
  }

  #remove(key: Uint8Array<ArrayBuffer>): string | undefined {
    const before = this.#release(key);
    this.#sql("DELETE FROM context_compactor_rows WHERE key = ?", key);
    return before;
  }

  /** Deletes the parts of a row's value; returns its object. */
  #release(key: Uint8Array<ArrayBuffer>): string | undefined {
    const query = "SELECT object, bytes IS NULL AS apart FROM context_compactor_rows WHERE key = ?";
    const [row] = this.#sql<{ object: string | null; apart: number }>(query, key);
    if (row?.apart && row.object === null) this.#sql("DELETE FROM context_compactor_parts WHERE key = ?", key);
    return row?.object ?? undefined;
  }

  #note(name: string, state: "staged" | "dropped"): void {
    const query = "INSERT OR REPLACE INTO context_compactor_objects (name, state, since) VALUES (?, ?, ?)";
    this.#sql(query, name, state, Date.now());
  }

  /** A row will name the object. Who took too long finds it given up: a reference to it might outlive it. */
  #claim(name: string): void {
    const query = "DELETE FROM context_compactor_objects WHERE name = ? AND state = 'staged' RETURNING name";
    if (this.#sql(query, name).length === 1) return;
    const why = "A big value was uploaded too late, and is deleted already: nothing was written; try again";
    throw new CompactionError("store_unavailable", why);
  }

  #transaction<T>(work: () => T): T {
    return this.#run(() => atomically(this.#context.storage, work));
  }

  /** Runs `work` on the tables, and makes them when they are not there: for the first time, or after `deleteAll()`. */
  #run<T>(work: () => T): T {
    try {
      this.#prepare();
      try {
        return work();
      } catch (error) {
        if (!/no such table: context_compactor_/.test(String((error as Error | null)?.message))) throw error;
        this.#ready = false;
        this.#prepare();
        return work();
      }
    } catch (error) {
      throw storageError(error);
    }
  }

  #prepare(): void {
    if (this.#ready) return;
    atomically(this.#context.storage, () => {
      for (const table of TABLES) this.#sql(table);
      this.#sql("INSERT OR IGNORE INTO context_compactor_meta (name, value) VALUES ('schema', ?)", SCHEMA);
      const [{ value } = {}] = this.#sql("SELECT value FROM context_compactor_meta WHERE name = 'schema'");
      if (typeof value !== "number" || value < SCHEMA) {
        throw new CompactionError("store_corrupt", `The Durable Object's tables have no known schema (${String(value)})`);
      }
      if (value >= SCHEMA_END) {
        throw new CompactionError(
          "schema_too_new",
          `The Durable Object has schema ${value}, this release reads ${SCHEMA} to ${SCHEMA_END - 1}: update the Worker`,
        );
      }
    });
    this.#ready = true;
  }

  #sql<T = Record<string, unknown>>(query: string, ...bindings: SqlValue[]): T[] {
    return this.#context.storage.sql.exec(query, ...bindings).toArray() as T[];
  }
}

/**
 * One transaction. The platform takes a callback that returns a promise without a word, and commits what it did before
 * its first await: here that is rolled back.
 *
 * @public for the tests of workerd.
 */
export function atomically<T>(storage: DurableObjectStorage, work: () => T): T {
  return storage.transactionSync(() => {
    const result = work();
    if (typeof (result as { then?: unknown } | null | undefined)?.then === "function") {
      throw new TypeError("a transaction must not wait");
    }
    return result;
  });
}
