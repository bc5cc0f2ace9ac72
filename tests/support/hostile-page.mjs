/** What `tests/browser/hostile.test.mjs` runs inside the page. */

import * as library from "./offload.mjs";
import { hostileCases } from "./hostile.mjs";

/** How each store is opened again: by name, with what was written into it. */
const STORES = {
  indexeddb: (name) => library.indexedDbStore({ name }),
};

globalThis.hostile = {
  names: (options) => Object.keys(STORES).flatMap((store) => cases(store, options).map(({ name }) => [store, name])),

  /** What went wrong with a case. */
  async run(store, name, options) {
    const found = cases(store, options).find((found) => found.name === name);
    return found.run().then(
      () => null,
      (error) => String(error?.stack ?? error),
    );
  },
};

function cases(store, options) {
  return hostileCases(library, STORES[store], options);
}
