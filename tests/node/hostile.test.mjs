/**
 * Hostile text and sizes through the stores that Node has (fault 21). `CC_HOSTILE=1` takes 10^5 messages
 * and the largest results.
 */

import { after, describe, test } from "node:test";
import * as library from "../support/offload.mjs";
import { hostileCases } from "../support/hostile.mjs";
import { stores } from "../support/stores.mjs";

const whole = process.env.CC_HOSTILE === "1";
const options = whole ? { most: 100_000, large: true } : { most: 2_000 };

for (const [store, make] of Object.entries(stores)) {
  describe(`hostile text and sizes: ${store}`, () => {
    /** Places by name, each with what was written into it. */
    const places = new Map();
    const open = async (name) => {
      if (!places.has(name)) places.set(name, await make());
      return places.get(name).open();
    };
    after(async () => {
      for (const place of places.values()) await place.remove();
    });
    for (const { name, run } of hostileCases(library, open, options)) test(`${name} in ${store}`, run);
  });
}
