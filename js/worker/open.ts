/** Calls of `context-compactor/worker`: those of the main entry, with the engine in another thread. */

import { checkOptions, invalidOption } from "../checks.js";
import { CompactionError } from "../errors.js";
import type { Quarters } from "../seat.js";
import { openIn } from "../session.js";
import { checkGone, deleteIn, listIn } from "../stored.js";
import type { CustomFormat, Message, Session, SessionInfo, SessionOptions, Store, Watermark } from "../types.js";
import type { EngineThread, WorkerSessionOptions } from "../types/worker.js";
import { startWorker } from "./start.js";
import { there } from "./there.js";
import { ownThread, threadOf } from "./thread.js";

/** The thread that an app chose. */
function quartersOf(worker: EngineThread | undefined): Quarters {
  if (worker !== undefined && (typeof worker !== "object" || worker === null)) throw invalidOption("worker", "must be a Worker");
  return there(worker === undefined ? ownThread(startWorker) : threadOf(worker));
}

/**
 * Opens a session as `openSession` of the main entry does, with the engine in another thread. Messages stay the page's own
 * objects, and the app's functions run in the page. The store is in the thread, too, unless a `Store` object is passed, whose
 * calls the page makes.
 *
 * What a session returns at once (`context.usage()`, `checkpoints()`, `archive.metadata()` and others) is as of the last call that
 * was answered. `context.recordUsage` reports an object that it cannot read as event `warning`. Rejects as the main entry's
 * does, with `stage_unavailable` if the worker cannot be started, and with `poisoned` in every call after the worker failed or
 * was terminated: open the session again.
 */
export async function openSession<M extends Message = Message>(
  options: Omit<WorkerSessionOptions, "format"> & { format: CustomFormat<M> },
): Promise<Session<M, M>>;
export async function openSession<M extends Message = Message>(options?: WorkerSessionOptions): Promise<Session<M>>;
export async function openSession<M extends Message = Message>(options: WorkerSessionOptions = {}): Promise<Session<M>> {
  const { worker, ...rest } = Object(options) as WorkerSessionOptions;
  return openIn<M>(quartersOf(worker), typeof options === "object" && options !== null ? rest : options);
}

/** Lists the sessions of a store of the worker, oldest first, without opening them. `store`: default IndexedDB. Rejects with
 *  the errors of the store, and with `stage_unavailable` if the worker cannot be started. */
export async function listSessions(options: { store?: SessionOptions["store"]; worker?: EngineThread } = {}): Promise<SessionInfo[]> {
  checkOptions(options, ["store", "worker"]);
  return withStore(options, (quarters, store) => listIn(quarters, store));
}

/** Deletes everything that a store of the worker has of the session `id`, as `deleteSession` of the main entry does. `store`:
 *  default IndexedDB. */
export async function deleteSession(
  id: string,
  options: { store?: SessionOptions["store"]; watermark?: Watermark; worker?: EngineThread } = {},
): Promise<void> {
  checkOptions(options, ["store", "watermark", "worker"]);
  checkGone(id);
  return withStore(options, (quarters, store) => deleteIn(quarters, id, store, options.watermark));
}

async function withStore<T>(
  { store, worker }: { store?: SessionOptions["store"]; worker?: EngineThread },
  work: (quarters: Quarters, store: Store) => Promise<T>,
): Promise<T> {
  const quarters = quartersOf(worker);
  await quarters.started();
  // As of a session with a name: what is in no store cannot be found again.
  const place = await quarters.place({ ...(store !== undefined && { store }), id: "of a list" });
  try {
    if (place.warning) throw new CompactionError("store_unavailable", place.warning.message, { field: "store" });
    return await work(quarters, place.store);
  } finally {
    if (place.own) await place.store.close?.();
  }
}
