/** Options that the adapters of SDKs share. */

import type { SessionOptions } from "./options.js";
import type { Session } from "./session.js";
import type { Store } from "./store.js";

/** Options of every adapter: those of `openSession` for each conversation, and what happens when the adapter fails. */
export interface AdapterOptions
  extends Omit<SessionOptions, "id" | "format" | "recall" | "parent" | "mustExist" | "signal" | "store"> {
  /** Where conversations are stored: a `Store`, `"memory"` or `"indexeddb"`. Default: in memory; a conversation is then
   *  compacted from its beginning again after a restart, and loses nothing, because the app hands over all of it. */
  store?: Store | "memory" | "indexeddb";
  /** The model can read what left the context. `{ tools: false }`: the adapter offers no tools for that. Default: true once
   *  the tools of a request include the recall tools. `{ scope: "all" }` lets each conversation search and read all others of
   *  `store`: never where the store has conversations of several users. */
  recall?: boolean | { tools?: boolean; embed?: (texts: string[]) => Promise<number[][]>; scope?: "session" | "all" };
  /** Reject the app's call when this library fails. Default: false. The failure is then a warning (option `logger`, else
   *  `console.warn`), and the request is sent as the app gave it. */
  strict?: boolean;
  /** Called before each prompt: returns its live facts, as option `live` of `session.prepare` takes them. */
  live?: () => string;
  /** Called with the session of each conversation when it is opened, before its first prompt: for listeners, or `traced`
   *  of `context-compactor/opentelemetry`. */
  onSession?: (session: Session) => void;
}
