/**
 * The simulated stores over many seeds: `CC_STORE_SEEDS` in all from `CC_STORE_SEED` on, of the stores `CC_STORES` or all.
 * Prints a line `count {…}` for each store, and what went wrong with how to run it again.
 */

import { runSeeds, shares } from "../support/sim-run.mjs";

const seeds = Number(process.env.CC_STORE_SEEDS ?? 1_000);
const seed = Number(process.env.CC_STORE_SEED ?? 1);
const chosen = process.env.CC_STORES?.split(";") ?? Object.keys(shares);
/** Seeds between two lines of progress. */
const EVERY = 1_000;

for (const store of chosen) {
  const count = Math.ceil(seeds * shares[store]);
  const started = Date.now();
  const progress = (done, failed) => {
    const took = Math.round((Date.now() - started) / 1_000);
    if (done % EVERY === 0) console.log(`${store}: ${done} of ${count} seeds, ${failed} failures, ${took} s`);
  };
  const { counts, failures } = await runSeeds(store, seed, count, progress);
  for (const failure of failures.slice(0, 10)) console.log(failure);
  const minutes = Number(((Date.now() - started) / 60_000).toFixed(1));
  const sorted = Object.fromEntries(Object.entries(counts).sort());
  console.log(`count ${JSON.stringify({ check: "stores", of: store, failures: failures.length, seeds: count, minutes, ...sorted })}`);
  if (failures.length > 0) process.exitCode = 1;
}
