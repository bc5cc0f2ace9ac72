/** What an app gave as `store`. */

import { invalidOption } from "../checks.js";
import type { CompactionError } from "../errors.js";
import type { Store } from "../types.js";

export function isStore(store: unknown): store is Store {
  return typeof store === "object" && typeof (store as Store | null)?.commit === "function";
}

/** The error of what is no store, nor the name of one. */
export function noStore(store: unknown): CompactionError {
  const path = typeof store === "string" ? JSON.stringify(store) : '"./sessions"';
  const files = `; files are kept with fileStore(${path}) of "context-compactor/node"`;
  return invalidOption("store", `must be a Store, "memory" or "indexeddb"${files}`);
}
