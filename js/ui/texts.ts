/** What messages of any format say, for people. */

import type { Session } from "context-compactor";

/** Where formats keep what a message says, in the order in which it is read. */
const FIELDS = [
  ...["thought", "action", "reasoning", "thinking", "text", "refusal", "content", "parts", "summary", "tool_calls", "functionCall", "functionResponse"],
  ...["name", "toolName", "function", "arguments", "args", "input", "output", "value", "result", "response"],
];

/** The text of a message. */
function textOf(message: unknown): string {
  return said(message).trim();
}

function said(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return value === undefined || value === null ? "" : String(value);
  if (Array.isArray(value)) return joined(value);
  const fields = value as Record<string, unknown>;
  const text = joined(FIELDS.map((name) => fields[name]));
  if (text !== "") return text;
  // What is no text has a type at least; the arguments of a call are data in fields of their own.
  const { type, role } = fields;
  return typeof type === "string" ? `[${type}]` : typeof role === "string" ? "" : JSON.stringify(value);
}

const joined = (values: readonly unknown[]): string =>
  values
    .map(said)
    .filter((text) => text.trim() !== "")
    .join("\n");

/** What the messages of these indices say, as the archive has them. One that the store lost is missing. */
export async function textsAt(archive: Pick<Session["archive"], "history">, indices: ReadonlySet<number>): Promise<Map<number, string>> {
  const texts = new Map<number, string>();
  let at = 0;
  const onGap = ({ index, messages }: { index: number; messages: number }) => void (at = index + messages);
  for await (const message of archive.history({ onGap })) {
    if (indices.has(at)) texts.set(at, textOf(message));
    if (texts.size === indices.size) break;
    at++;
  }
  return texts;
}
