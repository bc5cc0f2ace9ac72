/** The store of Node: one directory, which any number of processes may have open. */

import { checkOptions, invalidOption } from "../../checks.js";
import type { Store } from "../../types.js";
import { NodeDirectory } from "./directory.js";
import { storeIn } from "./store.js";

/** Options of `fileStore`. */
export interface FileStoreOptions {
  /** `strict` (default): an `append` resolves when it is on the disk. `relaxed`: no commit waits for the disk, so the last
   *  ones survive a crash of the process, but not a power cut. */
  durability?: "strict" | "relaxed";
  /** The journal is rewritten when this many bytes of it, and at least half of it, belong to replaced or deleted values.
   *  At least 1. Default: 16 MiB. */
  rewriteBytes?: number;
}

/**
 * Stores sessions in files of `directory`, which is created if missing. Several processes of one machine may use it at
 * the same time; network file systems are not supported. Call `close` when it is no longer needed. Calls reject with
 * `store_unavailable`, `quota_exceeded` (the disk is full), `store_corrupt`, `schema_too_new`, and other errors of
 * stores.
 */
export function fileStore(directory: string, options: FileStoreOptions = {}): Store {
  if (typeof directory !== "string" || directory === "" || directory.includes("\0")) {
    throw invalidOption("directory", "must be the path of a directory");
  }
  checkOptions(options, ["durability", "rewriteBytes"]);
  return storeIn(() => NodeDirectory.open(directory), options);
}
