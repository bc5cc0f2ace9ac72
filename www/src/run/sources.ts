import { CompactionError, detectFormat, estimateTokens, importSession, validateHistory } from "../engine.js";
import type { Format, Message } from "../engine.js";
import { isTranscript, parseHistory } from "../logic/import.js";
import { kindOf } from "../logic/messages.js";
import { WINDOW_OF, WINDOWS } from "./initial.js";
import type { SourceName } from "./types.js";

/** A history that was dropped, pasted or picked. */
export interface History {
  messages: Message[];
  format: Format;
  problems: { rule: string; index: number; message: string }[];
}

export async function recorded(name: SourceName): Promise<Message[]> {
  const response = await fetch(`${import.meta.env.BASE_URL}transcripts/${name === "own" ? "invoicing-run" : name}.json`);
  if (!response.ok) throw new Error(`The recorded run could not be loaded (${response.status}).`);
  return (await response.json()) as Message[];
}

/** Messages as JSON or JSON lines, a transcript of an agent, or an archive of this library. */
export async function readHistory(text: string): Promise<History> {
  const read = isTranscript(text) ? await ofTranscript(text) : await ofMessages(text);
  const { problems } = await validateHistory(read.messages, { format: read.format });
  return { ...read, problems };
}

async function ofMessages(text: string): Promise<Omit<History, "problems">> {
  const { messages } = parseHistory(text);
  return { messages, format: await formatOf(messages) };
}

async function ofTranscript(text: string): Promise<Omit<History, "problems">> {
  const session = await importSession(text, { store: "memory", logger: () => {} });
  try {
    const messages: Message[] = [];
    for await (const message of session.archive.history()) messages.push(message);
    return { messages, format: session.context.format };
  } finally {
    await session.close({ delete: true });
  }
}

/** Where no format fits, reading the messages as one of them says which message and field is at fault. */
async function formatOf(messages: Message[]): Promise<Format> {
  try {
    return await detectFormat(messages);
  } catch (error) {
    if (CompactionError.isInstance(error) && error.code === "unknown_format") {
      await validateHistory(messages, { format: "openai-chat" });
    }
    throw error;
  }
}

/** A window that the history outgrows early, and that holds what cannot be shortened. */
export function windowFor({ messages, format }: History): number {
  const sizes = messages.map((message) => ({ message, tokens: estimateTokens([message], { format }) }));
  const total = sizes.reduce((sum, { tokens }) => sum + tokens, 0);
  const largest = Math.max(0, ...sizes.filter(({ message }) => kindOf(message) !== "tool").map(({ tokens }) => tokens));
  const fitting = WINDOWS.filter((tokens) => tokens >= 2 * largest);
  const outgrown = fitting.filter((tokens) => tokens <= WINDOW_OF.own && tokens * 2 <= total);
  return outgrown.at(-1) ?? fitting[0] ?? WINDOWS[4];
}
