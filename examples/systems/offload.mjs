/** Offload first; when that frees too little, compact (preset `offload`). */

import { openSession } from "context-compactor";
import { chatCommand } from "context-compactor/commands";
import { withDocumentedNames } from "context-compactor/presets";
import { check, question, steps, summarize } from "./task.mjs";

const presetOptions = { offloadThreshold: 9_000, compactTriggerThreshold: 3_000, compactCooldownSteps: 2, targetTokens: 500 };
const session = await openSession({ preset: "offload", contextWindow: 16_000, maxOutputTokens: 1_000, presetOptions, summarize });
const documented = withDocumentedNames(session);
documented.on("offload", ({ count, freedTokens }) => console.log(`offload: ${count} results, ${freedTokens} tokens freed`));
documented.on("compact", ({ previousTokens, currentTokens, deletedFileCount }) => {
  console.log(`compact: ${previousTokens} → ${currentTokens} tokens, ${deletedFileCount} offloads deleted`);
});

await session.append(question);
for (const step of steps()) {
  await session.append(...step);
  await session.prepare(); // before each call of the model
}

for (const command of ["/context", "/compact"]) console.log(`> ${command}\n${(await chatCommand(session, command, { locale: "en" })).text}`);
await check(session);
await session.close();
