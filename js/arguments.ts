/** What the app hands to a session, checked, as the engine and the session want it. */

import { named } from "./advice.js";
import { invalidOption } from "./checks.js";
import { encode, isWellFormed } from "./codec.js";
import { CompactionError } from "./errors.js";
import type { SessionOptions } from "./types.js";

/** Ids with different lone surrogates would all become the same. */
export function checkId(id: unknown): void {
  if (id !== undefined && (typeof id !== "string" || id === "" || !isWellFormed(id))) {
    throw invalidOption("id", "must be a text that is well-formed and not empty");
  }
}

export function checkSystemPrompt(systemPrompt: unknown): void {
  if (systemPrompt !== undefined && typeof systemPrompt !== "string" && typeof systemPrompt !== "function") {
    throw invalidOption("systemPrompt", "must be a text or a function that returns one");
  }
}

/** The system prompt as it is now. */
export function systemPromptOf({ systemPrompt }: SessionOptions): string | undefined {
  let text: unknown;
  try {
    text = typeof systemPrompt === "function" ? systemPrompt() : systemPrompt;
  } catch (error) {
    throw invalidOption("systemPrompt", "the function threw", error);
  }
  if (text === undefined || typeof text === "string") return text;
  throw invalidOption("systemPrompt", `the function must return a text, and it returned ${named(text)}`);
}

/** JSON text of a model's call. It is read and not kept, but what cannot be kept cannot be in the history either. */
export function encodeCall(call: unknown): string {
  const wrong = "call: must be an object of plain data: a tool call as the model returned it";
  if (typeof call !== "object" || call === null) throw new CompactionError("invalid_message", wrong, { field: "call" });
  try {
    return encode(call, 0);
  } catch (cause) {
    throw new CompactionError("invalid_message", wrong, { field: "call", cause });
  }
}
