/** Writes the recorded runs of the demo. The same sources give the same bytes: `node transcript/generate.mjs`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createConversation } from "./lib/conversation.mjs";
import { createInvoices, ledgerTotal } from "./lib/invoices.mjs";
import { createRandom } from "./lib/random.mjs";
import { createWorkspace } from "./lib/workspace.mjs";
import { orientation } from "./scenario/1-orientation.mjs";
import { rounding } from "./scenario/2-rounding.mjs";
import { flaky } from "./scenario/3-flaky.mjs";
import { migration } from "./scenario/4-migration.mjs";
import { release } from "./scenario/5-release.mjs";
import { rollout } from "./scenario/6-rollout.mjs";
import { queueTriage } from "./scenario/queue-triage.mjs";

const here = dirname(fileURLToPath(import.meta.url));

/** The main run, in the OpenAI chat format. */
export function invoicingRun() {
  const random = createRandom(2025);
  const ws = createWorkspace(join(here, "repo"));
  const run = createConversation(random);
  const invoices = createInvoices(random, 210);
  const sample = invoices.find(({ old, draft }) => ledgerTotal(old) !== old.total && !draft.reverseCharge);
  const story = { run, ws, random, invoices, sample };
  for (const act of [orientation, rounding, flaky, migration, release, rollout]) act(story);
  return run.messages;
}

/** One message a line: small enough to read in a diff. */
const serialise = (messages) => `[\n${messages.map((message) => JSON.stringify(message)).join(",\n")}\n]\n`;

export function transcripts() {
  return { "invoicing-run.json": serialise(invoicingRun()), "queue-triage.json": serialise(queueTriage()) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = join(here, "..", "public", "transcripts");
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(transcripts())) writeFileSync(join(folder, name), text);
}
