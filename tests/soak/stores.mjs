/**
 * The simulated stores over many seeds: `CC_STORE_SEEDS` in all from `CC_STORE_SEED` on, of the stores `CC_STORES` or all.
 * Then, unless stores are named, all that a power cut may leave of a journal, page by page. Prints a line `count {…}` for
 * each, and what went wrong with how to run it again.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cutPages } from "../support/file-checks.mjs";
import { loadStore, QUICK } from "../support/file-store.mjs";
import { runSeeds, shares } from "../support/sim-run.mjs";

const seeds = Number(process.env.CC_STORE_SEEDS ?? 1_000);
const seed = Number(process.env.CC_STORE_SEED ?? 1);
const chosen = process.env.CC_STORES?.split(";") ?? Object.keys(shares);
/** With so many seeds, every way in which a power cut may leave the pages of a small journal is tried; with fewer, a share. */
const WHOLE = 100_000;
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

if (!process.env.CC_STORES) {
  const started = Date.now();
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-pages-"));
  const told = { check: "stores", of: "files, page by page", failures: 0 };
  try {
    Object.assign(told, await cutPages(await loadStore([QUICK]), folder, Math.max(1, Math.round(WHOLE / seeds))));
  } catch (error) {
    console.log(`files, page by page: ${error.message}`);
    told.failures = process.exitCode = 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  console.log(`count ${JSON.stringify({ ...told, minutes: Number(((Date.now() - started) / 60_000).toFixed(1)) })}`);
}
