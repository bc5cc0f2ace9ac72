/** Where a session is kept when the app passes no store of its own. */

import { CompactionError } from "../errors.js";
import type { SessionEvents, SessionOptions, Store } from "../types.js";
import { isStore, noStore } from "./given.js";
import { memoryStore } from "./memory.js";

export interface StorePlace {
  readonly store: Store;
  /** Made here: closed with the last session that uses it. */
  readonly own: boolean;
  /** What to report of it. */
  readonly warning?: SessionEvents["warning"];
}

/** Sessions in memory that have a name, as long as the page or process: of one id there is one. */
let named: Store | undefined;

/** A place that may store nothing is one where nothing can be lost: memory takes over, and says so. An IndexedDB that
 *  fails otherwise may hold the session, so its error is thrown, as it is for a store that the app passes. Where there never
 *  is one, a session with a name would be empty again in the next process: that takes the app's word. */
export async function choosePlace({ store, id, parent }: Pick<SessionOptions, "store" | "id" | "parent">): Promise<StorePlace> {
  const isNamed = id !== undefined || parent !== undefined;
  if (store === "memory") return inMemory(isNamed);
  // A browser has it always, if only to refuse.
  if (store === undefined && !("indexedDB" in globalThis)) {
    if (isNamed) throw new CompactionError("store_unavailable", WITHOUT_STORE, { field: "store" });
    return inMemory(false);
  }
  if (store === undefined || store === "indexeddb") {
    const { isRefused, plainStore } = await database();
    const kept = plainStore({});
    try {
      await kept.read([["meta", "session"]]);
      return { store: kept, own: true };
    } catch (error) {
      await kept.close?.();
      if (!isRefused(error)) throw error;
      const why = (error as Error).message;
      const message = `${why}. The session is kept in memory and ends with this page or process: export what must stay`;
      return { ...inMemory(isNamed), warning: { code: "store_unavailable", message, durable: "none" } };
    }
  }
  if (isStore(store)) return { store, own: false };
  throw noStore(store);
}

/** IndexedDB is loaded where a session uses it: other stores are the app's. */
function database() {
  return import("./database.js").then(
    ({ isRefused, plainStore }) => ({ isRefused, plainStore }),
    (cause: unknown) => {
      const message = "store: what IndexedDB needs could not be loaded: try again, or pass indexedDbStore() to have it from the start";
      throw new CompactionError("store_unavailable", message, { field: "store", cause });
    },
  );
}

function inMemory(isNamed: boolean): StorePlace {
  return { store: isNamed ? (named ??= memoryStore()) : memoryStore(), own: true };
}

const WITHOUT_STORE =
  "store: there is no IndexedDB here, and a session with an id would be empty again in the next process. Give one: " +
  'fileStore("./sessions") of "context-compactor/node", sqlStore(driver) of "context-compactor/sql", ' +
  'redisStore(client) of "context-compactor/redis", durableObjectStore(ctx) of "context-compactor/cloudflare", a Store of your own, or store: "memory", which ends with the process';
