/** Kills of browsers, of Node and of workerd under sessions that are written to. */

import { join } from "node:path";
import { root } from "../process.mjs";
import { countsOf } from "./counts.mjs";

/** Kills are of each engine, `together` engines at once. */
export const usual = {
  kills: "200",
  engines: "chromium,chromium-sqlite,firefox,webkitgtk,file,workerd",
  seed: "1",
  together: "2",
};

/** Resolves to the counts of each engine. */
export async function run({ kills, engines, seed, together }, progress) {
  const waiting = engines.split(",");
  const checks = new Map(waiting.map((engine) => [engine, []]));
  const lane = async () => {
    for (let engine; (engine = waiting.shift()); ) {
      const env = { CC_KILLS: kills, CC_KILLS_SEED: seed, CC_ENGINES: engine };
      checks.set(engine, await countsOf(process.execPath, [join(root, "tests/soak/kills.mjs")], env));
      progress(`kills of ${engine} are over`);
    }
  };
  await Promise.all(Array.from({ length: Number(together) }, lane));
  return [...checks.values()].flat();
}

export function told({ kills, seed }) {
  return { kills: Number(kills), seed: Number(seed) };
}
