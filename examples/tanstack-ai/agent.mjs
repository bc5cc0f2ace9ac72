/** A chat as it is written without compaction, but for its adapter and middleware, which the compactor gives. */

import { once } from "node:events";
import { chat, maxIterations, StreamProcessor, toolDefinition } from "@tanstack/ai";
import { createOpenaiChatCompletions } from "@tanstack/ai-openai";
import { contextCompactor } from "context-compactor/tanstack-ai";
import { prompts, server } from "./server.mjs";

function readFile({ file }) {
  const lines = Array.from({ length: 60 }, (_, line) => `line ${line} of file ${file}: ok`);
  if (file % 9 === 0) lines[file] = `line ${file} of file ${file}: error: disk full`;
  return lines.join("\n");
}

server.listen(0, "127.0.0.1");
await once(server, "listening");

const inputSchema = { type: "object", properties: { file: { type: "integer" } }, required: ["file"] };
const adapter = createOpenaiChatCompletions("gpt-4.1", "none", { baseURL: `http://127.0.0.1:${server.address().port}/v1` });
const compactor = contextCompactor({ contextWindow: 8_000, maxOutputTokens: 500 });

// What `useChat` does in a page.
const page = new StreamProcessor();
for (const question of ["Read the files 1 to 40. Which of them mention an error?", "Are you sure?"]) {
  page.addUserMessage(question);
  const stream = chat({
    ...compactor.with(adapter),
    messages: page.getMessages(),
    threadId: "chat-1",
    systemPrompts: ["You answer from the files. Never guess."],
    tools: [toolDefinition({ name: "read_file", description: "Reads a file", inputSchema }).server(readFile)],
    agentLoopStrategy: maxIterations(100),
  });
  await page.process(stream);
  console.log(page.getMessages().at(-1).parts.at(-1).content);
}
const results = page.getMessages().flatMap(({ parts }) => parts).filter(({ type }) => type === "tool-result");
console.log(`${prompts.length} calls, the largest prompt of ${Math.max(...prompts)} tokens; the page has ${results.length} results`);

// Nothing is lost: the session has every message that was sent.
const session = await compactor.session("chat-1");
console.log(`${(await session.context.explain()).length} messages in the log, valid: ${(await session.archive.verify()).ok}`);
await compactor.close();
server.close();
