// Temporary: `node bench/variants.mjs HALF 5,1,2,3,4,6,7 [recall]`.
import { transcripts } from "../tests/support/transcripts.mjs";
import { LONG, SOURCES } from "./front.bench.mjs";
import { Known, Named } from "./front/named.mjs";
import { engine, replay } from "./front/replay.mjs";
const [half, variants, recall] = process.argv.slice(2);
const records = SOURCES.flatMap((name) => transcripts(name) ?? []);
const long = records.filter(({ messages }) => JSON.stringify(messages).length > LONG).filter((_, nth) => nth % 2 === Number(half));
const known = new Known();
const OTHERS = ["anthropic/pi_mono", "openai/codex_entirecontext", "openai/swe_agent_demos", "openai/openhands_logs", "openai/tau_customer_service"];
for (const record of [...records, ...OTHERS.flatMap((name) => transcripts(`full/${name}`) ?? [])]) known.add(record);
const total = (found, key) => found.reduce((sum, one) => sum + one[key], 0);
const run = async (policy, window) => {
  const found = [];
  for (const record of long) found.push(await replay(record.messages, policy, window, { names: new Named((name) => known.has(name, record)) }));
  return found;
};
const whole = await run(async () => {
  const messages = [];
  return { prompt: async (added) => (messages.push(...added), { messages: [...messages], edits: 0 }), end: async () => {} };
}, 200_000);
for (const variant of variants.split(",")) {
  const found = await run(engine(recall ? { recall: true } : {}), 200_000 + Number(variant));
  const share = (key) => ((100 * total(found, key)) / total(found, "calls")).toFixed(3);
  console.log(variant, "needs", share("either"), "runs", share("lost"), "names", share("named"), "cost", (total(found, "cost") / total(whole, "cost")).toFixed(3), "mean", Math.round(total(found, "tokens") / total(found, "calls")));
}
