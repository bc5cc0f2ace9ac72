/** What `storage.bench.mjs` runs inside a page: rounds of each way to write the same records, side by side. */

import { encryptedStore, indexedDbStore, openSession } from "context-compactor";

const TABLES = ["meta", "sessions", "log", "blobs", "views", "jobs"];
/** Of a record: text that compresses as a conversation does. */
const SIZE = 2_048;
const words = "The parser reads src/lib.rs, keeps its state in memory and answers with line 42. ";

function textOf(nth) {
  return `${nth} ${words.repeat(Math.ceil(SIZE / words.length))}`.slice(0, SIZE);
}

/** The least that IndexedDB can do: one strict transaction with a `put` for each record, and one for the head. */
async function bare(name) {
  const db = await new Promise((resolve, reject) => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => TABLES.forEach((table) => request.result.createObjectStore(table));
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  let next = 0;
  return (values) =>
    new Promise((resolve, reject) => {
      const tx = db.transaction(["sessions", "log"], "readwrite", { durability: "strict" });
      tx.objectStore("sessions").put(values[0].subarray(0, 300), ["s"]);
      for (const value of values) tx.objectStore("log").put(value, ["s", next++]);
      tx.oncomplete = () => resolve();
      tx.onabort = () => reject(tx.error);
    });
}

/** The commit of an append: the same rows, and the session's row must be the one that was read. */
function ours(store) {
  const key = ["sessions", "s"];
  let [next, version] = [0, 0];
  return async (values) => {
    const expect = [{ key, version: version || null }];
    const puts = [[key, values[0].subarray(0, 300)], ...values.map((value) => [["log", "s", next++], value])];
    await store.commit({ expect, puts, deletes: [], durability: "strict" });
    version++;
  };
}

async function appends(name) {
  const session = await openSession({ id: name, store: indexedDbStore({ name }) });
  return (texts) => session.append(...texts.map((content, i) => ({ role: i % 2 ? "assistant" : "user", content })));
}

let ways, batch;
let nth = 0;

globalThis.begin = async (records) => {
  const run = `bench-${Math.random()}`;
  const encryptionKey = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  batch = records;
  ways = {
    bare: await bare(`${run}-bare`),
    commit: ours(indexedDbStore({ name: `${run}-store` })),
    encrypted: ours(encryptedStore(indexedDbStore({ name: `${run}-encrypted` }), { encryptionKey })),
    append: await appends(`${run}-session`),
  };
};

/** ms for a batch by each way, of `times` batches one after the other. The order turns with the rounds. */
globalThis.measure = async (round, times) => {
  const order = Object.entries(ways);
  for (let i = 0; i < round % order.length; i++) order.push(order.shift());
  const encoder = new TextEncoder();
  const took = {};
  for (const [way, write] of order) {
    const handed = Array.from({ length: times }, () => Array.from({ length: batch }, () => textOf(nth++)));
    const values = way === "append" ? handed : handed.map((batch) => batch.map((text) => encoder.encode(text)));
    const from = performance.now();
    for (const value of values) await write(value);
    took[way] = (performance.now() - from) / times;
  }
  return took;
};
