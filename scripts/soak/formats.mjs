/** The engine's properties over many more inputs than `npm test` takes. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "../process.mjs";
import { buildTests } from "./build.mjs";
import { countsOf } from "./counts.mjs";

export const usual = {
  histories: "100000",
  cuts: "all",
  megabytes: "50",
  fuzzed: "500000",
  data: present(),
};

/** Resolves to the counts of every check. */
export async function run(wanted, progress) {
  const binaries = await buildTests(["formats", "recorded", "summarisers"]);
  const checks = [];
  const check = async (name, env, told = (counts) => counts) => {
    progress([name, ...Object.values(env)].join(", "));
    const counts = await countsOf(binaries[name], ["--nocapture", "--test-threads=1"], { CC_PROGRESS: "1", ...env });
    checks.push(...counts.map(told));
  };
  await check("formats", { CC_HISTORIES: wanted.histories });
  // Of the full set every cut point would take days: those that `npm test` samples are taken.
  const sets = { none: [], core: [["core", wanted.cuts]], full: [["core", wanted.cuts], ["full", "some"]] }[wanted.data];
  for (const [set, cuts] of sets) {
    const told = ({ check, of, ...counts }) => ({ check, of: `${of} (${set}, ${cuts} cuts)`, ...counts });
    for (const name of ["recorded", "summarisers"]) await check(name, { CC_DATA_SET: set, CC_CUTS: cuts }, told);
  }
  progress("tokenizer");
  const sizes = { CC_TOKENIZER_MEGABYTES: wanted.megabytes, CC_TOKENIZER_FUZZ: wanted.fuzzed };
  checks.push(...(await countsOf(process.execPath, [join(root, "tests/soak/tokenizer.mjs")], sizes)));
  return checks;
}

export function told({ histories, cuts, megabytes, fuzzed, data }) {
  const of = { histories, megabytes, fuzzed };
  return { ...Object.fromEntries(Object.entries(of).map(([name, text]) => [name, Number(text)])), cuts, data };
}

/** The fullest data set that is there. */
function present() {
  const data = process.env.CC_DATA ?? join(root, "../shared/data");
  return ["full", "core"].find((set) => existsSync(join(data, set))) ?? "none";
}
