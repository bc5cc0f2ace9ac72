/** `mcp`: the recall tools over stored sessions, for any client of the Model Context Protocol, on standard input and output. */

import process from "node:process";
import { createInterface } from "node:readline";
import { CompactionError, listSessions, openSession, version, type SessionInfo, type Store } from "../entry/main.js";
import { EXIT } from "./exit.js";
import { existingFolderOf, withStore } from "./stored.js";
import type { Terminal } from "./terminal.js";
import { meant, type Given } from "./usage.js";

/** Versions of the protocol that are the same for a server of tools, newest first. */
const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;

const SESSION = { type: "string", description: "The session's id, from recall_sessions. The one that was used last when left out." };
const whole = (minimum: number, description: string): object => ({ type: "integer", minimum, description });

const tool = (name: string, title: string, description: string, properties: object, required: string[]): object => ({
  ...{ name, title, description },
  inputSchema: { type: "object", properties, required, additionalProperties: false },
  annotations: { readOnlyHint: true, openWorldHint: false },
});

const TOOLS = [
  tool(
    "recall_sessions",
    "List stored conversations",
    "Lists the stored conversations, those that were used last first: id, when it was used, and how many messages it has.",
    { limit: whole(1, "How many at most; 20 when left out.") },
    [],
  ),
  tool(
    "recall_search",
    "Search a stored conversation",
    "Searches everything that was said in a stored conversation and every tool result, also what its agent's context has no more. " +
      "Call it before you guess or redo something whose details (a path, an id, a number, an error, a decision) may be there. Answers " +
      'with the passages that match best, each with a reference for recall_read. "In your context" means: in that of the stored conversation.',
    {
      session: SESSION,
      query: { type: "string", description: "Words, names, paths or numbers that stand in the text you look for, as exactly as you know them." },
      limit: whole(1, "How many passages at most; 10 when left out."),
    },
    ["query"],
  ),
  tool(
    "recall_read",
    "Read from a stored conversation",
    "Reads text of a stored conversation in full: what recall_search found. A long text comes in parts: the last line of the answer says " +
      "how much of it was read and the offset at which to read on.",
    {
      session: SESSION,
      ref: { type: "string", description: "The reference (off_… or m104k), copied exactly. m104k..m106x reads the messages from one to the other." },
      offset: whole(0, "Character to begin at; 0, the beginning, when left out."),
      limit: whole(1, "How many characters to read at most; as many as suit a model when left out."),
    },
    ["ref"],
  ),
];

type Fields = Record<string, unknown>;

/** An error of the protocol. */
class Refused extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export function mcp(given: Given, _terminal: Terminal): Promise<number> {
  const folder = existingFolderOf(given);
  return withStore(folder, async (store) => {
    process.stderr.write(`context-compactor: serving the sessions in ${folder} to a client of the Model Context Protocol\n`);
    const running = new Set<Promise<void>>();
    for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
      if (line.trim() === "") continue;
      const answered: Promise<void> = answer(store, line).then((text) => {
        if (text !== undefined) process.stdout.write(`${text}\n`);
        running.delete(answered);
      });
      running.add(answered);
    }
    await Promise.all(running);
    return EXIT.fine;
  });
}

/** The answer to a message; none to a notification. */
async function answer(store: Store, line: string): Promise<string | undefined> {
  const reply = (id: unknown, body: object): string => JSON.stringify({ jsonrpc: "2.0", id, ...body });
  let request: Fields;
  try {
    request = JSON.parse(line) as Fields;
  } catch {
    return reply(null, { error: { code: -32700, message: "this line is no JSON" } });
  }
  const { id = null, method } = Object(request) as Fields;
  if (typeof method !== "string") return "result" in Object(request) || "error" in Object(request) ? undefined : reply(id, { error: { code: -32600, message: "this is no request" } });
  if (!("id" in request)) return undefined;
  try {
    return reply(id, { result: await resultOf(store, method, Object(request["params"]) as Fields) });
  } catch (error) {
    const { code, message } = error instanceof Refused ? error : { code: -32603, message: (error as Error).message };
    return reply(id, { error: { code, message } });
  }
}

async function resultOf(store: Store, method: string, params: Fields): Promise<object> {
  if (method === "ping") return {};
  if (method === "tools/list") return { tools: TOOLS };
  if (method === "tools/call") return called(store, params);
  if (method !== "initialize") throw new Refused(-32601, `there is no method ${method}`);
  const wanted = VERSIONS.find((one) => one === params["protocolVersion"]) ?? VERSIONS[0];
  const serverInfo = { name: "context-compactor", title: "Recall of stored conversations", version: version() };
  return { protocolVersion: wanted, capabilities: { tools: {} }, serverInfo };
}

/** The result of a tool; what went wrong is one too, so that the model can do it better. */
async function called(store: Store, { name, arguments: given }: Fields): Promise<object> {
  const known = (TOOLS as { name: string; inputSchema: { properties: object } }[]).find((one) => one.name === name);
  if (!known) throw new Refused(-32602, `there is no tool ${String(name)}`);
  const text = (content: string, isError = false): object => ({ content: [{ type: "text", text: content }], ...(isError ? { isError } : {}) });
  const { session: id, ...input } = Object(given ?? {}) as Fields;
  const names = Object.keys(known.inputSchema.properties);
  const wrong = Object.keys(Object(given ?? {}) as Fields).find((one) => !names.includes(one));
  if (wrong !== undefined) return text(`${known.name} has no argument ${wrong}; it has ${names.join(", ")}.`, true);
  try {
    const sessions = (await listSessions(store)).sort((a, b) => b.updatedAt - a.updatedAt);
    if (name === "recall_sessions") return listed(sessions, input["limit"], text);
    const session = id === undefined ? sessions[0] : sessions.find((one) => one.id === id);
    if (!session) return text(noSession(id, sessions), true);
    const open = await openSession({ id: session.id, store, mustExist: true, background: false, logger: () => {} });
    try {
      const call = { id: "call", type: "function" as const, function: { name: String(name), arguments: JSON.stringify(input) } };
      const { content } = (await open.recall.tools("openai-chat").handle(call)) as { content: unknown };
      return text(id === undefined ? `Session ${session.id}:\n${String(content)}` : String(content));
    } finally {
      await open.close();
    }
  } catch (error) {
    if (CompactionError.isInstance(error)) return text(`${error.message} (${error.code})`, true);
    throw error;
  }
}

function listed(sessions: readonly SessionInfo[], limit: unknown, text: (content: string, isError?: boolean) => object): object {
  if (limit !== undefined && !(Number.isInteger(limit) && (limit as number) > 0)) return text("limit must be a whole number from 1.", true);
  if (sessions.length === 0) return text("There is no stored conversation.");
  const shown = sessions.slice(0, (limit as number | undefined) ?? 20);
  const lines = shown.map(({ id, messages, updatedAt, format }) => `${id} · ${new Date(updatedAt).toISOString()} · ${messages} messages${format === undefined ? "" : ` · ${format}`}`);
  const more = sessions.length - shown.length;
  return text([...lines, ...(more > 0 ? [`… ${more} more`] : [])].join("\n"));
}

function noSession(id: unknown, sessions: readonly SessionInfo[]): string {
  if (sessions.length === 0) return "There is no stored conversation.";
  return `There is no session ${JSON.stringify(id)}${meant(String(id), sessions.map((one) => one.id))}; recall_sessions lists them.`;
}
