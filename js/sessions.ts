/** The sessions of a store that are not open. */

import { drive, run } from "./driver.js";
import { CompactionError } from "./errors.js";
import { invalidOption } from "./checks.js";
import { hostOf } from "./options.js";
import type { SessionInfo, Store } from "./types.js";

/** What an operation on a store that is no session's is performed with. */
export function hostOn(store: Store) {
  if (typeof store !== "object" || typeof store?.commit !== "function") throw invalidOption("store", "must be a Store");
  const none = () => {
    throw new CompactionError("poisoned", "no message is counted here");
  };
  return { ...hostOf({ host: new Map() }, none), store };
}

/** Oldest first; of those of one moment, by id. */
export function byAge(sessions: SessionInfo[]): SessionInfo[] {
  return sessions.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
}

/** The sessions of a store, oldest first. */
export async function listSessions(store: Store): Promise<SessionInfo[]> {
  const host = hostOn(store);
  return byAge(await drive<SessionInfo[]>(run((engine) => engine.listSessions()), host));
}

/**
 * Puts the session called `id` back as it was before this release migrated it to its schema, for the release that wrote
 * it. Close it first; opening it migrates it again. Resolves to the number of the old schema. Throws `not_found` when it
 * has no backup, `conflict` when it went on since (`S5.18`).
 */
export async function restoreBackup(store: Store, id: string): Promise<number> {
  const host = hostOn(store);
  return drive<number>(run((engine) => engine.restoreBackup(String(id))), host);
}
