/** Sessions in SQL databases (E6): on a PostgreSQL that is started here, through every driver of it. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { neon, neonConfig } from "@neondatabase/serverless";
import pg from "pg";
import { CompactionError, openSession } from "context-compactor";
import { d1Driver, libsqlDriver, neonDriver, pgDriver, postgresDriver, sqliteDriver, sqlStore } from "context-compactor/sql";
import { conformance, durability } from "../support/database-suite.mjs";
import { placesOn } from "../support/databases.mjs";
import { serveNeon } from "../support/neon.mjs";
import { missing, startPostgres } from "../support/servers.mjs";

const none = { expect: [], puts: [], deletes: [], durability: "strict" };
const KEY = ["meta", "a"];
const put = (store, value, expect = []) => store.commit({ ...none, expect, puts: [[KEY, value]] });

describe("E6 PostgreSQL", { skip: missing("postgres") }, () => {
  let server, pool;
  before(async () => {
    server = await startPostgres();
    pool = new pg.Pool({ ...server.at, max: 4 });
    pool.on("error", () => {});
  });
  after(async () => {
    await pool.end();
    await server.stop();
  });
  const at = () => server.at;

  for (const client of ["pg", "pg in lists", "postgres"]) conformance(client, () => placesOn(client, at())());

  durability("pg", { at, server: () => server, quick: "pg unsynced" });

  describe("E6 Neon over HTTP", () => {
    let served, sql;
    before(async () => {
      served = await serveNeon(pool);
      neonConfig.fetchEndpoint = served.url;
      sql = neon("postgresql://test:none@localhost/postgres");
    });
    after(() => served.close());
    let tables = 0;
    conformance("neon", async () => ({ open: () => sqlStore(neonDriver(sql), { table: `neon_${tables++}` }), remove: async () => {} }));
  });

  test("E5, E6 the program of docs/servers.md", async () => {
    const [, program] = /```js postgres\n([^]*?)```/.exec(readFileSync(new URL("../../docs/servers.md", import.meta.url), "utf8"));
    const folder = new URL("../../target/", import.meta.url);
    const file = new URL(`servers-${process.pid}.mjs`, folder);
    mkdirSync(folder, { recursive: true });
    // Its connections are closed, so that this process ends.
    writeFileSync(file, `${program}\nexport { connections, sessionFor, store };\n`);
    Object.assign(process.env, { PGHOST: server.at.host, PGUSER: server.at.user, PGDATABASE: server.at.database });
    try {
      const { send, sessionFor, store, connections } = await import(pathToFileURL(file.pathname).href);
      const ask = async (messages) => ({ role: "assistant", content: `${messages.length} messages` });
      assert.deepEqual(await send("t", "one", "Hello", ask), { role: "assistant", content: "1 messages" });
      assert.deepEqual(await send("t", "one", "Again", ask), { role: "assistant", content: "3 messages" });
      assert.deepEqual(await send("t", "two", "Hello", ask), { role: "assistant", content: "1 messages" });
      const session = await sessionFor(["t", "one"]);
      assert.equal(session.archive.durability, "synced");
      await session.close();
      const [, made] = /```sql\n([^]*?)```/.exec(readFileSync(new URL("../../docs/servers.md", import.meta.url), "utf8"));
      await connections.query(made.replaceAll("context_compactor", "by_hand"));
      const columns = async (table) => (await connections.query("SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position", [table])).rows;
      assert.deepEqual(await columns("by_hand"), await columns("context_compactor"));
      await put(sqlStore(pgDriver(connections), { table: "by_hand" }), Uint8Array.of(1));
      await store.close();
      await connections.end();
    } finally {
      rmSync(file);
    }
  });

  test("E6 what a commit survives is asked of the database", async () => {
    const durable = async (...settings) => {
      const asked = new pg.Pool({ ...server.at, max: 1, options: settings.map((setting) => `-c ${setting}`).join(" ") });
      const store = sqlStore(pgDriver(asked), { table: "asked" });
      assert.equal(store.caps.durable, "none");
      await store.read([KEY]);
      await asked.end();
      return store.caps.durable;
    };
    assert.equal(await durable(), "synced");
    assert.equal(await durable("synchronous_commit=local"), "synced");
    assert.equal(await durable("synchronous_commit=off"), "process");
    const told = sqlStore({ ...pgDriver(pool), durable: "process" }, { table: "asked" });
    const session = await openSession({ id: "a", store: told });
    assert.equal(session.archive.durability, "process");
    await session.close();
  });

  test("E6 transactions that are not serializable are refused", async () => {
    const loose = {
      dialect: "postgres",
      async transaction(work) {
        const client = await pool.connect();
        try {
          await client.query("BEGIN");
          return await work(async ({ text, values }) => (await client.query(text, values)).rows);
        } finally {
          await client.query("ROLLBACK");
          client.release();
        }
      },
    };
    const store = sqlStore(loose, { table: "loose" });
    await pool.query("CREATE TABLE loose (key BYTEA, part INTEGER, version BIGINT, size BIGINT, value BYTEA)");
    await pool.query("INSERT INTO loose VALUES ('', 0, 100, 0, '')");
    await assert.rejects(store.read([KEY]), { code: "invalid_option", field: "driver", message: /read committed.*SERIALIZABLE/ });
  });

  test("E6 who may not make the table uses one that is there", async () => {
    await pool.query("CREATE ROLE app LOGIN");
    const own = new pg.Pool({ ...server.at, user: "app", max: 1 });
    const store = sqlStore(pgDriver(own), { table: "granted" });
    await assert.rejects(store.read([KEY]), { code: "store_unavailable", message: /make the table beforehand.*GRANT|grant SELECT/ });
    await sqlStore(pgDriver(pool), { table: "granted" }).read([KEY]);
    await pool.query("GRANT SELECT, INSERT, UPDATE, DELETE ON granted TO app");
    await put(store, Uint8Array.of(7));
    assert.deepEqual(await store.read([KEY]), [Uint8Array.of(7)]);
    await own.end();
  });

  test("E6 a table in a schema of its own", async () => {
    await pool.query("CREATE SCHEMA chats");
    const store = sqlStore(pgDriver(pool), { table: "chats.kept" });
    await put(store, Uint8Array.of(1));
    await put(store, Uint8Array.of(2), [{ key: KEY, version: 1 }]);
    const { rows } = await pool.query("SELECT COUNT(*) AS count FROM chats.kept");
    assert.equal(rows[0].count, "2");
  });

  test("E6 values over 1 MiB are in parts, and none is left of one that was replaced", async () => {
    const store = sqlStore(pgDriver(pool), { table: "parts" });
    const parts = async () => (await pool.query("SELECT part FROM parts WHERE version <> 100 ORDER BY part")).rows.length;
    const big = new Uint8Array(3 * 1024 * 1024 + 5).map((_, i) => i * 31);
    await put(store, big);
    assert.equal(await parts(), 4);
    assert.deepEqual(await store.read([KEY]), [big]);
    assert.deepEqual(await store.scan(["meta"], { limit: 5, maxBytes: 1 }), [[KEY, big]]);
    await put(store, big.subarray(0, 1024 * 1024));
    assert.equal(await parts(), 1);
    await put(store, big);
    await store.commit({ ...none, deletes: [KEY] });
    assert.equal(await parts(), 0);
  });

  test("E6 stores that make one table at once, and a connection that breaks", async () => {
    const table = "raced";
    const stores = Array.from({ length: 4 }, () => sqlStore(pgDriver(pool), { table }));
    await Promise.all(stores.map((store, i) => store.commit({ ...none, puts: [[["meta", `${i}`], Uint8Array.of(i)]] })));
    assert.equal((await stores[0].scan(["meta"], { limit: 9, maxBytes: 9 })).length, 4);
    const { transaction } = pgDriver(pool);
    /** Ends the connection that a commit is about to use. */
    const cut = (when) => ({
      ...pgDriver(pool),
      transaction: (work) =>
        transaction(async (query) => {
          const end = async () => {
            const [{ pid }] = await query({ text: "SELECT pg_backend_pid() AS pid", values: [] });
            await pool.query("SELECT pg_terminate_backend($1)", [pid]);
            await new Promise((resolve) => setTimeout(resolve, 50));
          };
          if (when === "before") await end();
          const result = await work(query);
          if (when === "after") await end();
          return result;
        }),
    });
    // The first call asks the database, through a connection that holds.
    const commit = async (when) => {
      let driver = pgDriver(pool);
      const store = sqlStore({ dialect: "postgres", transaction: (work) => driver.transaction(work) }, { table });
      await store.read([KEY]);
      driver = cut(when);
      return put(store, Uint8Array.of(9));
    };
    await assert.rejects(commit("before"), { code: "store_unavailable", message: /nothing was written/ });
    await assert.rejects(commit("after"), { code: "indeterminate" });
    assert.deepEqual(await stores[0].read([KEY]), [undefined]);
  });
});

