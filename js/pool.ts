/** Sessions by key: what is always loaded of it. */

import { checkWhole, invalidOption } from "./checks.js";
import { CompactionError } from "./errors.js";
import { engineOptions } from "./options.js";
import type { Message, SessionPool, SessionPoolOptions } from "./types.js";

/**
 * Keeps the sessions of a server open, one for each conversation: `const { sessionFor } = sessionPool({ store, max: 100,
 * contextWindow: 200_000 })`, then `(await sessionFor(threadId)).append(message)`. All other options are those of
 * `openSession`, for every session. Beyond `max`, the session that was used least recently is closed, but none that is busy:
 * with a call or a summary under way, within 10 minutes after a `prepare` that no `append` or `sync` followed, or within 1 s
 * after `sessionFor`. Throws `invalid_option`.
 */
export function sessionPool<M extends Message = Message>(options: SessionPoolOptions): SessionPool<M> {
  const { max = 100, idleMs, ...shared } = Object(options) as SessionPoolOptions;
  checkWhole("max", max, 1);
  if (idleMs !== undefined) checkWhole("idleMs", idleMs, 1);
  for (const name of ["id", "parent"]) {
    if (name in shared) throw invalidOption(name, "is what sessionFor is given: the pool opens a session for each");
  }
  const { store } = shared;
  if (typeof store !== "object" || typeof store?.commit !== "function") {
    throw invalidOption("store", "must be a Store, in which all sessions are");
  }
  engineOptions(shared, "openSession");

  let loading: Promise<SessionPool<M>> | undefined;
  function load(): Promise<SessionPool<M>> {
    return (loading ??= import("./pool/pool.js").then(
      ({ poolOf }) => poolOf<M>({ ...shared, max, ...(idleMs !== undefined && { idleMs }) }),
      (cause: unknown) => {
        // A later call may reach what this one could not.
        loading = undefined;
        throw new CompactionError("store_unavailable", "What sessionPool needs could not be loaded: try again", { cause });
      },
    ));
  }
  return {
    sessionFor: async (threadId) => (await load()).sessionFor(threadId),
    delete: async (threadId) => (await load()).delete(threadId),
    close: async () => (await load()).close(),
  };
}
