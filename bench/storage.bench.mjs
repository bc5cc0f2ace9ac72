/**
 * What a durable commit costs beside the least that IndexedDB can do: a strict transaction with a bare `put` for each
 * record. In one page and one run, at the same durability; medians of rounds in which every way has its turn, and of the
 * ratios within a round, so that a machine with other work to do slows both sides of each ratio.
 *
 * `CC_BROWSERS=chrome` runs one browser.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { browsers } from "../tests/support/browser.mjs";
import { bundle } from "../tests/support/bundle.mjs";
import { launch, serve } from "../tests/support/session.mjs";

export const title = "Storage: batches of records of 2 KB, strict, beside a bare loop of puts";

const CASES = [
  { batch: 32, rounds: 32, times: 2 },
  { batch: 1, rounds: 32, times: 8 },
];
/** Rounds that do not count. */
const WARM_UP = 4;
const PAGE = `<!doctype html><title>bench</title><link rel="icon" href="data:,"><script type="module" src="/js/bench.js"></script>`;

export async function run() {
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-bench-"));
  await bundle(`import "./bench/storage/page.mjs";`, join(folder, "bench.js"));
  const server = await serve({ "/": PAGE, "/js/": folder });
  const rows = [];
  try {
    for (const name of process.env.CC_BROWSERS?.split(",") ?? browsers) {
      const session = await launch(name);
      try {
        for (const settings of CASES) {
          const { page } = await session.openPage(`${server.origin}/`);
          await page.waitForFunction(() => "measure" in globalThis);
          const load = loadavg()[0];
          const rounds = [];
          await page.evaluate((batch) => globalThis.begin(batch), settings.batch);
          for (let round = -WARM_UP; round < settings.rounds; round++) {
            const step = ({ round, times }) => globalThis.measure(round, times);
            const took = await page.evaluate(step, { round: round + WARM_UP, times: settings.times });
            if (round >= 0) rounds.push(took);
          }
          rows.push(rowOf(name, settings.batch, rounds, load));
          await page.close();
        }
      } finally {
        await session.close();
      }
    }
  } finally {
    await server.close();
    await rm(folder, { recursive: true });
  }
  return rows;
}

function rowOf(name, batch, rounds, load) {
  const ms = (way) => rounded(median(rounds.map((took) => took[way])));
  const ratio = (way) => rounded(median(rounds.map((took) => took[way] / took.bare)));
  return {
    case: `${name}, batch of ${batch}`,
    "bare loop (ms)": ms("bare"),
    "store.commit (ms)": ms("commit"),
    "session.append (ms)": ms("append"),
    "commit / bare": ratio("commit"),
    "append / bare": ratio("append"),
    "encrypted / bare": ratio("encrypted"),
    rounds: rounds.length,
    "load of the machine": rounded(load),
  };
}

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function rounded(number) {
  return Number(number.toPrecision(3));
}
