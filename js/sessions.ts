/** The sessions of a store, without opening them. */

import { checkId } from "./arguments.js";
import { checkOptions, invalidOption } from "./checks.js";
import { drive, run } from "./driver.js";
import { started } from "./engine.js";
import { CompactionError } from "./errors.js";
import { hostOf } from "./options.js";
import { Watermarks } from "./watermark.js";
import type { SessionInfo, Store, Watermark } from "./types.js";

/** The host of an operation on a store without a session. */
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

/** Lists the sessions of a store, oldest first, without opening them. Rejects with the errors of the store, and with
 *  `stage_unavailable` if the engine cannot be loaded. */
export async function listSessions(store: Store): Promise<SessionInfo[]> {
  const host = hostOn(store);
  await started();
  return byAge(await drive<SessionInfo[]>(run((engine) => engine.listSessions()), host));
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
  if (id === undefined) throw invalidOption("id", "must be that of the session: deleteSession(id, { store })");
  checkId(id);
  const { store, watermark } = options;
  const host = hostOn(store);
  await started();
  const failed: string[] = [];
  const watermarks = new Watermarks(watermark, store, (message) => void failed.push(message));
  await drive<void>(run((engine) => engine.deleteSession(id, store.caps.maxBatchOps)), { ...host, watermarks });
  await watermarks.settled();
  // A mark that outlives its session would be taken for a loss.
  if (failed[0]) throw new CompactionError("store_unavailable", `The session is deleted, but ${failed[0]}: call deleteSession again`);
}
