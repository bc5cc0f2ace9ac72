/**
 * `npm run soak`: what takes too long for `npm test`, in parts, each with a report of its own in `bench/reports/`.
 * `formats` (`soak-formats.json`): the properties of every wire format over many more histories, every cut point of the
 * small set of transcripts and a sample of all of them, the small set as sessions through every preset with every
 * summariser, and the exact tokenizers against others over more texts. `kills` (`soak-kills.json`): browsers and
 * processes that are killed under sessions. `flips` (`soak-flips.json`): bits that flip in the files under sessions.
 * `simulation` (`soak-simulation.json`): the simulator over more seeds. `stores` (`soak-stores.json`): the stores on
 * simulated disks, databases and browsers over more seeds. `mirror` (`soak-mirror.json`): two copies of a store under joint
 * faults. Counts are shown as they come; a report is written when all of its part was run.
 *
 * `--only` one of them. For formats: `--histories N` for each format, `--cuts some|compacted|all` (of sessions too),
 * `--data core|full|none`, `--megabytes N` and `--fuzzed N` texts for each encoding. For kills: `--kills N` of each engine,
 * `--engines a,b`, `--together N` of them, `--seed N`. For flips: `--flips N`, `--databases N` of each browser, `--files a,b`
 * of which ones, `--seed N`. For the simulation and the mirror: `--seeds N`. For the stores: `--seeds N` in all, the first of
 * them `--from N`.
 * A run other than the whole one leaves its report as it is, unless `--report FILE` (with `--only`) says where to write.
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, relative } from "node:path";
import { parseArgs } from "node:util";
import { build as buildPackage } from "./build.mjs";
import { Problem, root, say, script } from "./process.mjs";
import { setup } from "./setup.mjs";
import * as flips from "./soak/flips.mjs";
import * as formats from "./soak/formats.mjs";
import * as kills from "./soak/kills.mjs";
import * as mirror from "./soak/mirror.mjs";
import * as simulation from "./soak/simulation.mjs";
import * as stores from "./soak/stores.mjs";

/** What can be run: `usual` numbers, how to `run` with them, and what of them is `told` in the report. */
const PARTS = { formats, kills, flips, simulation, stores, mirror };

await script(async () => {
  const names = Object.values(PARTS).flatMap(({ usual }) => Object.keys(usual));
  const { values: asked } = parseArgs({
    options: Object.fromEntries([...names, "only", "report"].map((name) => [name, { type: "string" }])),
  });
  const chosen = asked.only ? [asked.only] : Object.keys(PARTS);
  const unknown = chosen.find((name) => !(name in PARTS));
  if (unknown) throw new Problem(`soak: --only ${unknown}: there are ${Object.keys(PARTS).join(", ")}`);
  if (asked.report && !asked.only) throw new Problem("soak: --report needs --only: each part has a report of its own");
  const started = Date.now();
  await setup({ tools: true, browsers: chosen.includes("kills") || chosen.includes("flips") });
  await buildPackage();
  for (const name of chosen) {
    const { usual, run, told } = PARTS[name];
    const wanted = { ...usual, ...asked };
    const isWhole = Object.keys(usual).every((option) => wanted[option] === usual[option]);
    const checks = await run(wanted, (what) => say("soak", `${what} (${minutes(started)})`));
    const failures = checks.reduce((sum, { failures }) => sum + (failures ?? 0), 0);
    const file = asked.report ?? (isWhole ? join(root, `bench/reports/soak-${name}.json`) : undefined);
    if (file) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, written({ version: version(), ...told(wanted), failures, checks }));
      say("soak", `${relative(root, file)} written`);
    }
    const cores = availableParallelism();
    say("soak", `${name}: ${checks.length} checks, ${failures} failures, ${minutes(started)}, ${cores} cores`);
    if (failures > 0) process.exitCode = 1;
  }
});

function version() {
  const manifest = JSON.parse(readFileSync(join(root, "pkg/package.json"), "utf8"));
  return manifest.version;
}

/** A line for each check, so that differences are readable. */
function written({ checks, ...head }) {
  const lines = checks.map(({ check, of, ...counts }) => `    ${JSON.stringify({ check, of, ...counts })}`);
  return `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "checks": [\n${lines.join(",\n")}\n  ]\n}\n`;
}

function minutes(started) {
  return `${((Date.now() - started) / 60_000).toFixed(1)} min`;
}
