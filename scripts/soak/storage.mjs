/** Kills of browsers, of Node and of workerd under sessions that are written to, and the simulator. */

import { join } from "node:path";
import { root } from "../process.mjs";
import { buildTests } from "./build.mjs";
import { countsOf } from "./counts.mjs";

/** Kills are of each engine, `together` engines at once; seeds are of the simulator. */
export const usual = {
  kills: "200",
  engines: "chromium,chromium-sqlite,firefox,file,workerd",
  seed: "1",
  together: "2",
  seeds: "1000000",
};

/** Resolves to the counts of each engine, and to those of the simulator. */
export async function run({ kills, engines, seed, together, seeds }, progress) {
  progress("kills");
  const waiting = kills === "0" ? [] : engines.split(",");
  const checks = new Map(waiting.map((engine) => [engine, []]));
  const lane = async () => {
    for (let engine; (engine = waiting.shift()); ) {
      const env = { CC_KILLS: kills, CC_KILLS_SEED: seed, CC_ENGINES: engine };
      checks.set(engine, await countsOf(process.execPath, [join(root, "tests/soak/storage.mjs")], env));
      progress(`kills of ${engine} are over`);
    }
  };
  await Promise.all(Array.from({ length: Number(together) }, lane));
  const killed = [...checks.values()].flat();
  if (seeds === "0") return killed;
  const { simulation } = await buildTests();
  progress("simulation");
  const env = { CC_PROGRESS: "1", CC_SIM_SEEDS: seeds };
  return [...killed, ...(await countsOf(simulation, ["--nocapture", "--test-threads=1"], env))];
}

export function told({ kills, seed, seeds }) {
  return { kills: Number(kills), seed: Number(seed), seeds: Number(seeds) };
}
