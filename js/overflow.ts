/** Recognising a provider's "the prompt was too long" in whatever a client library made of it. */

import { checkOptions, invalidOption } from "./checks.js";
import { CompactionError } from "./errors.js";
import { CODES, MESSAGES, OTHER } from "./generated/overflow.js";

/** Where client libraries keep the provider's own error. */
const INSIDE = ["error", "data", "response", "body", "responseBody", "lastError", "cause"] as const;
const MAX_DEPTH = 6;

/**
 * Returns whether `error` is a provider's error for a prompt longer than the context window: then call `prepare({ force:
 * true })` and send again. `error` may be an error of a provider's client, an object with `status`, `code` and `message`,
 * a response body, or a text. False for everything else, errors of this library included. `patterns`: texts, in any
 * letter case, that the messages of other servers contain.
 */
export function isContextOverflow(error: unknown, options: { patterns?: readonly string[] } = {}): boolean {
  checkOptions(options, ["patterns"]);
  const { patterns = [] } = options;
  if (!Array.isArray(patterns) || !patterns.every((pattern) => typeof pattern === "string" && pattern !== "")) {
    throw invalidOption("patterns", "must be an array of texts that are not empty");
  }
  try {
    return says(error, 0, 0, patterns as string[]);
  } catch (problem) {
    if (CompactionError.isInstance(problem)) throw problem;
    // Something that cannot be looked into.
    return false;
  }
}

function says(error: unknown, outerStatus: number, depth: number, patterns: string[]): boolean {
  if (depth > MAX_DEPTH || CompactionError.isInstance(error)) return false;
  if (typeof error === "string") return ask(outerStatus, "", error, patterns);
  if (typeof error !== "object" || error === null) return false;
  const fields = error as Record<string, unknown>;
  const metadata = fields["$metadata"] as { httpStatusCode?: unknown } | undefined;
  const statuses = [fields["status"], fields["statusCode"], metadata?.httpStatusCode];
  const status = statuses.find((status) => Number.isInteger(status)) as number | undefined;
  const known = status ?? outerStatus;
  const message = typeof fields["message"] === "string" ? fields["message"] : "";
  const codes = [fields["code"], fields["type"]].filter((code) => typeof code === "string");
  return (
    [...codes, ""].some((code) => ask(known, code, message, patterns)) ||
    INSIDE.some((name) => says(fields[name], known, depth + 1, patterns))
  );
}

/** What the engine says of it, too (`crates/wire/src/provider/overflow.rs`). */
function ask(status: number, code: string, message: string, patterns: string[]): boolean {
  const text = message.toLowerCase();
  if (patterns.some((own) => text.includes(own.toLowerCase()))) return true;
  // Rate limits speak of tokens too, and a shorter prompt is not what they ask for.
  if (status === 429 || (status >= 500 && status < 600 && !saysSo(text))) return false;
  return status === 413 || CODES.includes(code.toLowerCase()) || saysSo(text);
}

/** `text` is in lower case. */
function saysSo(text: string): boolean {
  return MESSAGES.some((parts) => parts.every((part) => text.includes(part))) && !OTHER.some((other) => text.includes(other));
}
