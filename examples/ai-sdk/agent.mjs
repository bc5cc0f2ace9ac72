/** An agent of the AI SDK in a small window. What is compacted is one line: `prepareStep`. */

import { convertToModelMessages, createUIMessageStream, jsonSchema, readUIMessageStream, streamText, tool } from "ai";
import { contextCompactor } from "context-compactor/ai-sdk";
import { model } from "./model.mjs";

function readLog({ day }) {
  const lines = Array.from({ length: 60 }, (_, minute) => `12:${String(minute).padStart(2, "0")} job ${day}-${minute} ok`);
  if (day % 9 === 0) lines[day] = `12:${day} job ${day}-${day} failed: disk full`;
  return lines.join("\n");
}

const inputSchema = jsonSchema({ type: "object", properties: { day: { type: "integer" } }, required: ["day"] });
const tools = { read_log: tool({ description: "The log of a day", inputSchema, execute: readLog }) };
const cc = contextCompactor({ contextWindow: 8_000, maxOutputTokens: 500 });

/** One turn of a chat: the answer, as a message of the UI, with a part for each compaction. */
async function answer(messages) {
  const stream = createUIMessageStream({
    async execute({ writer }) {
      const { prepareStep } = cc.with({ thread: "chat-1", writer });
      const prompt = await convertToModelMessages(messages);
      const result = streamText({ model, tools: { ...tools, ...cc.tools }, messages: prompt, prepareStep, stopWhen: () => false });
      writer.merge(result.toUIMessageStream());
    },
  });
  let message;
  for await (message of readUIMessageStream({ stream }));
  return message;
}

let chat = [];
for (const text of ["On which days of the month did a job fail?", "Are you sure?"]) {
  chat.push({ id: `user-${chat.length}`, role: "user", parts: [{ type: "text", text }] });
  chat.push(await answer(chat));
  chat = JSON.parse(JSON.stringify(chat)); // as it is in the app's database
}

for (const { role, parts } of chat) {
  for (const { type, text, data } of parts) {
    if (type === "text") console.log(`${role}: ${text}`);
    if (type === "data-compaction") console.log(`--- ${data.edits.join(", ")}: ${data.usedTokens} of ${data.maxTokens} tokens are used now ---`);
  }
}
console.log(`${model.prompts.length} calls, the largest prompt of ${Math.max(...model.prompts)} tokens`);

// Nothing is lost: the session has every message that was sent.
const session = await cc.session("chat-1");
console.log(`${(await session.context.explain()).length} messages in the log, valid: ${(await session.archive.verify()).ok}`);
await cc.close();
