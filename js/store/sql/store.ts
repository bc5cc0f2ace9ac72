/** The store of SQL databases: one table, through a driver. */

import { checkOptions, invalidOption } from "../../checks.js";
import { CompactionError } from "../../errors.js";
import type { Batch, Key, Store } from "../../types.js";
import { decodeKey, encodeKey, rangeOf } from "../durable/key.js";
import { MAX_VALUE_BYTES, SCHEMA, SCHEMA_END } from "../durable/parts.js";
import { checkKey, checkScan, conflict, hex, MAX_BATCH_OPS, ownBatch } from "../keys.js";
import type { ScanOptions } from "../keys.js";
import { pause, sessionOf, TURN_MS, Turns } from "../turns.js";
import { hasNoTable, isBroken, isInTheWay, sqlError } from "./errors.js";
import type { SqlDriver, SqlRow, SqlStatement } from "./platform.js";
import { checkTable, Statements } from "./statements.js";
import type { Turn } from "./statements.js";

/** Options of `sqlStore`. */
export interface SqlStoreOptions {
  /** Name of the table, of letters, digits and `_`; with the name of a schema before a point, if wanted. Default:
   *  `context_compactor`. */
  table?: string;
}

/** Transactions that were in each other's way are tried again for so long. */
const RETRY_MS = 10_000;
const LONGEST_WAIT_MS = 100;

/**
 * Stores sessions in a table of a SQL database, which it makes when it is missing: `sqlStore(pgDriver(pool))`. The app
 * passes its own connection and closes it. Any number of processes may use one table; a commit is one transaction, which
 * is tried again for up to 10 s if others are in its way. Values over 1 MiB are in several rows.
 *
 * What an `append` that resolved survives (`caps.durable`) is asked of the database with the first call, and `none` before
 * it: `synced` if PostgreSQL has `synchronous_commit` and `fsync`, or SQLite `PRAGMA synchronous = FULL`; `process` with
 * less; `none` for a database in memory.
 *
 * Errors: `invalid_option`, also for a driver whose transactions are not serializable; `store_unavailable`,
 * `quota_exceeded`, `too_large` (a value over 16 MiB), `store_corrupt`, `schema_too_new`, `conflict`, `closed`;
 * `indeterminate` if the connection broke before a commit was answered.
 */
