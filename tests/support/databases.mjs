/** Stores on servers of databases, by the client that each goes through. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient as createLibsql } from "@libsql/client";
import { Redis } from "ioredis";
import pg from "pg";
import postgres from "postgres";
import { createClient } from "redis";
import { redisStore } from "context-compactor/redis";
import { libsqlDriver, pgDriver, postgresDriver, sqliteDriver, sqlStore } from "context-compactor/sql";

const quiet = () => {};
const MAX = 8;

/** Each shape of a driver, made of a pool: the same database through transactions and through lists alone. */
export const lists = ({ dialect, transaction }) => ({
  dialect,
  batch: (statements) =>
    transaction(async (query) => {
      const results = [];
      for (const statement of statements) results.push(await query(statement));
      return results;
    }),
});

/** A pool of `pg`, with what the driver is made of it. */
function pooled(driverOf, options = {}) {
  return async (at) => {
    const pool = new pg.Pool({ ...at, max: MAX, ...options });
    pool.on("error", quiet);
    return { open: (table) => sqlStore(driverOf(pgDriver(pool)), { table }), close: () => pool.end() };
  };
}

const clients = {
  pg: pooled((driver) => driver),
  "pg in lists": pooled(lists),
  /** Faster, where nothing is killed. */
  "pg unsynced": pooled((driver) => driver, { options: "-c synchronous_commit=off" }),
  async postgres({ host, user, database }) {
    const sql = postgres({ path: join(host, ".s.PGSQL.5432"), user, database, max: MAX, onnotice: quiet });
    return { open: (table) => sqlStore(postgresDriver(sql), { table }), close: () => sql.end({ timeout: 1 }) };
  },
  async ioredis(path) {
    const client = new Redis({ path, retryStrategy: () => 50, maxRetriesPerRequest: null });
    client.on("error", quiet);
    return { open: (prefix) => redisStore(client, { prefix }), close: async () => client.disconnect() };
  },
  async redis(path) {
    const client = createClient({ socket: { path, reconnectStrategy: 50 } });
    client.on("error", quiet);
    await client.connect();
    return { open: (prefix) => redisStore(client, { prefix }), close: async () => client.destroy() };
  },
  sqlite: inProcess("FULL"),
  "sqlite unsynced": inProcess("OFF"),
  async libsql(path) {
    const client = createLibsql({ url: `file:${path}` });
    return { open: (table) => sqlStore(libsqlDriver(client), { table }), close: async () => client.close() };
  },
};

function inProcess(synchronous) {
  return async (path) => {
    const { DatabaseSync } = await import("node:sqlite");
    const db = new DatabaseSync(path, { timeout: 2_000 });
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`);
    return { open: (table) => sqlStore(sqliteDriver(db), { table }), close: async () => db.close() };
  };
}

/** A connection to a place, which is JSON, so that another process can have one, too: `{ open, close }`. */
export async function connect({ client, at, table }) {
  const { open, close } = await clients[client](at);
  return { open: () => open(table), close };
}

let tables = 0;
const fresh = () => `t${process.pid}_${tables++}`;

/** Makes places on a server that is running, as `tests/support/stores.mjs` has them; each has a connection of its own. */
export function placesOn(client, at) {
  return async () => {
    const where = { client, at, table: fresh() };
    const { open, close } = await connect(where);
    return { where, open, remove: close };
  };
}

/** Makes places that share a connection: `{ make, close }`. */
export async function placesOnOne(client, at) {
  const { open, close } = await clients[client](at);
  const make = async () => {
    const table = fresh();
    return { open: () => open(table), remove: async () => {} };
  };
  return { make, close };
}

/** A folder for a database of SQLite: `{ at, remove }`. */
export async function sqliteFile() {
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-sqlite-"));
  return { at: join(folder, "sessions.db"), remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }) };
}
