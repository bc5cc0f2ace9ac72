/** Where a session is kept when the app passes no store of its own. */

import { invalidOption } from "../checks.js";
import type { SessionEvents, SessionOptions, Store } from "../types.js";
import { isRefused } from "./connection.js";
import { indexedDbStore } from "./indexeddb.js";
import { memoryStore } from "./memory.js";

export interface StorePlace {
  readonly store: Store;
  /** Made here: closed with the last session that uses it. */
  readonly own: boolean;
  /** What to tell of it. */
  readonly warning?: SessionEvents["warning"];
}

/** A place that may store nothing is one where nothing can be lost: memory takes over, and says so. An IndexedDB that
 *  fails otherwise may hold the session, so its error is thrown, as it is for a store that the app passes. */
export async function choosePlace(store: SessionOptions["store"]): Promise<StorePlace> {
  if (store === "memory") return { store: memoryStore(), own: true };
  if (store === undefined || store === "indexeddb") {
    const kept = indexedDbStore();
    try {
      await kept.read([["meta", "session"]]);
      return { store: kept, own: true };
    } catch (error) {
      await kept.close?.();
      if (!isRefused(error)) throw error;
      const why = (error as Error).message;
      const message = `${why}. The session is kept in memory and ends with this page or process: export what must stay`;
      return { store: memoryStore(), own: true, warning: { code: "store_unavailable", message, durable: "none" } };
    }
  }
  if (typeof store === "object" && typeof store?.commit === "function") return { store, own: false };
  throw invalidOption("store", 'must be a Store, "memory" or "indexeddb"');
}
