/**
 * An app that opens no session: a row for each conversation, with its messages and the state of its compaction. Every call of the
 * model goes by the row. Run as a process, it answers once, as its first argument says.
 */

import pg from "pg";
import { compact, recallTools } from "context-compactor";
import { aiSdk } from "context-compactor/summarizers";
import { fileText, OPTIONS } from "./agents.mjs";
import { AI_SDKS } from "./ai-sdks.mjs";

export const TABLE = `CREATE TABLE chats (id text PRIMARY KEY, messages jsonb NOT NULL, compaction jsonb,
  changes int NOT NULL DEFAULT 0, bytes int NOT NULL DEFAULT 0)`;

/** What `state` takes of the row is counted beside it. */
const WRITE = `UPDATE chats SET compaction = $2, changes = changes + 1, bytes = greatest(bytes, octet_length($2::jsonb::text)) WHERE id = $1`;

export async function readChat(pool, id) {
  return (await pool.query("SELECT * FROM chats WHERE id = $1", [id])).rows[0];
}

/** A prompt for a model has parts, which summaries have not. */
function inParts(message) {
  const { role, content } = message;
  return role !== "system" && typeof content === "string" ? { ...message, content: [{ type: "text", text: content }] } : message;
}

/** Answers `text` in the chat `id`, or goes on with it, for at most `steps` calls of the model. Resolves to the answer. */
export async function answer(pool, { major, url, key, id, text, steps = 100, summarize, ...options }) {
  const { sdk, createOpenAI, system } = AI_SDKS[major];
  const plain = createOpenAI({ apiKey: key, baseURL: `${url}/v1` }).chat("small");
  const given = { ...OPTIONS, format: "ai-sdk", summarize: summarize ?? aiSdk(plain), ...options };
  let prompt;
  const transformParams = async ({ params }) => {
    ({ prompt } = params);
    const { compaction } = await readChat(pool, id);
    const { messages, state, changed } = await compact(prompt, { ...given, state: compaction });
    if (changed) await pool.query(WRITE, [id, state]);
    return { ...params, prompt: messages.map(inParts) };
  };
  const recall = (name) => async (input, { toolCallId }) => {
    const { handle } = await recallTools(prompt, (await readChat(pool, id)).compaction, { format: "ai-sdk" });
    const { content } = await handle({ type: "tool-call", toolCallId, toolName: name, input });
    return content[0].output.value;
  };
  const nth = { type: "object", properties: { nth: { type: "integer" } }, required: ["nth"] };
  const { definitions } = await recallTools([], null, { format: "ai-sdk" });
  const tools = {
    read_file: sdk.tool({ description: "Reads a file", inputSchema: sdk.jsonSchema(nth), execute: ({ nth }) => fileText(nth) }),
    ...Object.fromEntries(definitions.map(({ name, description, inputSchema }) => [name, sdk.tool({ description, inputSchema: sdk.jsonSchema(inputSchema), execute: recall(name) })])),
  };
  const model = sdk.wrapLanguageModel({ model: plain, middleware: { specificationVersion: major === "6" ? "v3" : "v4", transformParams } });
  const { messages } = await readChat(pool, id);
  if (text !== undefined) messages.push({ role: "user", content: text });
  const stopWhen = (sdk.isStepCount ?? sdk.stepCountIs)(steps);
  const { text: said, response, responseMessages = response.messages } = await sdk.generateText({ model, tools, [system]: "You read files.", messages, stopWhen, maxRetries: 0 });
  await pool.query("UPDATE chats SET messages = $2 WHERE id = $1", [id, JSON.stringify([...messages, ...responseMessages])]);
  return said;
}

if (process.argv[1] === import.meta.filename) {
  const { at, ...asked } = JSON.parse(process.argv[2]);
  const pool = new pg.Pool(at);
  console.log(await answer(pool, asked));
  await pool.end();
}
