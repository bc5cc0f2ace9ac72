/** An agent as it is written without compaction, but for its processors. */

import { Agent } from "@mastra/core/agent";
import { MockMemory } from "@mastra/core/memory";
import { createTool } from "@mastra/core/tools";
import { ContextCompactor } from "context-compactor/mastra";
import { model } from "./model.mjs";

function readLog({ day }) {
  const lines = Array.from({ length: 60 }, (_, minute) => `12:${String(minute).padStart(2, "0")} job ${day}-${minute} ok`);
  if (day % 9 === 0) lines[day] = `12:${day} job ${day}-${day} failed: disk full`;
  return lines.join("\n");
}

const inputSchema = { type: "object", properties: { day: { type: "integer" } }, required: ["day"] };
const compactor = new ContextCompactor({ contextWindow: 8_000, maxOutputTokens: 500 });
const agent = new Agent({
  id: "reader",
  name: "reader",
  instructions: "You answer from the logs. Never guess.",
  model,
  tools: { read_log: createTool({ id: "read_log", description: "The log of a day", inputSchema, execute: async (input) => readLog(input) }) },
  memory: new MockMemory(),
  inputProcessors: [compactor],
  // "The prompt is too long": it is sent once more, with less.
  errorProcessors: [compactor],
  maxProcessorRetries: 1,
});

for (const question of ["On which days of the month did a job fail?", "Are you sure?"]) {
  const output = await agent.stream(question, { memory: { thread: "chat-1", resource: "ada" }, maxSteps: 50 });
  console.log(await output.text);
}
console.log(`${model.prompts.length} calls, the largest prompt of ${Math.max(...model.prompts)} tokens`);

// Nothing is lost: the session has every message that was sent.
const session = await compactor.session("chat-1");
console.log(`${(await session.context.explain()).length} messages in the log, valid: ${(await session.archive.verify()).ok}`);
await compactor.close();
