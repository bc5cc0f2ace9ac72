/** Kills of browsers and of Node under sessions that are written to. */

import { join } from "node:path";
import { root } from "../process.mjs";
import { countsOf } from "./counts.mjs";

/** Kills are of each engine; no engines are all that there are. */
export const usual = { kills: "100", engines: "", seed: "1" };

/** Resolves to the counts of each engine. */
export function run({ kills, engines, seed }, progress) {
  progress("kills");
  const env = { CC_KILLS: kills, CC_KILLS_SEED: seed, CC_ENGINES: engines };
  return countsOf(process.execPath, [join(root, "tests/soak/storage.mjs")], env);
}

export function told({ kills, seed }) {
  return { kills: Number(kills), seed: Number(seed) };
}
