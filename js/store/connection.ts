/** The connection to one IndexedDB database: opened when needed, given up when the browser takes it away. */

import { CompactionError } from "../errors.js";
import { TABLES } from "./keys.js";

/** Versions 100 to 199 can be read and written by every release that knows one of them. */
const SCHEMA = 100;
const SCHEMA_END = 200;
/** Engines have left an open request without any event; a queue behind another tab's upgrade has none either. */
const OPEN_WAIT_MS = 10_000;
/** Other tabs close their connections at once when asked, if they ever do. */
const BLOCKED_WAIT_MS = 2_000;

const WITHOUT = 'use `store: "memory"` or another store';

export class Connection {
  readonly #name: string;
  #opening: Promise<IDBDatabase> | undefined;
  #db: IDBDatabase | undefined;
  #closed = false;

  constructor(name: string) {
    this.#name = name;
  }

  /** The open database; opens it when there is none. Rejects with `store_unavailable`, `schema_too_new` or `closed`. */
  open(): Promise<IDBDatabase> {
    if (this.#closed) {
      return Promise.reject(new CompactionError("closed", "The store was closed: make a new one"));
    }
    if (this.#opening) return this.#opening;
    const opening = this.#openCompatible();
    this.#opening = opening;
    opening.then(
      (db) => {
        this.#db = db;
        // A tab that keeps its connection would block the other tab's upgrade for ever.
        db.onversionchange = () => this.drop(db);
        db.onclose = () => this.drop(db);
      },
      () => (this.#opening = undefined),
    );
    return opening;
  }

  /** Gives `db` up, so that the next operation opens a new connection. Its running transactions still end. */
  drop(db: IDBDatabase): void {
    db.onversionchange = db.onclose = null;
    db.close();
    if (this.#db === db) this.#db = this.#opening = undefined;
  }

  /** Gives `db` up after a failure. A closed connection fires no `close` event, but its transactions wait for one. */
  lose(db: IDBDatabase): void {
    this.drop(db);
    db.dispatchEvent(new Event("close"));
  }

  async close(): Promise<void> {
    this.#closed = true;
    const db = await this.#opening?.catch(() => undefined);
    if (db) this.drop(db);
  }

  /** Asks for our version; a database that a newer compatible release made is opened as it is. */
  async #openCompatible(): Promise<IDBDatabase> {
    try {
      return await openDatabase(this.#name, SCHEMA);
    } catch (error) {
      if ((error as Error | null)?.name !== "VersionError") throw storeError(error);
    }
    const db = await openDatabase(this.#name).catch((error: unknown) => Promise.reject(storeError(error)));
    if (db.version < SCHEMA_END) return db;
    db.close();
    throw new CompactionError(
      "schema_too_new",
      `Database "${this.#name}" has schema ${db.version}, this release reads ${SCHEMA} to ${SCHEMA_END - 1}: reload or update the app`,
    );
  }
}

/** Opens `name` and makes missing tables; without `version`, opens what is there. Rejects with the engine's error. */
function openDatabase(name: string, version?: number): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    if (!globalThis.indexedDB) {
      reject(new CompactionError("store_unavailable", `There is no IndexedDB here: ${WITHOUT}`));
      return;
    }
    const request = indexedDB.open(name, version);
    let abandoned = false;
    const abandonAfter = (wait: number, why: string) =>
      setTimeout(() => {
        abandoned = true;
        reject(new CompactionError("store_unavailable", `Database "${name}" ${why}`));
      }, wait);
    let timer = abandonAfter(
      OPEN_WAIT_MS,
      "did not open in 10 s: close other tabs of this site, then try again",
    );
    request.onblocked = () => {
      clearTimeout(timer);
      timer = abandonAfter(
        BLOCKED_WAIT_MS,
        "is held by a tab with an older version: close that tab, then try again",
      );
    };
    request.onupgradeneeded = () => {
      // Without a version, there was a database a moment ago: making one now would hide that it is gone.
      if (version === undefined) return request.transaction?.abort();
      for (const table of TABLES) {
        if (!request.result.objectStoreNames.contains(table)) request.result.createObjectStore(table);
      }
    };
    request.onsuccess = () => {
      clearTimeout(timer);
      if (abandoned) request.result.close();
      else resolve(request.result);
    };
    request.onerror = () => {
      clearTimeout(timer);
      reject(request.error);
    };
  });
}

/** The typed error for what an engine threw. Matches names: the classes differ between engines. */
export function storeError(error: unknown): CompactionError {
  if (CompactionError.isInstance(error)) return error;
  const { name = "Error", message = "" } = (error ?? {}) as Partial<Error>;
  const words = `IndexedDB failed with ${name}${message && ` (${message})`}`;
  const make = (code: CompactionError["code"], advice: string) =>
    new CompactionError(code, `${words}: ${advice}`, { cause: error });
  switch (name) {
    case "QuotaExceededError":
      return make(
        "quota_exceeded",
        "nothing was written and what is stored stays; delete sessions, then try again",
      );
    case "ConstraintError":
      return make("conflict", "nothing was written; read again and retry");
    case "DataCloneError":
    case "DataError":
      return make("unsupported_value", "nothing was written");
    case "NotFoundError":
      return make("store_corrupt", "the database lacks a table; choose another name or delete it");
    case "SecurityError":
      return make("store_unavailable", `this page may not store data; ${WITHOUT}`);
    default:
      return make("store_unavailable", `nothing was written; try again, or ${WITHOUT}`);
  }
}
