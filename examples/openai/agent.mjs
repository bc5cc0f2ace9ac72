/** The loop of an agent, as it is written without compaction, but for `fetch`. */

import { once } from "node:events";
import OpenAI from "openai";
import { compactingFetch } from "context-compactor/fetch";
import { prompts, server } from "./server.mjs";

function readFile({ file }) {
  const lines = Array.from({ length: 60 }, (_, line) => `line ${line} of file ${file}: ok`);
  if (file % 9 === 0) lines[file] = `line ${file} of file ${file}: error: disk full`;
  return lines.join("\n");
}

server.listen(0, "127.0.0.1");
await once(server, "listening");

const fetch = compactingFetch({ contextWindow: 8_000, maxOutputTokens: 500, thread: "agent-1" });
const client = new OpenAI({ apiKey: "none", baseURL: `http://127.0.0.1:${server.address().port}/v1`, fetch });

const parameters = { type: "object", properties: { file: { type: "integer" } }, required: ["file"] };
const tools = [{ type: "function", function: { name: "read_file", description: "Reads a file", parameters } }];
const messages = [
  { role: "system", content: "You answer from the files. Never guess." },
  { role: "user", content: "Read the files 1 to 40. Which of them mention an error?" },
];
for (;;) {
  const { choices } = await client.chat.completions.create({ model: "gpt-5.5", messages, tools });
  const { message } = choices[0];
  messages.push(message);
  if (!message.tool_calls) break;
  for (const { id, function: call } of message.tool_calls) {
    messages.push({ role: "tool", tool_call_id: id, content: readFile(JSON.parse(call.arguments)) });
  }
}
console.log(messages.at(-1).content);
console.log(`${prompts.length} calls, the largest prompt of ${Math.max(...prompts)} tokens; the app has ${messages.length} messages`);

// Nothing is lost: the session has every message that was sent.
const session = await fetch.session("agent-1");
const fates = {};
for (const { fate } of await session.context.explain()) fates[fate] = (fates[fate] ?? 0) + 1;
console.log(fates, `valid: ${(await session.archive.verify()).ok}`);
await fetch.close();
server.close();
