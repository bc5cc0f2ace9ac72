/** The worker that the package brings. */

import type { EngineThread } from "../types/worker.js";

interface Builtin {
  getBuiltinModule?(name: "worker_threads"): { Worker: new (url: URL, options: { execArgv: string[] }) => EngineThread };
}

/** Starts it. Throws where there are no workers, and where a script has no address. */
export function startWorker(): EngineThread {
  const { process, Worker: own } = globalThis as { process?: Builtin; Worker?: typeof Worker };
  // In this form bundlers find the script.
  if (own) return new Worker(new URL("../entry/worker-start.js", import.meta.url), { type: "module" });
  const threads = process?.getBuiltinModule?.("worker_threads");
  if (!threads) throw new TypeError("this runtime has no workers");
  const path = ["..", "entry", "worker-start.js"].join("/");
  // Flags of the program are about its own scripts.
  return new threads.Worker(new URL(path, import.meta.url), { execArgv: [] });
}
