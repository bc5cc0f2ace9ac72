/** Bits that flip in the files under sessions. */

import { join } from "node:path";
import { root } from "../process.mjs";
import { countsOf } from "./counts.mjs";

/** `flips` in the files of a store, and as many `databases` of each browser with a flip of its own. */
export const usual = {
  flips: "1000",
  databases: "60",
  files: "file,file-encrypted,chromium,chromium-sqlite,firefox",
  seed: "1",
};

/** Resolves to the counts of each. */
export function run({ flips, databases, files, seed }) {
  const env = { CC_FLIPS: flips, CC_BROWSER_FLIPS: databases, CC_ENGINES: files, CC_FLIPS_SEED: seed };
  return countsOf(process.execPath, [join(root, "tests/soak/flips.mjs")], env);
}

export function told({ flips, databases, seed }) {
  return { flips: Number(flips), databases: Number(databases), seed: Number(seed) };
}
