/** The engine's properties over many more inputs than `npm test` takes. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "../process.mjs";
import { buildTests } from "./build.mjs";
import { countsOf } from "./counts.mjs";

export const usual = {
  histories: "100000",
  cuts: "compacted",
  megabytes: "50",
  fuzzed: "500000",
  data: present(),
};

/** Resolves to the counts of every check. */
export async function run(wanted, progress) {
  const tests = await buildTests();
  const checks = [];
  const check = async (name, env, told = {}) => {
    progress([name, ...Object.values(env)].join(", "));
    const counts = await countsOf(tests, ["--nocapture", "--test-threads=1", `${name}::`], { CC_PROGRESS: "1", ...env });
    checks.push(...counts.map((count) => ({ ...count, ...told })));
  };
  await check("formats", { CC_HISTORIES: wanted.histories });
  if (wanted.data !== "none") {
    await check("recorded", { CC_DATA_SET: wanted.data, CC_CUTS: wanted.cuts }, { data: wanted.data });
    // Every cut point of all of them takes a night.
    if (wanted.data === "core") await check("recorded", { CC_DATA_SET: "full", CC_CUTS: "some" }, { data: "full" });
    await check("summarisers", { CC_DATA_SET: wanted.data, CC_CUTS: "all" });
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

/** The small data set is compacted at every cut point, where there are any; the full one at some. */
function present() {
  return existsSync(join(process.env.CC_DATA ?? join(root, "../shared/data"), "core")) ? "core" : "none";
}
