/**
 * Runs the benches: every file `*.bench.mjs` of this folder, or those named on the command line.
 *
 * A bench exports `title` and `run(options)`, which returns rows: flat objects whose first key names the case and whose
 * other keys carry their unit, as in `{ case: "1,000 messages", "plan (ms)": 3.2 }`; and, where figures need them,
 * `notes`, sentences on what they mean, and `plot(rows)`, an SVG. Rows are printed as a table and written to
 * out/NAME.json. With `--report` they are written to reports/NAME.json too, to be committed, and the plot to
 * reports/NAME.svg. `--endpoint URL --model NAME` is a model for those that ask one, by Chat Completions. `--data FILE` gives the
 * bench `search` questions of yours in place of the recorded ones, and `--policy NAME` is one of those that `torture` compares.
 */

import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { table } from "./table.mjs";

const here = new URL("./", import.meta.url);
const ending = ".bench.mjs";
const known = readdirSync(here)
  .filter((file) => file.endsWith(ending))
  .map((file) => file.slice(0, -ending.length))
  .sort();
const text = { type: "string" };
const options = { report: { type: "boolean" }, endpoint: text, model: text, data: text, policy: text };
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const wanted = positionals.length > 0 ? positionals : known;
const unknown = wanted.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  console.error(`no such bench: ${unknown.join(", ")}; there are: ${known.join(", ")}`);
  process.exit(1);
}

if (values.data !== undefined && (wanted.join() !== "search" || values.report)) {
  console.error("--data is for `npm run bench -- search` alone, and without --report");
  process.exit(1);
}

const out = new URL("out/", here);
const reports = new URL("reports/", here);
for (const folder of values.report ? [out, reports] : [out]) mkdirSync(folder, { recursive: true });
const host = { node: process.version, cpu: cpus()[0]?.model, cores: cpus().length };
for (const name of wanted) {
  const { title, notes, run, plot } = await import(new URL(name + ending, here));
  console.log(`\n${title}`);
  const rows = await run(values);
  console.log(table(rows));
  for (const note of notes ?? []) console.log(note);
  writeFileSync(new URL(`${name}.json`, out), `${JSON.stringify({ title, notes, host, rows }, null, 2)}\n`);
  if (values.report) {
    writeFileSync(new URL(`${name}.json`, reports), `${JSON.stringify({ title, notes, node: host.node, rows }, null, 2)}\n`);
    if (plot) writeFileSync(new URL(`${name}.svg`, reports), plot(rows));
  }
}
