/** Typed errors for what the platform throws, which has no codes of its own but in the text of its messages. */

import { CompactionError } from "../../errors.js";
import type { ErrorCode } from "../../errors.js";

/** For what SQLite or the object's storage threw before or inside a transaction: it was rolled back. */
export function storageError(error: unknown): CompactionError {
  if (CompactionError.isInstance(error)) return error;
  const text = messageOf(error);
  const make = (code: ErrorCode, advice: string) =>
    new CompactionError(code, `The Durable Object's storage failed (${text}): ${advice}`, { cause: error });
  switch (text.match(/\bSQLITE_([A-Z]+)/)?.[1]) {
    case "FULL":
      return make("quota_exceeded", FULL);
    case "TOOBIG":
      return make("too_large", "nothing was written; store it in smaller parts");
    case "CORRUPT":
    case "NOTADB":
      return make("store_corrupt", "restore the object to a point in time at which it was whole");
  }
  if (/^Exceeded allowed/i.test(text)) return make("quota_exceeded", FULL);
  if (/^SQL is not enabled/i.test(text)) return make("store_unavailable", "only a class with SQLite keeps sessions");
  return make("store_unavailable", "nothing was written; try again");
}

const FULL = "nothing was written and what is stored stays; delete sessions or raise the limit, then try again";

/** For `storage.sync()`: what was written before it may be there, or not. */
export function unconfirmed(error: unknown): CompactionError {
  return new CompactionError(
    "indeterminate",
    `The Durable Object's storage did not confirm a write (${messageOf(error)}): read again to see whether it is there`,
    { cause: error },
  );
}

/** For what a bucket threw. Its messages end in a number: `put: … (10058)`. */
export function objectError(what: string, error: unknown): CompactionError {
  if (CompactionError.isInstance(error)) return error;
  const text = messageOf(error);
  const make = (code: ErrorCode, advice: string) =>
    new CompactionError(code, `The bucket of big objects failed to ${what} (${text}): nothing was written; ${advice}`, {
      cause: error,
    });
  if (text.includes("(100100)")) return make("too_large", "store it in smaller parts");
  return make("store_unavailable", "try again");
}

function messageOf(error: unknown): string {
  const { message } = Object(error) as { message?: unknown };
  return typeof message === "string" ? message : String(error);
}
