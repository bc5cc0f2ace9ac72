/** Three layers: micro at every turn, auto at the threshold, manual with instructions (preset `layered`). */

import { openSession } from "context-compactor";
import { chatCommand } from "context-compactor/commands";
import { check, question, steps, summarize } from "./task.mjs";

const presetOptions = {
  ...{ compactableTools: ["read_file"], keepRecent: 3, clearMinTokens: 200, minSavings: 500, targetTokens: 500 },
  ...{ fixedReserve: 500, outputReserve: 500, maxRestoreFiles: 1, maxRestoreTokensPerFile: 200, maxRestoreTokensTotal: 200 },
};
let instructions = "";
const session = await openSession({
  preset: "layered",
  contextWindow: 4_000,
  maxOutputTokens: 500,
  presetOptions,
  background: false,
  summarize(request) {
    if (request.system.includes("exact times")) instructions = "the model was told to keep the exact times";
    return summarize(request);
  },
});
session.on("compact", ({ previousTokens, currentTokens }) => console.log(`a summary: ${previousTokens} → ${currentTokens} tokens`));

await session.append(question);
for (const step of steps()) {
  await session.append(...step);
  await session.prepare();
}
const { messages } = await session.prepare();
const isCleared = ({ content }) => content === "[Output compacted - re-read if needed]";
console.log(`micro: ${messages.filter(isCleared).length} old results cleared, ${messages.filter(({ role, content }) => role === "tool" && content.startsWith("12:00")).length} whole`);

console.log(`> /compact keep the exact times\n${(await chatCommand(session, "/compact keep the exact times", { locale: "en" })).text}`);
console.log(`manual: ${instructions}`);
await check(session);
await session.close();
