/** Summarize early, digest results by the type of their tool, keep a session log (preset `factor3`). */

import { openSession } from "context-compactor";
import { withDocumentedNames } from "context-compactor/presets";
import { check, question, steps, summarize } from "./task.mjs";

const presetOptions = { processTools: { files: ["read_file"], search: ["search_logs"] }, targetTokens: 500 };
const session = await openSession({ preset: "factor3", contextWindow: 12_000, maxOutputTokens: 1_000, presetOptions, background: false, summarize });
session.on("compact", ({ previousTokens, currentTokens }) => console.log(`at half of the window: ${previousTokens} → ${currentTokens} tokens`));

await session.append(question);
// A search is digested to its hits: title, source, snippet.
const results = Array.from({ length: 8 }, (_, nth) => ({ title: `Log of day ${nth}`, url: `https://logs.test/${nth}`, snippet: "The jobs of the day are listed. ".repeat(60) }));
const call = { id: "call_s", type: "function", function: { name: "search_logs", arguments: '{"query":"failed"}' } };
const result = { role: "tool", tool_call_id: "call_s", content: JSON.stringify({ results }) };
await session.append({ role: "assistant", content: null, tool_calls: [call] }, result);
const { messages } = await session.prepare();
console.log(`digest: ${result.content.length} → ${messages.find(({ role }) => role === "tool").content.length} characters`);

for (const step of steps()) {
  await session.append(...step);
  await session.prepare();
}
console.log(withDocumentedNames(session).sessionLog());
await check(session);
await session.close();
