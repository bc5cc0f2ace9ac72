/** An agent as it is written without compaction, but for its runner. */

import { once } from "node:events";
import { Agent, MemorySession, OpenAIProvider, Runner, tool } from "@openai/agents";
import { CompactingSession, contextCompactor } from "context-compactor/openai-agents";
import { prompts, server } from "./server.mjs";

function readFile({ file }) {
  const lines = Array.from({ length: 60 }, (_, line) => `line ${line} of file ${file}: ok`);
  if (file % 9 === 0) lines[file] = `line ${file} of file ${file}: error: disk full`;
  return lines.join("\n");
}

server.listen(0, "127.0.0.1");
await once(server, "listening");

const compactor = contextCompactor({ contextWindow: 8_000, maxOutputTokens: 500 });
const models = new OpenAIProvider({ apiKey: "none", baseURL: `http://127.0.0.1:${server.address().port}/v1` });
const runner = new Runner({ callModelInputFilter: compactor, modelProvider: compactor.modelProvider(models), tracingDisabled: true });

const parameters = { type: "object", properties: { file: { type: "integer" } }, required: ["file"], additionalProperties: false };
const agent = new Agent({
  name: "reader",
  instructions: "You answer from the files. Never guess.",
  model: "gpt-4.1",
  tools: [tool({ name: "read_file", description: "Reads a file", parameters, strict: false, execute: readFile }), ...compactor.tools],
});

// The conversation has the name of the session that is kept.
const kept = new MemorySession({ sessionId: "chat-1" });
for (const question of ["Read the files 1 to 40. Which of them mention an error?", "Are you sure?"]) {
  const { finalOutput } = await runner.run(agent, question, { session: new CompactingSession(kept), maxTurns: 50 });
  console.log(finalOutput);
}
console.log(`${prompts.length} calls, the largest prompt of ${Math.max(...prompts)} tokens; the session has ${(await kept.getItems()).length} items`);

// Nothing is lost: the session of the compactor has every item that was sent.
const session = await compactor.session("chat-1");
console.log(`${(await session.context.explain()).length} items in the log, valid: ${(await session.archive.verify()).ok}`);
await compactor.close();
server.close();
