/** Steps of a page that writes to a session until it, its browser or its storage is killed. */

import * as library from "context-compactor";
import { tell } from "./session-page.mjs";
import { read, write } from "./writer.mjs";

const store = () => library.indexedDbStore();

/** Chromium begins a database anew that it takes for damaged, and says so here alone. */
const { open } = IDBFactory.prototype;
IDBFactory.prototype.open = function (...values) {
  const request = open.apply(this, values);
  request.addEventListener("upgradeneeded", ({ dataLoss, dataLossMessage }) => {
    if (dataLoss === "total") void tell("/reset", dataLossMessage);
  });
  return request;
};

Object.assign(globalThis.sessions, {
  /** Does not wait for the end: the page does not live to see it. */
  write(options) {
    write({ ...options, library, store, tell }).catch((error) => tell("/broken", String(error?.stack ?? error)));
  },
  /** As text: what stands twice in it, as kept messages do, Firefox would hand over once. */
  read: async (options) => JSON.stringify(await read({ ...options, library, store })),
});
