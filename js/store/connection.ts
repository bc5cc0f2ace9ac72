/** The connection to one IndexedDB database: opened when needed, given up when the browser takes it away. */

import { CompactionError } from "../errors.js";
import { randomId } from "./keys.js";
import { IDENTITY, openDatabase } from "./opening.js";
import type { Identity, Opened } from "./opening.js";
import { Tabs } from "./tabs.js";
import { settle, storeError, TimedOut } from "./transaction.js";

/** Versions 100 to 199 can be read and written by every release that knows one of them. */
const SCHEMA = 100;
const SCHEMA_END = 200;

export class Connection {
  readonly #name: string;
  readonly #encrypted: boolean;
  #opening: Promise<IDBDatabase> | undefined;
  #db: IDBDatabase | undefined;
  #closed = false;
  /** Id of the database that was opened last. */
  #id: string | undefined;
  #loss: string | undefined;
  /** Those that have this database open. */
  readonly tabs = new Tabs();

  constructor(name: string, encrypted: boolean) {
    this.#name = name;
    this.#encrypted = encrypted;
  }

  /** The open database; opens it when there is none. Rejects with `store_unavailable`, `schema_too_new`, `closed`, or
   *  `invalid_option` where only one of database and store is encrypted. */
  open(): Promise<IDBDatabase> {
    if (this.#closed) {
      return Promise.reject(new CompactionError("closed", "The store was closed: make a new one"));
    }
    if (this.#opening) return this.#opening;
    const opening = this.#openKnown();
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

  /** Why the database is not the one that was here before. Once that was reported, the one that is here counts. */
  async dataLoss(): Promise<string | undefined> {
    await this.open();
    if (this.#loss !== undefined) mark(this.#name, this.#id);
    return this.#loss;
  }

  /** The database, once it is clear which one it is. */
  async #openKnown(): Promise<IDBDatabase> {
    for (let retried = false; ; retried = true) {
      const fresh: Identity = { id: randomId(16), encrypted: this.#encrypted };
      const { db, made } = await this.#openCompatible(fresh);
      try {
        const identity = made ? fresh : await identityOf(db, fresh);
        this.#checkEncrypted(identity);
        this.#recognise(identity.id, made);
        return db;
      } catch (error) {
        db.close();
        const failure = storeError(error);
        // The connection was lost at once: site data are being cleared. What takes too long would do so again.
        if (retried || failure.code === "invalid_option" || error instanceof TimedOut) throw failure;
      }
    }
  }

  /** Asks for our version; a database that a newer compatible release made is opened as it is. */
  async #openCompatible(identity: Identity): Promise<Opened> {
    try {
      return await openDatabase(this.#name, SCHEMA, identity);
    } catch (error) {
      if ((error as Error | null)?.name !== "VersionError") throw storeError(error);
    }
    const opened = await openDatabase(this.#name, undefined, identity).catch((error: unknown) =>
      Promise.reject(storeError(error)),
    );
    const { version } = opened.db;
    if (version < SCHEMA_END) return opened;
    opened.db.close();
    throw new CompactionError(
      "schema_too_new",
      `Database "${this.#name}" has schema ${version}, this release reads ${SCHEMA} to ${SCHEMA_END - 1}: reload or update the app`,
    );
  }

  #checkEncrypted({ encrypted }: Identity): void {
    if (encrypted === this.#encrypted) return;
    const what = encrypted
      ? "is encrypted: give the `encryptionKey` that it was begun with"
      : "was begun without encryption, and what is in it would stay readable: choose another name, and take sessions along with session.archive.jsonl() and importSession";
    throw new CompactionError("invalid_option", `Database "${this.#name}" ${what}`, { field: "encryptionKey" });
  }

  #recognise(id: string, made: Opened["made"]): void {
    const before = this.#id ?? marked(this.#name);
    this.#id = id;
    this.tabs.tune(id);
    if (made?.dataLoss !== undefined) {
      this.#loss = `the browser found database "${this.#name}" damaged and began it anew (${made.dataLoss}; now ${id})`;
    } else if (before !== undefined && before !== id) {
      const how = made ? "was gone and was begun anew" : "was replaced by another one";
      this.#loss = `database "${this.#name}" ${how}: cleared by the user, the browser or a script (was ${before}, now ${id})`;
    } else if (this.#loss === undefined) {
      mark(this.#name, id);
    }
  }
}

/** Which database this is; one from before there were identities gets its own. */
async function identityOf(db: IDBDatabase, fresh: Identity): Promise<Identity> {
  const look = (mode: "readonly" | "readwrite") =>
    settle(db.transaction("meta", mode), (tx, on) => {
      const found: { identity?: Identity } = {};
      const table = tx.objectStore("meta");
      on(table.get(IDENTITY), (identity: Identity | undefined) => {
        if (identity) found.identity = identity;
        // Another tab may have been here in between: the first one counts.
        else if (mode === "readwrite") table.put((found.identity = { ...fresh, encrypted: false }), IDENTITY);
      });
      return found;
    });
  return (await look("readonly")).identity ?? (await look("readwrite")).identity!;
}

const markOf = (name: string) => `context-compactor/database/${name}`;

/** The id of the database that this origin had last, from outside of IndexedDB. Workers cannot know. */
function marked(name: string): string | undefined {
  try {
    return localStorage.getItem(markOf(name)) ?? undefined;
  } catch {
    return undefined;
  }
}

function mark(name: string, id: string | undefined): void {
  try {
    if (id !== undefined && marked(name) !== id) localStorage.setItem(markOf(name), id);
  } catch {
    // Full or forbidden: then only what this page sees itself is reported.
  }
}

/** Whether the place has no storage to give at all: nothing can be there, and nothing will be. */
export function isRefused(error: unknown): boolean {
  if (!globalThis.indexedDB) return true;
  const cause = CompactionError.isInstance(error) ? error.cause : error;
  const { name, message } = Object(cause) as Partial<Error>;
  // Chromium has no name of its own for an app or site that may not store data.
  return name === "SecurityError" || (name === "UnknownError" && /denied permission/i.test(String(message)));
}
