/** What `tests/browser/mirror.test.mjs` runs inside the page: sessions over two databases that are copies of each other. */

import * as library from "./offload.mjs";
import { changeRows, pairSteps, removeDatabase } from "./pairs-page.mjs";

const databasesOf = (pair) => [`${pair} a`, `${pair} b`];
const copies = (pair) => databasesOf(pair).map((name) => library.indexedDbStore({ name }));
const stores = { pair: (pair) => library.mirrorStore(...copies(pair)) };

let suites = 0;
const prefix = `suite-${Math.random()}-`;
const suite = library.storeConformance(async () => stores.pair(`${prefix}${suites++}`), {
  damage: async (store, key) => {
    const pair = store.name.slice(0, -2);
    for (const name of databasesOf(pair)) await changeRows(name, key[0], (found) => JSON.stringify(found) === JSON.stringify(key.slice(1)));
  },
});

globalThis.sessions = {
  ...pairSteps(stores, copies, { pair: suite }),
  damageTable: (pair, at, table) => changeRows(databasesOf(pair)[at], table),
  remove: (pair, at) => removeDatabase(databasesOf(pair)[at]),
};

await import("./remote.mjs");
