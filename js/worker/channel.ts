/** Threads of all kinds as one: what is posted, heard, and how their end is noticed. */

import { invalidOption } from "../checks.js";
import type { EngineThread } from "../types/worker.js";

/** One end of a way between two threads. */
export interface Channel {
  post(message: unknown, transfer?: ArrayBuffer[]): void;
  hear(listener: (message: never) => void): void;
  /** Calls `failed` at an error of the other end, after which a browser's worker may go on, and `ended` at its end. */
  watch(failed: (cause: unknown) => void, ended: (cause: unknown) => void): void;
  /** Ends the thread. */
  end(): void;
  /** Whether an answer is awaited: only then a process of Node stays for it. */
  hold(isAwaited: boolean): void;
}

/** A worker or a port of browsers, and of Node, whose workers have listeners of its own. */
export interface Port {
  postMessage(message: unknown, transfer?: ArrayBuffer[]): void;
  addEventListener?(event: string, listener: (event: { data: never; error?: unknown; message?: string }) => void): void;
  on?(event: string, listener: (value: never) => void): void;
  start?(): void;
  terminate?(): unknown;
  ref?(): void;
  unref?(): void;
}

/** The way to a thread. */
export function channelTo(thread: EngineThread): Channel {
  const { port } = Object(thread) as { port?: Port };
  const end = (port ?? thread) as Port;
  if (typeof Object(end).postMessage !== "function") {
    throw invalidOption("worker", "must be a Worker, a SharedWorker, a MessagePort, or a Worker of node:worker_threads");
  }
  return channelOf(end, thread as unknown as Port);
}

/** The way through a port. `thread`: what tells that it failed. */
export function channelOf(end: Port, thread = end): Channel {
  return {
    post: (message, transfer = []) => end.postMessage(message, transfer),
    hear(listener) {
      if (end.addEventListener) end.addEventListener("message", ({ data }) => listener(data));
      else end.on?.("message", listener);
      end.start?.();
    },
    watch(failed, ended) {
      if (thread.addEventListener) {
        thread.addEventListener("error", ({ error, message }) => failed(error ?? new Error(message ?? "its script could not be loaded")));
        thread.addEventListener("close", () => ended(new Error("the worker has ended")));
        return;
      }
      thread.on?.("error", ended);
      thread.on?.("exit", (code) => ended(new Error(`the worker exited with code ${String(code)}`)));
    },
    end: () => void thread.terminate?.(),
    hold: (isAwaited) => (isAwaited ? end.ref?.() : end.unref?.()),
  };
}

/** Locks of the browser: a thread or a page that ends in whatever way lets go of those that it has. */
function locks(): LockManager | undefined {
  const { navigator, process } = globalThis as { navigator?: Navigator; process?: { versions?: { node?: string } } };
  // Node tells when a worker exits.
  return process?.versions?.node ? undefined : navigator?.locks;
}

/** Takes a lock of its own for as long as this thread runs; nothing where there are none. */
export async function holdLock(): Promise<string | undefined> {
  const name = `context-compactor/${crypto.randomUUID()}`;
  const manager = locks();
  if (!manager) return undefined;
  return new Promise((resolve) => {
    const held = manager.request(name, () => {
      resolve(name);
      return new Promise(() => {});
    });
    // A page that may store nothing has no locks either.
    held.catch(() => resolve(undefined));
  });
}

/** Calls `ended` when the thread that has this lock has ended. */
export function watchLock(name: string | undefined, ended: () => void): void {
  if (name !== undefined) void locks()?.request(name, ended).catch(() => {});
}
