/** The sessions of a store, without opening them. */

import { checkOptions } from "./checks.js";
import { HERE } from "./here.js";
import { checkGone, deleteIn, listIn } from "./stored.js";
import type { SessionInfo, Store, Watermark } from "./types.js";

/** Lists the sessions of a store, oldest first, without opening them. Rejects with the errors of the store, and with
 *  `stage_unavailable` if the engine cannot be loaded. */
export async function listSessions(store: Store): Promise<SessionInfo[]> {
  return listIn(HERE, store);
}

/**
 * Deletes everything that a store has of the session `id`, without opening it, so that a damaged session can be deleted,
 * too. Does nothing if there is none. An open handle on it is `closed` from then on. Sessions that were begun from it
 * stay. `watermark`: the option `advanced.watermark` of the session, if it had one.
 *
 * Rejects with the errors of the store, and with `stage_unavailable` if the engine cannot be loaded. If interrupted, the
 * session is either whole or deleted; call again to remove the rest.
 */
export async function deleteSession(id: string, options: { store: Store; watermark?: Watermark }): Promise<void> {
  checkOptions(options, ["store", "watermark"]);
  checkGone(id);
  return deleteIn(HERE, id, options.store, options.watermark);
}
