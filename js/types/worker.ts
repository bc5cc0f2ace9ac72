/** Threads that run the engine. */

import type { SessionOptions } from "./options.js";
import type { Store } from "./store.js";

/** A thread of the app's that calls `serve` of `context-compactor/worker-thread`: a `Worker` or `SharedWorker` of the browser, a
 *  `Worker` of `node:worker_threads`, or a `MessagePort` that leads to one. */
export type EngineThread = { postMessage(message: unknown): void } | { port: { postMessage(message: unknown): void } };

/** Options of `openSession` of `context-compactor/worker`: those of the main entry, and the thread. */
export interface WorkerSessionOptions extends SessionOptions {
  /** The thread that runs the engine. Default: one `Worker` of this package for all sessions of the page, started with the
   *  first. Pass your own where a bundler or a Content-Security-Policy needs it, or to keep the store there. */
  worker?: EngineThread;
}

/** Options of `serve`. */
export interface ServeOptions {
  /** Store of the sessions whose page passes none. Default: IndexedDB, as for `openSession`. */
  store?: Store;
  /** Serves the page at the other end of this port. Default: who started the worker, or connects to it. */
  port?: EngineThread;
}
