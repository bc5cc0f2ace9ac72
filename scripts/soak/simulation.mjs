/** The simulator over many seeds: tabs on one session, and damage between two runs. */

import { buildTests } from "./build.mjs";
import { countsOf } from "./counts.mjs";

/** Seeds of each. */
export const usual = { seeds: "1000000" };

/** Resolves to the counts of both. */
export async function run({ seeds }) {
  const tests = await buildTests();
  const env = { CC_PROGRESS: "1", CC_SIM_SEEDS: seeds };
  return countsOf(tests, ["--nocapture", "--test-threads=1", "simulation::every_"], env);
}

export function told({ seeds }) {
  return { seeds: Number(seeds) };
}
