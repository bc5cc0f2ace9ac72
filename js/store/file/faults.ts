/** What went wrong with a file, as typed errors. */

import { CompactionError } from "../../errors.js";

const FULL = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** The typed error for what the file system threw. */
export function fileError(error: unknown): CompactionError {
  if (CompactionError.isInstance(error)) return error;
  const { code = "", message = String(error) } = (error ?? {}) as { code?: string; message?: string };
  const make = (kind: CompactionError["code"], advice: string) =>
    new CompactionError(kind, `The store's files cannot be used (${message}): ${advice}`, { cause: error });
  if (FULL.has(code)) {
    return make("quota_exceeded", "nothing was written and what is stored stays; free space, then try again");
  }
  switch (code) {
    case "EROFS":
    case "EACCES":
    case "EPERM":
      return make("store_unavailable", "let this process write there, or choose another directory");
    case "ELOOP":
    case "EMLINK":
      return make("store_unavailable", "a symbolic link stands where a file of the store should; it is not followed");
    case "ENOTDIR":
    case "EEXIST":
      return make("store_unavailable", "name a directory");
    case "EMFILE":
    case "ENFILE":
      return make("store_unavailable", "too many files are open; close some, then try again");
    default:
      return make("store_unavailable", "nothing was written; try again, or choose another directory");
  }
}

/** The error of files that are not as they were written. */
export function corrupt(what: string, advice = ADVICE): CompactionError {
  return new CompactionError("store_corrupt", `The store's files are damaged: ${what}; nothing was changed. ${advice}`);
}

const ADVICE =
  "Put the directory back from a copy of it, or take out what can be read with salvage(store), and import that into a new one";

/** The error of a batch that may have been written. */
export function indeterminate(cause: unknown): CompactionError {
  const message = "The journal failed behind a write: read again to see whether the batch was written";
  return new CompactionError("indeterminate", message, { cause });
}