describe("E6 a driver", () => {
  /** A database that answers as it is told. */
  const scripted = (answer, more = {}) => {
    const store = sqlStore({
      dialect: "sqlite",
      durable: "synced",
      query: ({ text }) => (/SELECT version/.test(text) ? [{ version: 100 }] : answer(text)),
      batch: (statements) => statements.map(({ text }) => answer(text) ?? []),
      ...more,
    });
    return store;
  };
  const throwing = (error) => scripted(() => { throw error; });
  const failure = (message, more) => Object.assign(new Error(message), more);

  test("E6 what was in the way of another transaction is tried again", async () => {
    for (const error of [...["40001", "40P01", "23505", "42P07", "42710"].map((code) => failure("x", { code })), failure("database is locked"), failure("y", { cause: failure("x", { code: "SQLITE_BUSY" }) })]) {
      let left = 3;
      const store = scripted(() => {
        if (left-- > 0) throw error;
        return [];
      });
      await put(store, Uint8Array.of(1));
      assert.ok(left < 0);
    }
  });

  test("E6 what a database throws is a typed error, with it as its cause", async () => {
    for (const [error, code] of [
      [failure("SQLITE_FULL: database or disk is full"), "quota_exceeded"],
      [failure("no room", { code: "53100" }), "quota_exceeded"],
      [failure("string or blob too big: SQLITE_TOOBIG"), "too_large"],
      [failure("index row size exceeds", { code: "54000" }), "too_large"],
      [failure("database disk image is malformed"), "store_corrupt"],
      [failure("may not", { code: "42501" }), "store_unavailable"],
      [failure("attempt to write a readonly database", { code: "SQLITE_READONLY" }), "store_unavailable"],
      [failure("write EPIPE", { code: "EPIPE" }), "indeterminate"],
      [failure("terminating connection", { code: "57P01" }), "indeterminate"],
      [failure("disk I/O error", { code: "SQLITE_IOERR_FSYNC" }), "indeterminate"],
    ]) {
      await assert.rejects(put(throwing(error), Uint8Array.of(1)), (thrown) => {
        assert.ok(CompactionError.isInstance(thrown));
        assert.deepEqual([thrown.code, thrown.cause], [code, error], thrown.message);
        return true;
      });
    }
  });

  test("E6 a table of a later release, or of somebody else, is refused", async () => {
    const store = (version) => sqlStore({ dialect: "sqlite", durable: "synced", batch: (statements) => statements.map(() => [{ version }]) });
    await assert.rejects(store(200).read([KEY]), { code: "schema_too_new" });
    await assert.rejects(store("7").read([KEY]), { code: "store_corrupt" });
    await store("199").read([]);
  });

  test("E6 a call that failed to open is made again by the next, and a closed store is closed", async () => {
    let fails = true;
    const store = sqlStore({
      dialect: "sqlite",
      durable: "synced",
      batch(statements) {
        if (fails) throw new Error("the network is down");
        return statements.map(() => [{ version: 100 }]);
      },
    });
    await assert.rejects(store.read([KEY]), { code: "indeterminate" });
    fails = false;
    await store.read([]);
    await store.close();
    await assert.rejects(store.read([KEY]), { code: "closed" });
  });

  test("E6 wrong connections and options are refused with what to pass", () => {
    for (const [make, what] of [[pgDriver, /Pool of pg/], [postgresDriver, /postgres\(\)/], [neonDriver, /neon\(\)/], [sqliteDriver, /node:sqlite/], [libsqlDriver, /createClient/], [d1Driver, /env\.DB/]]) {
      for (const wrong of [undefined, {}, "postgres://"]) assert.throws(() => make(wrong), { code: "invalid_option", message: what });
    }
    for (const wrong of [undefined, {}, { dialect: "mysql", batch() {} }, { dialect: "sqlite" }]) {
      assert.throws(() => sqlStore(wrong), { code: "invalid_option", field: "driver" });
    }
    const driver = { dialect: "sqlite", batch: () => [] };
    for (const table of ["", "a-b", "a.b.c", "x; DROP TABLE y", 7]) {
      assert.throws(() => sqlStore(driver, { table }), { code: "invalid_option", field: "table" });
    }
    assert.throws(() => sqlStore(driver, { name: "x" }), { code: "invalid_option", field: "name" });
  });
});
