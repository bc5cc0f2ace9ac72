/** Two copies of a store under kills, power cuts, damage and lost copies, over many seeds. */

import { join } from "node:path";
import { root } from "../process.mjs";
import { countsOf } from "./counts.mjs";

export const usual = { seeds: "1000000" };

export function run({ seeds }) {
  return countsOf(process.execPath, [join(root, "tests/soak/mirror.mjs")], { CC_MIRROR_SEEDS: seeds });
}

export function told({ seeds }) {
  return { seeds: Number(seeds) };
}
