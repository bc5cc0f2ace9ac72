/**
 * The same four questions for every policy, on the same hard histories: was it ever stuck above the limit, was a request ever
 * invalid, was what the user forbade ever lost, and what did it cost? `--policy NAME` plays those whose name has NAME in it.
 */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { generated, recorded } from "./torture/histories.mjs";
import { endless, play } from "./torture/play.mjs";
import { policiesOf } from "./torture/policies.mjs";
import { rowOf, ruleRows } from "./torture/rows.mjs";
import { rulesOf } from "./torture/rules.mjs";

export const title = "Torture: four questions on hard histories";

/** What the histories are, and what the columns mean. */
export const notes = [];

const out = new URL("out/", import.meta.url);
const peers = fileURLToPath(new URL("engine/peers/", import.meta.url));
const NOTES = [
  "stuck: histories in which a call had a prompt above the limit (the window less 2,000 tokens for the answer, by OpenAI's tokenizer), or " +
    "none. One more attempt is given to those that take a refusal. invalid: by the provider's rules; strict: also by those that only " +
    "some servers enforce. lost: what the user forbade once is in no message of a prompt, word for word.",
  "A cell that begins with `does not say` is what happened where the library does not claim it.",
  "cost: over no compaction in an endless window with the provider's cache, where the model's summaries are good, of the calls that " +
    "the provider takes; summaries are paid for. over the optimum: of the rules alone, which know no messages, so that they answer the " +
    "first question and the last.",
  "asked: how often the model was asked for a summary that then was none, in the histories in which it fails, is empty or is too long.",
  "Rules are thresholds that others published for 200,000 tokens, in proportion to the window, with one operator: triggers, not products.",
];

export async function run({ policy: wanted = "", report } = {}) {
  if (wanted && report) throw new Error("a report is of all policies: leave out --policy or --report");
  await install();
  const histories = [...generated(), ...recorded()];
  const isWanted = ({ name }) => name.includes(wanted);
  const { policies, missing } = policiesOf();
  const chosen = policies.filter(isWanted);
  const rules = (await rulesOf()).filter(isWanted);
  if (chosen.length + rules.length === 0) throw new Error(`no policy has ${wanted} in its name`);
  const hasRecordings = histories.some(({ name }) => name.startsWith("recorded"));
  notes.push(
    ...histories.map(({ name, messages }, nth) => `history ${nth + 1}: ${name} (${messages.length} messages)`),
    ...(hasRecordings ? [] : ["skipped: no recordings (set CC_DATA)"]),
    ...missing.map((one) => `skipped: ${one}`),
    ...NOTES,
  );
  for (const line of notes.slice(0, -NOTES.length)) console.error(line);
  const bases = [];
  for (const history of histories) bases.push(await endless(history));
  const [rows, details] = [[], []];
  for (const policy of chosen) {
    const played = [];
    for (const [nth, history] of histories.entries()) played.push(await play(history, policy, bases[nth]));
    const row = rowOf(policy, played, histories);
    details.push({ policy: policy.name, by: policy.by, histories: played.map((one, nth) => ({ history: histories[nth].name, ...one })) });
    console.error(JSON.stringify(row));
    rows.push(row);
  }
  mkdirSync(out, { recursive: true });
  writeFileSync(new URL("torture.full.json", out), `${JSON.stringify(details, null, 2)}\n`);
  return [...rows, ...(await ruleRows(histories, rules))];
}

/** Installs the other libraries, where there is a registry. */
async function install() {
  if (existsSync(`${peers}node_modules/.package-lock.json`)) return;
  await promisify(execFile)("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], { cwd: peers }).catch((error) =>
    console.error(`not installed: ${error.message}`),
  );
}
