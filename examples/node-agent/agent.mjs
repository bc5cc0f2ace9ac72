/** An agent that reads a month of logs in a small window. Everything it does with its context is in this file. */

import { openSession } from "context-compactor";
import { validateHistory } from "context-compactor/history";
import { complete } from "./model.mjs";

const parameters = { type: "object", properties: { day: { type: "integer" } }, required: ["day"] };
const tools = [{ type: "function", function: { name: "read_log", description: "The log of a day", parameters } }];

function readLog({ day }) {
  const lines = Array.from({ length: 60 }, (_, minute) => `12:${String(minute).padStart(2, "0")} job ${day}-${minute} ok`);
  if (day % 9 === 0) lines[day] = `12:${day} job ${day}-${day} failed: disk full`;
  return lines.join("\n");
}

const session = await openSession({
  contextWindow: 5_000,
  maxOutputTokens: 500,
  async summarize({ system, messages, maxTokens }, { signal }) {
    const answer = await complete({ messages: [{ role: "system", content: system }, ...messages], maxTokens, signal });
    return answer.content;
  },
});
session.on("offload", ({ count, freedTokens }) => console.log(`  ${count} results offloaded: ${freedTokens} tokens`));
session.on("compact", ({ freedTokens }) => console.log(`  history summarised: ${freedTokens} tokens`));

await session.append(
  { role: "system", content: "You answer from the logs. Never guess." },
  { role: "user", content: "On which days of the month did a job fail?" },
);

for (;;) {
  const { messages, usage } = await session.prepare({ tools });
  console.log(`${usage.usedTokens} of ${usage.maxTokens} tokens`);
  const answer = await complete({ messages, tools });
  await session.append(answer);
  if (!answer.tool_calls) {
    console.log(answer.content);
    break;
  }
  for (const { id, function: call } of answer.tool_calls) {
    await session.append({ role: "tool", tool_call_id: id, content: readLog(JSON.parse(call.arguments)) });
  }
}

// Nothing is lost: every message has its fate, and what was offloaded can be read back.
const fates = {};
for (const { fate } of (await session.context.explain())) fates[fate] = (fates[fate] ?? 0) + 1;
const { messages } = await session.prepare();
console.log(fates, `valid: ${(await validateHistory(messages)).valid}`);
await session.close();
