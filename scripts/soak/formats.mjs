/** The engine's properties over many more inputs than `npm test` takes. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { must, root, say } from "../process.mjs";
import { countsOf } from "./counts.mjs";

export const usual = {
  histories: "100000",
  seeds: "50000",
  cuts: "all",
  megabytes: "50",
  fuzzed: "500000",
  data: present(),
};

/** Resolves to the counts of every check. */
export async function run(wanted, progress) {
  const binaries = await build();
  const env = {
    CC_PROGRESS: "1",
    CC_HISTORIES: wanted.histories,
    CC_SIM_SEEDS: wanted.seeds,
    CC_CUTS: wanted.cuts,
    CC_DATA_SET: wanted.data,
  };
  const checks = [];
  for (const name of ["formats", "recorded", "summarisers", "simulation"]) {
    if (["recorded", "summarisers"].includes(name) && wanted.data === "none") continue;
    progress(name);
    checks.push(...(await countsOf(binaries[name], ["--nocapture", "--test-threads=1"], env)));
  }
  progress("tokenizer");
  const sizes = { CC_TOKENIZER_MEGABYTES: wanted.megabytes, CC_TOKENIZER_FUZZ: wanted.fuzzed };
  checks.push(...(await countsOf(process.execPath, [join(root, "tests/soak/tokenizer.mjs")], sizes)));
  return checks;
}

export function told({ histories, seeds, cuts, megabytes, fuzzed, data }) {
  const of = { histories, seeds, megabytes, fuzzed };
  return { ...Object.fromEntries(Object.entries(of).map(([name, text]) => [name, Number(text)])), cuts, data };
}

/** The fullest data set that is there. */
function present() {
  const data = process.env.CC_DATA ?? join(root, "../shared/data");
  return ["full", "core"].find((set) => existsSync(join(data, set))) ?? "none";
}

/** Builds the tests, optimised; resolves to the path of each by its name. */
async function build() {
  say("soak", "cargo test --profile soak --no-run");
  const args = ["test", "--package", "context-compactor-store-tests", "--profile", "soak", "--no-run"];
  const output = await must("cargo", [...args, "--message-format", "json-render-diagnostics"]);
  const artifacts = output.split("\n").filter((line) => line.startsWith("{"));
  const tests = artifacts.map((line) => JSON.parse(line)).filter(({ executable }) => executable);
  return Object.fromEntries(tests.map(({ target, executable }) => [target.name, executable]));
}
