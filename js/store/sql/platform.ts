/** What the store needs of a database, and the parts of connections that the drivers use. */

import type { MaybePromise } from "../../types.js";
import type { SqlValue } from "../durable/platform.js";

/** One SQL statement of `sqlStore`. */
export interface SqlStatement {
  /** Its text, in the driver's dialect, with a placeholder for each value: `$1`, `$2` … in `postgres`, `?` in `sqlite`. */
  readonly text: string;
  /** The values of the placeholders, in order: bytes, numbers and texts. */
  readonly values: SqlValue[];
}

/** A row of a result: values by the names of the columns. Bytes may be a `Uint8Array`, an `ArrayBuffer` or an array of
 *  numbers; whole numbers may be texts. */
export type SqlRow = object;

/** Runs one statement and returns the rows of its result. */
export type SqlQuery = (statement: SqlStatement) => MaybePromise<readonly SqlRow[]>;

/** A database for `sqlStore`. `pgDriver`, `postgresDriver`, `neonDriver`, `sqliteDriver`, `libsqlDriver` and `d1Driver`
 *  make one of a connection that the app has. A driver of your own has `transaction` or `batch`. What the database throws is
 *  passed on as it is: the store reads its `code` and its message. */
export type SqlDriver = SqlDriverBase & (SqlTransactionDriver | SqlBatchDriver);

/** What every driver has. */
export interface SqlDriverBase {
  /** The language of the statements. `postgres`: PostgreSQL 12 or later. `sqlite`: SQLite 3.25 or later. */
  readonly dialect: "postgres" | "sqlite";
  /** Runs one statement that only reads, outside of any transaction. Without it, reads take a transaction, too. */
  query?: SqlQuery;
  /** What a commit survives. Default: the database is asked (`SHOW synchronous_commit`, `PRAGMA synchronous`). */
  readonly durable?: "synced" | "process" | "none";
}

/** A driver that runs statements one by one in a transaction. */
export interface SqlTransactionDriver {
  /** Begins a transaction on a connection of its own, awaits `work`, then commits; rolls back and rejects if `work`
   *  rejects. PostgreSQL: `BEGIN ISOLATION LEVEL SERIALIZABLE`. Not called again for an error that the store retries
   *  (40001, 40P01): the store does that. */
  transaction<T>(work: (query: SqlQuery) => Promise<T>): Promise<T>;
}

/** A driver that takes a list of statements. */
export interface SqlBatchDriver {
  /** Runs all statements in order, in one transaction, or none of them; returns the rows of each. PostgreSQL: at isolation
   *  level SERIALIZABLE. */
  batch(statements: readonly SqlStatement[]): MaybePromise<readonly (readonly SqlRow[])[]>;
}

/** A `Pool` of `pg` or of `@neondatabase/serverless`, as far as `pgDriver` uses it. */
export interface PgPool {
  connect(): Promise<PgClient>;
  query(text: string, values: unknown[]): Promise<{ rows: SqlRow[] }>;
}

/** A connection of such a pool. */
export interface PgClient {
  query(text: string, values?: unknown[]): Promise<{ rows: SqlRow[] }>;
  release(error?: Error | boolean): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
}

/** The function that `postgres()` of postgres.js returns, as far as `postgresDriver` uses it. */
export interface PostgresSql {
  unsafe(text: string, values: never[]): PromiseLike<readonly SqlRow[]>;
  begin(options: string, work: (sql: { unsafe: PostgresSql["unsafe"] }) => Promise<unknown>): Promise<unknown>;
}

/** The function that `neon()` of `@neondatabase/serverless` returns, as far as `neonDriver` uses it. */
export interface NeonSql {
  query(text: string, values: unknown[]): PromiseLike<unknown>;
  transaction(queries: never[], options: { isolationLevel: "Serializable" }): Promise<unknown>;
}

/** A database of `node:sqlite`, better-sqlite3 or `bun:sqlite`, as far as `sqliteDriver` uses it. */
export interface SqliteDatabase {
  exec(text: string): unknown;
  prepare(text: string): SqliteStatement;
}

/** A statement of such a database. better-sqlite3 has `reader`, and no `all` for a statement without rows. */
export interface SqliteStatement {
  all(...values: never[]): unknown[];
  run(...values: never[]): unknown;
  readonly reader?: boolean;
}

/** A client of `@libsql/client`, as far as `libsqlDriver` uses it. */
export interface LibsqlClient {
  execute(statement: { sql: string; args: SqlValue[] }): Promise<{ rows: SqlRow[] }>;
  batch(statements: { sql: string; args: SqlValue[] }[], mode: "write"): Promise<{ rows: SqlRow[] }[]>;
}

/** A `D1Database` of Cloudflare, as far as `d1Driver` uses it. */
export interface D1Binding {
  prepare(text: string): { bind(...values: unknown[]): unknown };
  batch(statements: never[]): Promise<{ results: unknown[] }[]>;
}
