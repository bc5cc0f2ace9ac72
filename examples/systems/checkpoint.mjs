/** Checkpoints that age and merge, a goal, and snapshots to go back to (preset `checkpoint`). */

import { openSession } from "context-compactor";
import { chatCommand } from "context-compactor/commands";
import { check, question, steps, summarize } from "./task.mjs";

const goal = {
  ...{ id: "month", description: "Name the days on which a job failed", priority: "high", status: "active" },
  ...{ checkpoints: [{ id: "read", description: "All logs are read", status: "pending" }], decisions: [], artifacts: [] },
};
const presetOptions = { preserveCount: 3, keepUserMessages: 2, mergeCount: 3, ageModerate: 1, ageCompact: 2, compactTokens: 60, moderateTokens: 120, detailedTokens: 300 };
const session = await openSession({ preset: "checkpoint", contextWindow: 8_000, maxOutputTokens: 1_000, presetOptions, background: false, goal, summarize });
session.on("compact", ({ previousTokens, currentTokens }) => console.log(`checkpoint: ${previousTokens} → ${currentTokens} tokens, ${session.context.checkpoints().length} in the context`));

/** The commands of the design, by those of the package. */
const ALIASES = { "/context snapshot": "/snapshot", "/context restore": "/restore", "/context list": "/restore" };
async function command(text) {
  const known = Object.keys(ALIASES).find((name) => text.startsWith(name));
  const { text: answer } = await chatCommand(session, known ? text.replace(known, ALIASES[known]) : text, { locale: "en" });
  console.log(`> ${text.replace(/snap_\w+/, "ID")}\n${answer.replaceAll(/\bsnap\w*_\w+|\b[0-9a-f-]{20,}\b/g, "ID")}`);
  return answer;
}

await session.append(question);
let day = 0;
let taken;
for (const step of steps()) {
  await session.append(...step);
  await session.prepare();
  if (++day === 15) taken = (await command("/context snapshot")).replace("Snapshot ", "");
}
await session.goal.applyMarkers("[CHECKPOINT] All logs are read - COMPLETED\n[DECISION] No job is restarted");
const { checkpoints, decisions } = session.goal.current;
console.log(`goal: ${checkpoints[0].status}, ${decisions.length} decision`);
console.log(`ages: ${session.context.checkpoints().map(({ level }) => level).join(" ")}`);

await command("/context list");
const before = (await session.prepare()).messages.length;
await command(`/context restore ${taken}`);
console.log(`the context is another one: ${(await session.prepare()).messages.length !== before}`);
await check(session);
await session.close();
