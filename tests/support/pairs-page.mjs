/** Steps of pages over stores that are copies of each other, as `pairs.mjs` calls them. */

import { exchange, summariser } from "./api.mjs";
import * as library from "./offload.mjs";

const TABLES = ["meta", "sessions", "log", "blobs", "views", "jobs"];
export const WHOLE = { limit: 100_000, maxBytes: Infinity };
const EXPECTED = ["meta", "sessions", "jobs"];

/** Sessions that are open, by the names of their stores. */
export const open = new Map();

export async function code(action) {
  try {
    await action();
    return "ok";
  } catch (error) {
    return error.code ?? String(error?.stack ?? error);
  }
}

/** Damages rows of a table of a database, behind the back of the store that has it; their number. What the store keeps of its
 *  own is under a text, and no row. */
export async function changeRows(name, table, isMeant = () => true) {
  const db = await new Promise((resolve, reject) => {
    const request = indexedDB.open(name);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => resolve(request.result);
  });
  try {
    let count = 0;
    const tx = db.transaction(TABLES, "readwrite");
    tx.objectStore(table).openCursor().onsuccess = ({ target: { result: cursor } }) => {
      if (!cursor) return;
      if (Array.isArray(cursor.key) && isMeant(cursor.key)) {
        cursor.update({ version: cursor.value.version, bytes: "no bytes" });
        count++;
      }
      cursor.continue();
    };
    await new Promise((resolve, reject) => {
      tx.oncomplete = resolve;
      tx.onabort = () => reject(tx.error);
    });
    return count;
  } finally {
    db.close();
  }
}

export function removeDatabase(name) {
  const request = indexedDB.deleteDatabase(name);
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve();
    request.onerror = () => reject(request.error);
  });
}

/** Every row of a store but the mirror's own, as text by key, with its version where a session expects that. */
async function rowsOf(store) {
  const rows = {};
  for (const table of TABLES) {
    for (const [key, value] of await store.scan([table], WHOLE)) {
      if (key[1] !== "mirror") rows[JSON.stringify(key)] = value.damaged ?? `${value}`;
    }
  }
  for (const key of Object.keys(rows)) {
    if (!EXPECTED.includes(JSON.parse(key)[0])) continue;
    for (let version = 1; ; version++) {
      if ((await code(() => store.commit({ expect: [{ key: JSON.parse(key), version }], puts: [], deletes: [], durability: "relaxed" }))) === "ok") {
        rows[key] += ` ${version}`;
        break;
      }
    }
  }
  await store.close();
  return rows;
}

const tell = (path, body) => fetch(path, { method: "POST", body: JSON.stringify(body) });

/** `stores` makes each kind by name, `copies` the two of a pair, `cases` are the suites of kinds. */
export function pairSteps(stores, copies, cases) {
  return {
    cases: (kind) => cases[kind].length,
    runCase: (kind, i) =>
      cases[kind][i].run().then(
        () => ({ name: cases[kind][i].name }),
        (error) => ({ name: cases[kind][i].name, error: String(error?.stack ?? error) }),
      ),

    async open(name, kind = "pair", id = "s") {
      const store = stores[kind](name);
      const session = await library.openSession({ id, store, contextWindow: 32_000, summarize: summariser() });
      const told = [];
      session.on("data-loss", ({ kind, reason }) => told.push({ kind, reason }));
      // What the browser may do when space runs out is not about copies.
      session.on("warning", ({ code, message }) => code !== "not_persisted" && told.push({ kind: code, reason: message }));
      const changes = [];
      session.on("change", (change) => changes.push(change));
      open.set(name, { store, session, told, changes });
      return session.archive.durability;
    },
    /** Appends exchanges from number `from` on; each is told at `/acknowledged` when it is stored. */
    async exchanges(name, from, count) {
      for (let nth = from; nth < from + count; nth++) {
        await open.get(name).session.append(...exchange(nth, 9_000));
        await tell("/acknowledged", nth);
      }
    },
    /** Appends texts one after the other: how long each took, in ms. */
    async texts(name, texts) {
      const waits = [];
      for (const content of texts) {
        const begun = performance.now();
        await open.get(name).session.append({ role: "user", content });
        waits.push(performance.now() - begun);
      }
      return waits;
    },
    async compact(name) {
      const { session } = open.get(name);
      await session.prepare();
      return (await session.compact()).success;
    },
    /** What the session has, once all rows were compared, and what was told since it was opened. As text: Firefox hands an
     *  object over once. */
    async look(name) {
      const { store, session, told } = open.get(name);
      const history = [];
      for await (const message of session.archive.history()) history.push(message);
      const { messages } = await session.prepare();
      const { lost } = (await store.check?.()) ?? { lost: 0 };
      await new Promise((resolve) => setTimeout(resolve, 20));
      return JSON.stringify({ history, prepared: messages, lost, told, ok: (await session.archive.verify()).ok });
    },
    /** How often it was told that another tab wrote, once it was. */
    async changes(name) {
      const { changes } = open.get(name);
      for (const until = Date.now() + 5_000; changes.length === 0 && Date.now() < until; ) await new Promise((resolve) => setTimeout(resolve, 5));
      return changes.length;
    },
    close: (name) => open.get(name).store.close(),

    /** Keys of rows that the copies do not have alike; whether they have any. */
    async differing(name) {
      const [one, two] = await Promise.all(copies(name).map(rowsOf));
      const keys = Object.keys({ ...one, ...two });
      return { rows: keys.length, differing: keys.filter((key) => one[key] !== two[key]) };
    },
  };
}
