/** Steps of a page that writes to a session until it, its browser or its storage is killed. */

import * as library from "./offload.mjs";
import { tell } from "./session-page.mjs";
import { read, write } from "./writer.mjs";

const store = () => library.indexedDbStore();

/** Tells when the browser begins the database anew that it had before. Some do not even say that they lost it. */
const { open } = IDBFactory.prototype;
IDBFactory.prototype.open = function (...values) {
  const request = open.apply(this, values);
  request.addEventListener("upgradeneeded", ({ oldVersion, dataLoss }) => {
    if (oldVersion > 0 || values[0] !== store().name) return;
    if (localStorage.getItem("begun")) void tell("/reset", { dataLoss: dataLoss ?? "unknown" });
    localStorage.setItem("begun", "yes");
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

await import("./remote.mjs");
