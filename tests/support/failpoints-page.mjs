/** Failpoints over IndexedDB, in a page. */

import * as library from "./offload.mjs";
import { failpoints } from "./failpoints.mjs";

let places = 0;

/** A database of its own. What the disk is told is no part of what is tested: a kill does that. */
async function make() {
  const name = `failpoints-${places++}`;
  const opened = [];
  return {
    open() {
      opened.push(library.indexedDbStore({ name, durability: "relaxed" }));
      return opened.at(-1);
    },
    async remove() {
      await Promise.all(opened.map((store) => store.close()));
      indexedDB.deleteDatabase(name);
    },
  };
}

globalThis.sessions = {
  /** At commits alone: that nothing is written by reading is the same in every store, and Node tries it. */
  failpoints: (steps) => failpoints({ library, make, steps, methods: ["commit"] }),
};

await import("./remote.mjs");
