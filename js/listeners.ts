/** Listeners of a session's events. */

import { invalidOption } from "./checks.js";
import type { DataLoss, SessionEvents } from "./types.js";

/** The events of a session: TypeScript names those that are missing. */
const EVENTS: Readonly<Record<keyof SessionEvents, true>> = {
  offload: true,
  compact: true,
  usage: true,
  progress: true,
  warning: true,
  pin: true,
  change: true,
  branch: true,
  "data-loss": true,
};

export class Listeners {
  readonly #listeners = new Map<keyof SessionEvents, Set<(data: never) => void>>();
  /** Delivered to every later listener, too. */
  readonly #announced: [keyof SessionEvents, unknown][] = [];
  /** Losses found before the first listener; delivered to it. */
  readonly #missed: DataLoss[] = [];

  /** Returns what ends it. */
  on<E extends keyof SessionEvents>(event: E, listener: (data: SessionEvents[E]) => void): () => void {
    if (!Object.hasOwn(EVENTS, event)) {
      throw invalidOption("event", `must be one of ${Object.keys(EVENTS).map((name) => `"${name}"`).join(", ")}`);
    }
    if (typeof listener !== "function") throw invalidOption("listener", "must be a function");
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(listener));
    for (const [name, data] of this.#announced) {
      // Later, as every event comes, and not to a listener that was removed meanwhile.
      if (name === event) queueMicrotask(() => listeners.has(listener) && listener(data as SessionEvents[E]));
    }
    if (event === "data-loss") {
      for (const loss of this.#missed.splice(0)) queueMicrotask(() => this.emit("data-loss", loss));
    }
    return () => void listeners.delete(listener);
  }

  /** True when there is a listener. */
  hears(event: keyof SessionEvents): boolean {
    return (this.#listeners.get(event)?.size ?? 0) > 0;
  }

  /** Delivers an event to every present and later listener. */
  announce<E extends keyof SessionEvents>(event: E, data: SessionEvents[E]): void {
    this.#announced.push([event, data]);
  }

  emit<E extends keyof SessionEvents>(event: E, data: SessionEvents[E]): void {
    if (event === "data-loss" && !this.hears(event)) this.#missed.push(data as DataLoss);
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
