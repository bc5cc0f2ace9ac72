/** The sessions of a store in a thread, without opening them. */

import { byAge } from "./ages.js";
import { checkId } from "./arguments.js";
import { invalidOption } from "./checks.js";
import { CompactionError } from "./errors.js";
import { hostOf } from "./options.js";
import type { Quarters } from "./seat.js";
import { isStore } from "./store/given.js";
import type { SessionInfo, Store, Watermark } from "./types.js";
import { Watermarks } from "./watermark.js";

/** The host of an operation on a store without a session. */
export function hostOn(store: Store) {
  if (!isStore(store)) throw invalidOption("store", "must be a Store");
  const none = () => {
    throw new CompactionError("poisoned", "no message is counted here");
  };
  return { ...hostOf({ host: new Map() }, none), store };
}

export async function listIn(quarters: Quarters, store: Store): Promise<SessionInfo[]> {
  const host = hostOn(store);
  await quarters.started();
  return byAge(await quarters.drive<SessionInfo[]>((engine) => engine.listSessions(), host));
}

/** Throws unless it may be the id of a session that is to be deleted. */
export function checkGone(id: unknown): void {
  if (id === undefined) throw invalidOption("id", "must be that of the session: deleteSession(id, { store })");
  checkId(id);
}

export async function deleteIn(quarters: Quarters, id: string, store: Store, watermark: Watermark | undefined): Promise<void> {
  const host = hostOn(store);
  await quarters.started();
  const failed: string[] = [];
  const watermarks = new Watermarks(watermark, store, (message) => void failed.push(message));
  await quarters.drive<void>((engine) => engine.deleteSession(id, store.caps.maxBatchOps), { ...host, watermarks });
  await watermarks.settled();
  // A mark that outlives its session would be taken for a loss.
  if (failed[0]) throw new CompactionError("store_unavailable", `The session is deleted, but ${failed[0]}: call deleteSession again`);
}
