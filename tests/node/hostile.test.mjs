/**
 * Hostile text and sizes through the stores that Node has (`storage.md`, fault 21). `CC_HOSTILE=1` takes 10^5 messages
 * and the largest results.
 */

import { describe, test } from "node:test";
import * as library from "context-compactor";
import { hostileCases } from "../support/hostile.mjs";

const whole = process.env.CC_HOSTILE === "1";

/** How each store is opened again: by name, with what was written into it. */
const STORES = {
  memory: () => {
    const stores = new Map();
    return (name) => {
      if (!stores.has(name)) stores.set(name, library.memoryStore());
      return { ...stores.get(name), close: undefined };
    };
  },
};

for (const [store, opener] of Object.entries(STORES)) {
  describe(`hostile text and sizes: ${store}`, () => {
    for (const { name, run } of hostileCases(library, opener(), whole ? { most: 100_000, large: true } : {})) {
      test(name, run);
    }
  });
}
