/** Who listens to a session's events. */

import { invalidOption } from "./checks.js";
import type { SessionEvents } from "./types.js";

/** What a session tells its listeners. */
const EVENTS: readonly (keyof SessionEvents)[] = ["offload", "compact", "progress", "warning", "pin"];

export class Listeners {
  readonly #listeners = new Map<keyof SessionEvents, Set<(data: never) => void>>();

  /** Returns what ends it. */
  on<E extends keyof SessionEvents>(event: E, listener: (data: SessionEvents[E]) => void): () => void {
    if (!EVENTS.includes(event)) {
      throw invalidOption("event", `must be one of ${EVENTS.map((name) => `"${name}"`).join(", ")}`);
    }
    if (typeof listener !== "function") throw invalidOption("listener", "must be a function");
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  emit<E extends keyof SessionEvents>(event: E, data: SessionEvents[E]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) {
      try {
        (listener as (data: SessionEvents[E]) => void)(data);
      } catch (error) {
        // What a listener throws is not the operation's business, but it is not hidden either.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
