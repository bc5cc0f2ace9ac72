/**
 * The simulated stores over many seeds, on every core: `CC_STORE_SEEDS` in all from `CC_STORE_SEED` on, of the stores
 * `CC_STORES` or all. Unless stores are named, also all that a power cut may leave of a journal, page by page. Prints a line
 * `count {…}` for each, and what went wrong with how to run it again.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { cutPages } from "../support/file-checks.mjs";
import { loadStore, QUICK } from "../support/file-store.mjs";
import { runSeeds, shares } from "../support/sim-run.mjs";

const seeds = Number(process.env.CC_STORE_SEEDS ?? 1_000);
const seed = Number(process.env.CC_STORE_SEED ?? 1);
const chosen = process.env.CC_STORES?.split(";");
const PAGES = "files, page by page";
/** With so many seeds, every way in which a power cut may leave the pages of a small journal is tried; with fewer, a share. */
const WHOLE = 100_000;
/** Seeds between two lines of progress. */
const EVERY = 1_000;

if (isMainThread) await everyStore();
else parentPort.postMessage(await (workerData === PAGES ? everyCut() : everySeed(workerData)));

async function everyStore() {
  const left = chosen ?? [...Object.keys(shares).sort((one, other) => shares[other] - shares[one]), PAGES];
  const lane = async () => {
    for (let store = left.shift(); store !== undefined; store = left.shift()) {
      const started = Date.now();
      const { problems, ...counts } = await inWorker(store);
      for (const problem of problems) console.log(problem);
      const minutes = Number(((Date.now() - started) / 60_000).toFixed(1));
      console.log(`count ${JSON.stringify({ check: "stores", of: store, minutes, ...counts })}`);
      if (counts.failures > 0) process.exitCode = 1;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, lane));
}

/** A worker for each store: what killed processes of the simulation never end is gone with it. */
function inWorker(store) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: store });
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}

async function everySeed(store) {
  const count = Math.ceil(seeds * shares[store]);
  const started = Date.now();
  const progress = (done, failed) => {
    const took = Math.round((Date.now() - started) / 1_000);
    if (done % EVERY === 0) console.log(`${store}: ${done} of ${count} seeds, ${failed} failures, ${took} s`);
  };
  const { counts, failures } = await runSeeds(store, seed, count, progress);
  const sorted = Object.fromEntries(Object.entries(counts).sort());
  return { problems: failures.slice(0, 10), failures: failures.length, seeds: count, ...sorted };
}

async function everyCut() {
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-pages-"));
  try {
    const counts = await cutPages(await loadStore([QUICK]), folder, Math.max(1, Math.round(WHOLE / seeds)));
    return { problems: [], failures: 0, ...counts };
  } catch (error) {
    return { problems: [`${PAGES}: ${error.message}`], failures: 1 };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
