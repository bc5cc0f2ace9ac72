/** Sessions in SQLite through `node:sqlite` (E6): run by a Node that has it. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { DatabaseSync } from "node:sqlite";
import { sqliteDriver, sqlStore } from "context-compactor/sql";
import { conformance, durability } from "./database-suite.mjs";
import { lists, placesOn, sqliteFile } from "./databases.mjs";

let file;
before(async () => {
  file = await sqliteFile();
});
after(() => file.remove());

conformance("sqlite", () => placesOn("sqlite", file.at)());
/** better-sqlite3 has `reader`, and no `all` for statements without rows. */
function likeBetter(db) {
  const prepare = (text) => {
    const statement = db.prepare(text);
    const reader = statement.columns().length > 0;
    const all = (...values) => {
      if (reader) return statement.all(...values);
      throw new TypeError("This statement does not return data. Use run() instead");
    };
    return { reader, all, run: (...values) => statement.run(...values) };
  };
  return { prepare, exec: (text) => db.exec(text) };
}
let tables = 0;
conformance("by the interface of better-sqlite3", async () => {
  const db = new DatabaseSync(file.at);
  const table = `better${tables++}`;
  return { open: () => sqlStore(sqliteDriver(likeBetter(db)), { table }), remove: async () => db.close() };
});

durability("sqlite", { at: () => file.at, quick: "sqlite unsynced" });

test("E6 what a commit survives is asked of SQLite", async () => {
  const durable = async (path, ...pragmas) => {
    const db = new DatabaseSync(path);
    for (const pragma of pragmas) db.exec(`PRAGMA ${pragma}`);
    const store = sqlStore(sqliteDriver(db));
    assert.equal(store.caps.durable, "none");
    await store.read([]);
    db.close();
    return store.caps.durable;
  };
  assert.equal(await durable(":memory:"), "none");
  assert.equal(await durable(`${file.at}-2`, "journal_mode = DELETE", "synchronous = FULL"), "synced");
  assert.equal(await durable(`${file.at}-2`, "journal_mode = WAL", "synchronous = FULL"), "synced");
  assert.equal(await durable(`${file.at}-2`, "journal_mode = WAL", "synchronous = NORMAL"), "process");
  assert.equal(await durable(`${file.at}-2`, "journal_mode = DELETE", "synchronous = OFF"), "process");
  assert.equal(await durable(`${file.at}-2`, "journal_mode = MEMORY"), "none");
});

test("E6 transactions one statement after the other, on a connection of their own", async () => {
  const db = new DatabaseSync(`${file.at}-3`);
  const query = ({ text, values }) => db.prepare(text).all(...values);
  const transaction = async (work) => {
    db.exec("BEGIN IMMEDIATE");
    try {
      const result = await work(query);
      db.exec("COMMIT");
      return result;
    } catch (error) {
      db.exec("ROLLBACK");
      throw error;
    }
  };
  const store = sqlStore(lists({ dialect: "sqlite", transaction }));
  const batch = { expect: [{ key: ["meta", "a"], version: null }], puts: [[["meta", "a"], Uint8Array.of(1)]], deletes: [], durability: "strict" };
  await store.commit(batch);
  await assert.rejects(store.commit(batch), { code: "conflict", message: /version 1, not absent/ });
  db.close();
});
