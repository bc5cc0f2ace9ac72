/** The prompt of a model of the AI SDK, which Mastra's models are too. */

import type { Message } from "../types.js";
import type { Fitted } from "./threads.js";

/** A message of such a prompt. */
export interface PromptMessage {
  role: string;
  content: unknown;
}

/** What is sent: the system prompt, with the goal, and what was prepared. */
export function promptOf(system: readonly PromptMessage[], { goal, prepared }: Fitted): PromptMessage[] {
  return [...system, ...(goal ? [{ role: "system", content: goal }] : []), ...prepared.messages.map(inParts)];
}

/** All but the system's words are parts there, which a message of ours may not have: behind a text, or where the log was lost. */
function inParts(message: Message): PromptMessage {
  const given = message as PromptMessage;
  if (given.role === "system" || typeof given.content !== "string") return given;
  return { ...given, content: [{ type: "text", text: given.content }] };
}
