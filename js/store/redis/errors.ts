/** Typed errors for what clients of Redis throw: the server's answers begin with a word in capitals. */

import { CompactionError } from "../../errors.js";
import type { ErrorCode } from "../../errors.js";

function messageOf(error: unknown): string {
  const { message } = Object(error) as { message?: unknown };
  return typeof message === "string" ? message : String(error);
}

/** The server does not know the script: it was started anew. */
export function hasNoScript(error: unknown): boolean {
  return messageOf(error).startsWith("NOSCRIPT");
}

/** `isInDoubt`: what is missing is the answer to a commit. */
export function redisError(error: unknown, isInDoubt: boolean): CompactionError {
  if (CompactionError.isInstance(error)) return error;
  const text = messageOf(error);
  const make = (code: ErrorCode, advice: string) =>
    new CompactionError(code, `Redis failed (${text}): ${advice}`, { cause: error });
  switch (/^([A-Z]{3,})\b/.exec(text)?.[1]) {
    case "OOM":
      return make("quota_exceeded", "nothing was written and what is stored stays; raise `maxmemory` or delete sessions, then try again");
    case "WRONGTYPE":
      return make("store_corrupt", "a key of the store is used for something else; give the store another `prefix`");
    case undefined:
      if (isInDoubt) return make("indeterminate", "read again to see whether the batch was written");
      return make("store_unavailable", "nothing was written; try again");
    default:
      return make("store_unavailable", "nothing was written; try again");
  }
}
