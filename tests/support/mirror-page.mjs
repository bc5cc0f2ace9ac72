/** What `tests/browser/mirror.test.mjs` runs inside the page: sessions over two databases that are copies of each other. */

import * as library from "./offload.mjs";
import { exchange, summariser } from "./api.mjs";
import { tell } from "./session-page.mjs";

const TABLES = ["meta", "sessions", "log", "blobs", "views", "jobs"];
const EXPECTED = ["meta", "sessions", "jobs"];
const databasesOf = (pair) => [`${pair} a`, `${pair} b`];
const storeOf = (pair) => library.mirrorStore(...databasesOf(pair).map((name) => library.indexedDbStore({ name })));

const open = new Map();
let suites = 0;
const prefix = `suite-${Math.random()}-`;
const cases = library.storeConformance(async () => storeOf(`${prefix}${suites++}`), {
  damage: async (store, key) => {
    const pair = store.name.slice(0, -2);
    for (const at of [0, 1]) await changeRows(pair, at, key[0], (found) => JSON.stringify(found) === JSON.stringify(key.slice(1)));
  },
});

/** Calls `work` with a transaction of a database. */
async function transact(name, mode, work) {
  const db = await new Promise((resolve, reject) => {
    const request = indexedDB.open(name);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => resolve(request.result);
  });
  try {
    const tx = db.transaction(TABLES, mode);
    const ended = new Promise((resolve, reject) => {
      tx.oncomplete = resolve;
      tx.onabort = () => reject(tx.error);
    });
    work(tx);
    await ended;
  } finally {
    db.close();
  }
}

/** Damages rows of a table in one database, behind the back of the store that has it; their number. What the store keeps of
 *  its own is under a text, and no row. */
async function changeRows(pair, at, table, isMeant = () => true) {
  let count = 0;
  await transact(databasesOf(pair)[at], "readwrite", (tx) => {
    tx.objectStore(table).openCursor().onsuccess = ({ target: { result: cursor } }) => {
      if (!cursor) return;
      if (Array.isArray(cursor.key) && isMeant(cursor.key)) {
        cursor.update({ version: cursor.value.version, bytes: "no bytes" });
        count++;
      }
      cursor.continue();
    };
  });
  return count;
}

/** Every row of a database but the mirror's own, as text by key, with its version where a session expects that. */
async function rowsOf(name) {
  const rows = {};
  await transact(name, "readonly", (tx) => {
    for (const table of TABLES) {
      tx.objectStore(table).openCursor().onsuccess = ({ target: { result: cursor } }) => {
        if (!cursor) return;
        const { version, bytes } = cursor.value;
        if (Array.isArray(cursor.key) && cursor.key[0] !== "mirror") rows[JSON.stringify([table, ...cursor.key])] = `${EXPECTED.includes(table) ? version : ""} ${bytes}`;
        cursor.continue();
      };
    }
  });
  return rows;
}

Object.assign(globalThis.sessions, {
  cases: () => cases.length,
  runCase: (i) =>
    cases[i].run().then(
      () => ({ name: cases[i].name }),
      (error) => ({ name: cases[i].name, error: String(error?.stack ?? error) }),
    ),

  async openPair(pair) {
    const store = storeOf(pair);
    const session = await library.openSession({ id: "s", store, contextWindow: 32_000, summarize: summariser() });
    const told = [];
    session.on("data-loss", ({ kind, reason }) => told.push({ kind, reason }));
    // What the browser may do when space runs out is not about copies.
    session.on("warning", ({ code, message }) => code !== "not_persisted" && told.push({ kind: code, reason: message }));
    open.set(pair, { store, session, told });
  },

  /** Appends exchanges from number `from` on; each is told at `/acknowledged` when both copies have it. */
  async exchanges(pair, from, count) {
    for (let nth = from; nth < from + count; nth++) {
      await open.get(pair).session.append(...exchange(nth, 9_000));
      await tell("/acknowledged", nth);
    }
  },

  texts: async (pair, texts) => {
    for (const content of texts) await open.get(pair).session.append({ role: "user", content });
  },

  async compactPair(pair) {
    const { session } = open.get(pair);
    await session.prepare();
    return (await session.compact()).success;
  },

  /** What the session has, once all rows were compared, and what was told since it was opened. As text: Firefox hands an
   *  object over once. */
  async look(pair) {
    const { store, session, told } = open.get(pair);
    const history = [];
    for await (const message of session.archive.history()) history.push(message);
    const { messages } = await session.prepare();
    const { lost } = await store.check();
    await new Promise((resolve) => setTimeout(resolve, 20));
    return JSON.stringify({ history, prepared: messages, lost, told, ok: (await session.archive.verify()).ok });
  },

  /** Keys of rows that the databases do not have alike; whether they have any. */
  async differing(pair) {
    const [one, two] = await Promise.all(databasesOf(pair).map(rowsOf));
    const keys = Object.keys({ ...one, ...two });
    return { rows: keys.length, differing: keys.filter((key) => one[key] !== two[key]) };
  },

  closePair: (pair) => open.get(pair).store.close(),
  damageTable: changeRows,

  removeDatabase(pair, at) {
    const request = indexedDB.deleteDatabase(databasesOf(pair)[at]);
    return new Promise((resolve, reject) => {
      request.onsuccess = () => resolve();
      request.onerror = () => reject(request.error);
    });
  },
});
