/** The stores on simulated disks, databases and browsers, over many seeds. */

import { join } from "node:path";
import { root } from "../process.mjs";
import { countsOf } from "./counts.mjs";

/** Seeds in all, from the first one on. */
export const usual = { seeds: "100000", from: "1" };

/** Resolves to the counts of each store. */
export async function run({ seeds, from }) {
  return countsOf(process.execPath, [join(root, "tests/soak/stores.mjs")], { CC_STORE_SEEDS: seeds, CC_STORE_SEED: from });
}

export function told({ seeds, from }) {
  return { seeds: Number(seeds), from: Number(from) };
}