export function sqlStore(driver: SqlDriver, options: SqlStoreOptions = {}): Store {
  checkOptions(options, ["table"]);
  const { table = "context_compactor" } = options;
  checkTable(table);
  checkDriver(driver);
  let durable: Store["caps"]["durable"] = "none";
  const caps = {
    atomic: "batch",
    cas: true,
    get durable() {
      return durable;
    },
    maxValueBytes: MAX_VALUE_BYTES,
    maxBatchOps: MAX_BATCH_OPS,
  } as const;
  const statements = new Statements(table, driver.dialect);
  const turns = new Turns();
  const running = new Set<Promise<unknown>>();
  let closed = false;
  let opening: Promise<void> | undefined;

  /** Runs an operation once the table is there; `close` waits for it. */
  function run<T>(work: () => Promise<T>): Promise<T> {
    if (closed) return Promise.reject(new CompactionError("closed", "The store was closed: make a new one"));
    const operation = open().then(work);
    const ended = () => void running.delete(settled);
    const settled: Promise<void> = operation.then(ended, ended);
    running.add(settled);
    return operation;
  }

  function open(): Promise<void> {
    return (opening ??= prepare().catch((error: unknown) => {
      // A later call may find what this one could not.
      opening = undefined;
      throw error;
    }));
  }

  async function prepare(): Promise<void> {
    const [[row] = []] = await look([statements.schema()], hasNoTable).catch(async (error: unknown) => {
      if (!hasNoTable(error)) throw error;
      await list(driver, statements.create());
      return look([statements.schema()]);
    });
    checkSchema(row && Number(field(row, "version")));
    durable = await durabilityOf(driver);
  }

  /** Reads; one statement needs no transaction. `isExpected`: errors that are thrown as they are. */
  async function look(asked: SqlStatement[], isExpected = (_: unknown) => false): Promise<readonly (readonly SqlRow[])[]> {
    const [only, ...more] = asked;
    if (!only) return [];
    if (more.length > 0 || !driver.query) return list(driver, asked, isExpected);
    const { query } = driver;
    return patiently(async () => {
      try {
        return [await query(only)];
      } catch (error) {
        throw isExpected(error) || isInTheWay(error) ? error : sqlError(error, false);
      }
    });
  }

  /** Which expectation does not hold; undefined when all do. */
  async function broken(expect: Batch["expect"]): Promise<CompactionError | undefined> {
    const found = new Map<string, number>();
    for (const row of (await look(statements.versions(expect.map(({ key }) => encodeKey(key))))).flat()) {
      found.set(hex(bytesOf(field(row, "key"))), Number(field(row, "version")));
    }
    for (const { key, version } of expect) {
      const now = found.get(hex(encodeKey(key))) ?? null;
      if (now !== version) return conflict(key, version, now);
    }
    return undefined;
  }

  /** Writes a batch in its turn among those that write the row of session `sid`. */
  async function write(expect: Batch["expect"], written: (turn?: Turn) => SqlStatement[], sid: string | undefined): Promise<void> {
    const until = Date.now() + TURN_MS;
    for (;;) {
      const waits = Date.now() < until;
      const turn: Turn | undefined =
        sid === undefined
          ? undefined
          : { key: encodeKey(["turns", sid]), id: idOf(turns), waits, ends: !waits || turns.lost(sid) > 0 };
      const asked = written(turn);
      if (asked.length === 0) return;
      try {
        await list(driver, asked, isBroken);
        if (sid !== undefined) turns.win(sid);
        return;
      } catch (error) {
        if (!isBroken(error)) throw error;
        const lost = await broken(expect);
        if (lost && turn && sid !== undefined) {
          turns.lose(sid);
          // Without it the others are only faster.
          await list(driver, [statements.take(turn, turns.lost(sid))]).catch(() => {});
        }
        if (lost) throw lost;
        if (!turn || !waits) throw new CompactionError("conflict", "A row was changed meanwhile: nothing was written; read again and retry");
        await pause();
      }
    }
  }

  return {
    caps,

    async read(keys) {
      keys.forEach(checkKey);
      const wanted = keys.map((key) => encodeKey(key));
      return run(async () => {
        const values = wholeOf((await look(statements.read(wanted))).flat());
        // A key may be asked for twice, and each value is the caller's.
        return wanted.map((key) => values.get(hex(key))?.value.slice());
      });
    },

    async scan(prefix: Key, options: ScanOptions) {
      checkScan(prefix, options);
      const { limit, maxBytes, reverse = false, keysOnly = false } = options;
      const range = rangeOf(prefix, options);
      const most = Math.min(Math.ceil(limit), 2 ** 31 - 1);
      return run(async () => {
        if (keysOnly) {
          const rows = (await look([statements.keys(range, most, reverse)])).flat();
          return rows.map((row): [Key, Uint8Array] => [decodeKey(bytesOf(field(row, "key"))), new Uint8Array()]);
        }
        const bytes = Math.floor(Math.min(Math.max(maxBytes, 0), Number.MAX_SAFE_INTEGER));
        const rows = (await look([statements.scan(range, most, bytes, reverse)])).flat();
        return Array.from(wholeOf(rows).values(), ({ key, value }): [Key, Uint8Array] => [decodeKey(key), value]);
      });
    },

    async commit(batch: Batch) {
      const owned = ownBatch(batch, caps);
      const expect = owned.expect.map(({ key, version }) => ({ key: encodeKey(key), version }));
      const puts = owned.puts.map(([key, value]) => [encodeKey(key), value] as const);
      const deletes = owned.deletes.map((key) => encodeKey(key));
      return run(() => write(owned.expect, (turn) => statements.write(expect, puts, deletes, turn), sessionOf(owned)));
    },

    async close() {
      closed = true;
      while (running.size > 0) await Promise.all(running);
    },
  };
}

/** Runs statements in one transaction. Throws typed errors, but for those that are expected. */
async function list(
  driver: SqlDriver,
  statements: readonly SqlStatement[],
  isExpected = (_: unknown) => false,
): Promise<readonly (readonly SqlRow[])[]> {
  return patiently(async () => {
    // A transaction whose statements have not all been answered was not committed; of a list nothing is known.
    let isInDoubt = "batch" in driver;
    try {
      if ("batch" in driver) return await driver.batch(statements);
      return await driver.transaction(async (query) => {
        const results: (readonly SqlRow[])[] = [];
        for (const statement of statements) results.push(await query(statement));
        isInDoubt = true;
        return results;
      });
    } catch (error) {
      throw isExpected(error) || isInTheWay(error) ? error : sqlError(error, isInDoubt);
    }
  });
}

