/** The chat on the server. Its messages are in a table, whole; what the model gets fits its window by `prepareStep`. */

import { createClient } from "@libsql/client";
import { consumeStream, convertToModelMessages, createIdGenerator, createUIMessageStream, createUIMessageStreamResponse, isStepCount, jsonSchema, streamText, tool } from "ai";
import { contextCompactor } from "context-compactor/ai-sdk";
import { libsqlDriver, sqlStore } from "context-compactor/sql";
import { model } from "./model.mjs";

const url = process.env.DATABASE_URL ?? "file:chats.db";
const database = createClient({ url });
await database.execute("PRAGMA journal_mode = WAL");
await database.execute("CREATE TABLE IF NOT EXISTS messages (nth INTEGER PRIMARY KEY, chat TEXT NOT NULL, id TEXT NOT NULL, message TEXT NOT NULL, UNIQUE (chat, id))");

// The sessions have a connection of their own.
const store = sqlStore(libsqlDriver(createClient({ url })));
const cc = contextCompactor({ contextWindow: 8_000, maxOutputTokens: 500, store });

function readLog({ day }) {
  const lines = Array.from({ length: 60 }, (_, minute) => `12:${String(minute).padStart(2, "0")} job ${day}-${minute} ok`);
  if (day % 9 === 0) lines[day] = `12:${day} job ${day}-${day} failed: disk full`;
  return lines.join("\n");
}

const inputSchema = jsonSchema({ type: "object", properties: { day: { type: "integer" } }, required: ["day"] });
const tools = { read_log: tool({ description: "The log of a day", inputSchema, execute: readLog }), ...cc.tools };

async function load(chat) {
  const { rows } = await database.execute({ sql: "SELECT message FROM messages WHERE chat = ? ORDER BY nth", args: [chat] });
  return rows.map(({ message }) => JSON.parse(message));
}

const save = (chat, message) =>
  database.execute({ sql: "INSERT INTO messages (chat, id, message) VALUES (?, ?, ?)", args: [chat, message.id, JSON.stringify(message)] });

/** The messages of a chat: `GET /api/chat?id=…`. */
export async function messagesOf(request) {
  return Response.json(await load(new URL(request.url).searchParams.get("id")));
}

/** Answers the newest message of a chat: `POST /api/chat`. */
export async function answer(request) {
  const { id, message } = await request.json();
  if (typeof id !== "string" || message?.role !== "user") return new Response("a message of the user is missing", { status: 400 });
  await save(id, message);
  const messages = await load(id);
  const stream = createUIMessageStream({
    originalMessages: messages,
    generateId: createIdGenerator({ prefix: "msg" }),
    async execute({ writer }) {
      const { prepareStep } = cc.with({ thread: id, writer });
      const result = streamText({ model, tools, messages: await convertToModelMessages(messages), prepareStep, stopWhen: isStepCount(100) });
      writer.merge(result.toUIMessageStream());
    },
    onEnd: ({ responseMessage }) => save(id, responseMessage),
  });
  // The answer is saved though the page may be gone.
  return createUIMessageStreamResponse({ stream, consumeSseStream: consumeStream });
}
