/** Sessions by key. */

import type { Message } from "./messages.js";
import type { SessionOptions } from "./options.js";
import type { Session } from "./session.js";
import type { Store } from "./store.js";

/** Options of `sessionPool`: those of every session, and those of the pool. */
export interface SessionPoolOptions extends Omit<SessionOptions, "id" | "parent" | "store"> {
  /** Where all sessions are stored. The pool does not close it. */
  store: Store;
  /** Most open sessions. Beyond it, the session that was used least recently is closed, but none that is busy, so there may be
   *  more for a while. Default: 100. */
  max?: number;
  /** Close sessions that were not used for so long, in ms. Default: they stay open as long as there is room. */
  idleMs?: number;
}

/** Names a conversation: the `id` of its session, or several names, such as tenant and thread. Lists that differ never name
 *  the same session, and a list of one name is that name. */
export type ThreadId = string | readonly string[];

/** The open sessions of a server, by conversation. Made by `sessionPool`. */
export interface SessionPool<M extends Message = Message> {
  /** Resolves to the session of this conversation, opened or created if need be. Calls at the same time get the same one.
   *  Ask again for every request, rather than keep the session: one that the pool has closed rejects with `closed`. Rejects
   *  with the errors of `openSession`. */
  sessionFor(threadId: ThreadId): Promise<Session<M>>;
  /** Deletes the session of this conversation, open or not, and all that is stored of it. Does nothing if there is none.
   *  Rejects with the errors of `deleteSession`. */
  delete(threadId: ThreadId): Promise<void>;
  /** Closes all sessions, once their calls have ended. Later calls reject with `closed`. */
  close(): Promise<void>;
}
