/**
 * `CC_MIRROR_SEEDS` seeds of two copies of a store, from `CC_MIRROR_FROM` on, on every core. Prints a line `count {…}` with how
 * long it ran, and the seeds that failed.
 */

import { availableParallelism } from "node:os";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { loadMirror, run } from "../support/mirror.mjs";

const PAGE = 500;

if (isMainThread) await everySeed();
else await onePage();

async function everySeed() {
  const seeds = Number(process.env.CC_MIRROR_SEEDS ?? 1_000_000);
  const first = Number(process.env.CC_MIRROR_FROM ?? 1);
  const started = Date.now();
  const sum = { seeds: 0, failures: 0 };
  let next = first;
  const lane = async () => {
    while (next < first + seeds) {
      const from = next;
      next += PAGE;
      const { counts, problems } = await page(from, Math.min(next, first + seeds));
      for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count;
      for (const problem of problems) console.log(problem);
      if (sum.seeds % 10_000 < PAGE) console.log(`mirror: ${sum.seeds} seeds, ${sum.failures} failures`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, lane));
  const minutes = Number(((Date.now() - started) / 60_000).toFixed(1));
  console.log(`count ${JSON.stringify({ check: "mirror", of: "two copies under joint faults", ...sum, minutes })}`);
  if (sum.failures > 0) process.exitCode = 1;
}

/** A worker of its own: what a killed process never ends is gone with it. */
function page(from, to) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { from, to } });
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}

async function onePage() {
  const { from, to } = workerData;
  const library = await loadMirror();
  const [counts, problems] = [{ seeds: 0, failures: 0 }, []];
  // An error that is thrown is not read: its stack need not be.
  Error.stackTraceLimit = 5;
  for (let seed = from; seed < to; seed++) {
    counts.seeds++;
    try {
      const found = await run(library, seed);
      for (const [name, count] of Object.entries(found)) counts[name] = (counts[name] ?? 0) + count;
    } catch (error) {
      counts.failures++;
      problems.push(`seed ${seed}: ${error.stack}`);
    }
  }
  parentPort.postMessage({ counts, problems });
}
