/** An agent as it is written without compaction, but for its middleware. */

import { once } from "node:events";
import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { compactionMiddleware } from "context-compactor/langchain";
import { prompts, server } from "./server.mjs";

function readFile({ file }) {
  const lines = Array.from({ length: 60 }, (_, line) => `line ${line} of file ${file}: ok`);
  if (file % 9 === 0) lines[file] = `line ${file} of file ${file}: error: disk full`;
  return lines.join("\n");
}

server.listen(0, "127.0.0.1");
await once(server, "listening");

const schema = { type: "object", properties: { file: { type: "integer" } }, required: ["file"] };
const compaction = compactionMiddleware({ contextWindow: 8_000, maxOutputTokens: 500 });
const agent = createAgent({
  model: new ChatOpenAI({ model: "gpt-4.1", apiKey: "none", configuration: { baseURL: `http://127.0.0.1:${server.address().port}/v1` } }),
  tools: [tool(readFile, { name: "read_file", description: "Reads a file", schema })],
  systemPrompt: "You answer from the files. Never guess.",
  middleware: [compaction],
  checkpointer: new MemorySaver(),
});

const config = { configurable: { thread_id: "chat-1" }, recursionLimit: 200 };
let messages;
for (const content of ["Read the files 1 to 40. Which of them mention an error?", "Are you sure?"]) {
  ({ messages } = await agent.invoke({ messages: [{ role: "user", content }] }, config));
  console.log(messages.at(-1).text);
}
console.log(`${prompts.length} calls, the largest prompt of ${Math.max(...prompts)} tokens; the state has ${messages.length} messages`);

// Nothing is lost: the session has every message that was sent.
const session = await compaction.session("chat-1");
console.log(`${(await session.context.explain()).length} messages in the log, valid: ${(await session.archive.verify()).ok}`);
await compaction.close();
server.close();
