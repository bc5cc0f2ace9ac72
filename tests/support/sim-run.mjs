/** Many seeds of the simulated stores, one after the other. */

import { Program } from "./sim-world.mjs";
import { simulate } from "./sim-session.mjs";
import { SMALL } from "./sim-stores.mjs";

/** Each store, and its share of all seeds. */
export const shares = {
  file: 0.3,
  "file, encrypted": 0.1,
  durable: 0.2,
  "durable, encrypted": 0.1,
  indexeddb: 0.2,
  "indexeddb, encrypted": 0.1,
};

/** How one seed is run again. */
function again(store, seed) {
  return `CC_STORES="${store}" CC_STORE_SEED=${seed} CC_STORE_SEEDS=1 node --test tests/node/stores-simulation.test.mjs`;
}

/**
 * Runs `count` seeds of a store from `seed` on: the counts of what there was, and what went wrong, each with its seed.
 * `progress` gets how many are done.
 */
export async function runSeeds(store, seed, count, progress = () => {}) {
  const program = await Program.load(SMALL);
  const counts = {};
  const failures = [];
  const tell = (what, more = 1) => (counts[what] = (counts[what] ?? 0) + more);
  for (let nth = 0; nth < count; nth++) {
    await simulate(program, store, seed + nth, tell).catch((error) => {
      failures.push(`seed ${seed + nth} of ${store}: ${error?.stack?.includes(error.message) ? error.stack : `${error?.message}\n${error?.stack}`}\nagain with: ${again(store, seed + nth)}`);
    });
    progress(nth + 1, failures.length);
  }
  return { counts, failures };
}

/** The seed from `from` on, at most `most` of them, that fails with these `changes` of the sources; undefined when none does. */
export async function found({ store, kind, changes, from = 1 }, most) {
  const program = await Program.load([...SMALL, ...changes]);
  for (let seed = from; seed < from + most; seed++) {
    const error = await simulate(program, store, seed, () => {}, kind).catch((error) => error);
    if (error) return { seed, why: String(error.message).split("\n")[0] };
  }
  return undefined;
}