/** Tries again what another transaction was in the way of: then nothing of it was written. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const until = Date.now() + RETRY_MS;
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!isInTheWay(error)) throw error;
      if (Date.now() > until) throw sqlError(error, false);
      const most = Math.min(LONGEST_WAIT_MS, 2 ** tries);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * most));
    }
  }
}

/** Asked in a transaction as commits are: PostgreSQL also says how far it keeps them apart. */
async function durabilityOf(driver: SqlDriver): Promise<Store["caps"]["durable"]> {
  const value = (row: SqlRow | undefined, name: string) => (row ? String(field(row, name)) : "");
  if (driver.dialect === "postgres") {
    const names = ["synchronous_commit", "fsync", "transaction_isolation"];
    const text = `SELECT ${names.map((name) => `current_setting('${name}') AS ${name}`).join(", ")}`;
    const [[row] = []] = await list(driver, [{ text, values: [] }]);
    if (value(row, "transaction_isolation") !== "serializable") {
      const problem = `its transactions are at isolation level ${value(row, "transaction_isolation")}: begin them with ISOLATION LEVEL SERIALIZABLE`;
      throw invalidOption("driver", problem);
    }
    return driver.durable ?? (value(row, "synchronous_commit") === "off" || value(row, "fsync") === "off" ? "process" : "synced");
  }
  if (driver.durable) return driver.durable;
  try {
    const pragmas = ["synchronous", "journal_mode", "database_list"].map((name) => ({ text: `PRAGMA ${name}`, values: [] }));
    const [[synchronous] = [], [journal] = [], [main] = []] = await list(driver, pragmas);
    const mode = value(journal, "journal_mode");
    // A journal in memory is gone when the process ends in the middle of a commit, and the database is torn.
    if (value(main, "file") === "" || mode === "memory" || mode === "off") return "none";
    return Number(value(synchronous, "synchronous")) >= 2 ? "synced" : "process";
  } catch {
    // A host that does not say.
    return "process";
  }
}

function checkSchema(version: number | undefined): void {
  if (version === undefined || !(version >= SCHEMA)) {
    throw new CompactionError("store_corrupt", `The table has no known schema (${String(version)}): is it one of this library?`);
  }
  if (version >= SCHEMA_END) {
    const problem = `The table has schema ${version}, this release reads ${SCHEMA} to ${SCHEMA_END - 1}: update the app`;
    throw new CompactionError("schema_too_new", problem);
  }
}

function checkDriver(driver: SqlDriver): void {
  const { dialect, transaction, batch } = Object(driver) as { [name: string]: unknown };
  const isKnown = dialect === "postgres" || dialect === "sqlite";
  if (isKnown && (typeof transaction === "function" || typeof batch === "function")) return;
  throw invalidOption("driver", "must have `dialect` and `transaction` or `batch`, as pgDriver(pool) and sqliteDriver(db) have");
}

/** The values of rows whose parts are in order, by their keys. */
function wholeOf(rows: readonly SqlRow[]): Map<string, { key: Uint8Array; value: Uint8Array }> {
  const found = new Map<string, { key: Uint8Array; parts: Uint8Array[] }>();
  for (const row of rows) {
    const key = bytesOf(field(row, "key"));
    const name = hex(key);
    const value = bytesOf(field(row, "value"));
    // Parts without a first one belong to nothing.
    if (Number(field(row, "part")) === 0) found.set(name, { key, parts: [value] });
    else found.get(name)?.parts.push(value);
  }
  return new Map(Array.from(found, ([name, { key, parts }]) => [name, { key, value: joined(parts) }]));
}

function joined(parts: Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const whole = new Uint8Array(parts.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.byteLength;
  }
  return whole;
}

function idOf({ id }: Turns): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(id);
}

function field(row: SqlRow, name: string): unknown {
  return (row as Record<string, unknown>)[name];
}

/** Bytes of their own, whatever a client makes of a BLOB. */
function bytesOf(value: unknown): Uint8Array {
  if (value === null || value === undefined) return new Uint8Array();
  return new Uint8Array(value as ArrayLike<number> | ArrayBuffer);
}
