/** Opening one IndexedDB database, whatever the engine makes of it: an answer, or a typed error in time. */

import { Deadline } from "../awake.js";
import { CompactionError } from "../errors.js";
import { TABLES } from "./keys.js";

/**
 * How long an engine may take. Chromium forgets an open request that meets the clearing of the site's data, and answers
 * this page nothing more until it is reloaded; a queue after another tab's upgrade has no event either.
 */
const OPEN_WAIT_MS = 10_000;
/** Other tabs close their connections at once when asked, if they ever do. */
const BLOCKED_WAIT_MS = 2_000;

export const WITHOUT = 'use `store: "memory"` or another store';

/** What is written to a database when it is made. */
export interface Identity {
  /** Random. */
  id: string;
  encrypted: boolean;
}

/** Where it is in `meta`: a text, so that it sorts before every row, and no scan meets it. */
export const IDENTITY = "database";

export interface Opened {
  db: IDBDatabase;
  /** It was made just now, and what Chromium says of one that was there before. */
  made?: { dataLoss: string | undefined };
}

/** Opens `name`, and makes it as `identity` where there is none; without a version, opens what is there. */
export function openDatabase(name: string, version: number | undefined, identity: Identity): Promise<Opened> {
  return new Promise((resolve, reject) => {
    if (!globalThis.indexedDB) {
      reject(new CompactionError("store_unavailable", `There is no IndexedDB here: ${WITHOUT}`));
      return;
    }
    const request = indexedDB.open(name, version);
    let ended = false;
    const end = (settle: () => void) => {
      ended = true;
      deadline.stop();
      settle();
    };
    let why = `did not open in ${OPEN_WAIT_MS / 1_000} s: close other tabs of this site, or reload this one, then try again`;
    const deadline = new Deadline(OPEN_WAIT_MS, () =>
      end(() => reject(new CompactionError("store_unavailable", `Database "${name}" ${why}`))),
    );

    request.onblocked = () => {
      deadline.set(BLOCKED_WAIT_MS);
      why = "is held by a tab with an older version: close that tab, then try again";
    };
    let made: Opened["made"];
    request.onupgradeneeded = (event) => {
      // Without a version, there was a database a moment ago: making one now would hide that it is gone.
      if (version === undefined) {
        request.transaction?.abort();
        return;
      }
      if (event.oldVersion === 0) made = { dataLoss: lossOf(event) };
      upgrade(request.result, request.transaction!, made && identity);
    };
    request.onsuccess = () => {
      const db = request.result;
      if (ended) db.close();
      else end(() => resolve(made ? { db, made } : { db }));
    };
    request.onerror = () => end(() => reject(request.error as Error));
  });
}

/** Makes missing tables, and in a new database says which one it is. */
function upgrade(db: IDBDatabase, tx: IDBTransaction, identity: Identity | undefined): void {
  for (const table of TABLES) if (!db.objectStoreNames.contains(table)) db.createObjectStore(table);
  if (identity) tx.objectStore("meta").put(identity, IDENTITY);
}

/** Chromium alone says so, when it found a database damaged and begins it again. */
function lossOf(event: IDBVersionChangeEvent): string | undefined {
  const { dataLoss, dataLossMessage } = event as { dataLoss?: unknown; dataLossMessage?: unknown };
  return dataLoss === "total" ? String(dataLossMessage || "damaged") : undefined;
}
