/** Drivers of `sqlStore`, each of a connection that the app has. They import nothing: the shapes are enough. */

import { CompactionError } from "../../errors.js";
import type {
  D1Binding,
  LibsqlClient,
  NeonSql,
  PgPool,
  PostgresSql,
  SqlBatchDriver,
  SqlDriverBase,
  SqlRow,
  SqlStatement,
  SqlTransactionDriver,
  SqliteDatabase,
} from "./platform.js";

/** Driver of a `Pool` of `pg`, or of `@neondatabase/serverless` over a WebSocket. Each commit takes a connection of the
 *  pool for one serializable transaction. Add `pool.on("error", …)`, as `pg` documents. Throws `invalid_option` for anything
 *  but a pool. */
export function pgDriver(pool: PgPool): SqlDriverBase & SqlTransactionDriver {
  check("pgDriver", pool, ["connect", "query"], "a Pool of pg");
  return {
    dialect: "postgres",
    query: async ({ text, values }) => (await pool.query(text, values)).rows,
    async transaction(work) {
      const client = await pool.connect();
      // A connection that breaks between two statements says so in an event, which would end the process.
      let broken: Error | undefined;
      const onError = (error: Error) => void (broken = error);
      client.on("error", onError);
      try {
        await client.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
        const result = await work(async ({ text, values }) => (await client.query(text, values)).rows);
        await client.query("COMMIT");
        return result;
      } catch (error) {
        await client.query("ROLLBACK").catch((failed: Error) => (broken ??= failed));
        throw error;
      } finally {
        client.removeListener("error", onError);
        client.release(broken);
      }
    },
  };
}

/** Driver of postgres.js: of the function that `postgres()` returns. Throws `invalid_option` for anything else. */
export function postgresDriver(sql: PostgresSql): SqlDriverBase & SqlTransactionDriver {
  check("postgresDriver", sql, ["begin", "unsafe"], "what postgres() returns");
  const queryOf =
    (on: { unsafe: PostgresSql["unsafe"] }) =>
    async ({ text, values }: SqlStatement): Promise<readonly SqlRow[]> =>
      on.unsafe(text, values as never[]);
  return {
    dialect: "postgres",
    query: queryOf(sql),
    transaction: async <T>(work: Parameters<SqlTransactionDriver["transaction"]>[0]) =>
      (await sql.begin("ISOLATION LEVEL SERIALIZABLE", (on) => work(queryOf(on)))) as T,
  };
}

/** Driver of Neon over HTTP: of the function that `neon()` of `@neondatabase/serverless` returns. Throws `invalid_option`
 *  for anything else. */
export function neonDriver(sql: NeonSql): SqlDriverBase & SqlBatchDriver {
  check("neonDriver", sql, ["query", "transaction"], "what neon() returns");
  return {
    dialect: "postgres",
    query: async ({ text, values }) => (await sql.query(text, values)) as SqlRow[],
    async batch(statements) {
      const queries = statements.map(({ text, values }) => sql.query(text, values));
      return (await sql.transaction(queries as never[], { isolationLevel: "Serializable" })) as SqlRow[][];
    },
  };
}

/** Driver of a SQLite database in this process: a `DatabaseSync` of `node:sqlite`, or a `Database` of better-sqlite3 or
 *  `bun:sqlite`. The connection must not be in a transaction of the app when the store is called. Throws
 *  `invalid_option` for anything else. */
export function sqliteDriver(db: SqliteDatabase): SqlDriverBase & SqlBatchDriver {
  check("sqliteDriver", db, ["prepare", "exec"], "a database of node:sqlite, better-sqlite3 or bun:sqlite");
  const query = ({ text, values }: SqlStatement): SqlRow[] => {
    const statement = db.prepare(text);
    if (statement.reader !== false) return statement.all(...(values as never[])) as SqlRow[];
    statement.run(...(values as never[]));
    return [];
  };
  return {
    dialect: "sqlite",
    query,
    // Nothing awaits in here: the connection may be the app's own, and what it does meanwhile must not join in.
    batch(statements) {
      db.exec("BEGIN IMMEDIATE");
      try {
        const results = statements.map(query);
        db.exec("COMMIT");
        return results;
      } catch (error) {
        try {
          db.exec("ROLLBACK");
        } catch {
          // SQLite has done that itself, as when the disk is full.
        }
        throw error;
      }
    },
  };
}

/** Driver of libSQL and Turso: of a client that `createClient()` of `@libsql/client` returns. Throws `invalid_option` for
 *  anything else. */
export function libsqlDriver(client: LibsqlClient): SqlDriverBase & SqlBatchDriver {
  check("libsqlDriver", client, ["batch", "execute"], "what createClient() of @libsql/client returns");
  const asked = ({ text, values }: SqlStatement) => ({ sql: text, args: values });
  return {
    dialect: "sqlite",
    query: async (statement) => (await client.execute(asked(statement))).rows,
    batch: async (statements) => (await client.batch(statements.map(asked), "write")).map(({ rows }) => rows),
  };
}

/** Driver of Cloudflare D1: of the binding, as in `env.DB`. A commit counts as synced, as Cloudflare confirms it. Throws
 *  `invalid_option` for anything but a binding. */
export function d1Driver(db: D1Binding): SqlDriverBase & SqlBatchDriver {
  check("d1Driver", db, ["batch", "prepare"], "the binding of a D1 database, as in env.DB");
  return {
    dialect: "sqlite",
    durable: "synced",
    async batch(statements) {
      const prepared = statements.map(({ text, values }) => db.prepare(text).bind(...values));
      return (await db.batch(prepared as never[])).map(({ results }) => results as SqlRow[]);
    },
  };
}

function check(name: string, connection: unknown, methods: readonly string[], what: string): void {
  const has = Object(connection) as Record<string, unknown>;
  if (methods.every((method) => typeof has[method] === "function")) return;
  throw new CompactionError("invalid_option", `\`${name}\` takes ${what}`, { field: "driver" });
}
