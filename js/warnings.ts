/** Warnings: for listeners and the logger; if there is neither, for the console. */

import { quietly } from "./quietly.js";
import type { Listeners } from "./listeners.js";
import type { SessionEvents, SessionOptions } from "./types.js";

export type Warning = SessionEvents["warning"];

/** The window that is assumed if none is given. */
export const ASSUMED: Warning = {
  code: "unknown_model",
  message:
    "the window of the model is not known, so 200,000 tokens are assumed: give contextWindow in tokens, or a model of the catalog",
};

/** What is stored can be read, and nothing more is kept. */
export const READ_ONLY: Warning = {
  code: "store_unavailable",
  message:
    "the store can be read but not written, so every append will fail: give it a place that this process may write to",
};

/** Of browsers that may evict a site's data. */
export const NOT_PERSISTED: Warning = {
  code: "not_persisted",
  message:
    "the browser may remove this site's data, and the conversations with them, when space runs out: ask with " +
    "navigator.storage.persist() when the user can tell why, and keep a watermark on your server, so that a loss is noticed",
};

/** Codes that calls without a session have already reported. */
const told = new Set<string>();

/** Of a call without a session, or of the adapter called `by`: once in a process for each code. */
export function warnOnce({ code, message }: Warning, by = "compact"): void {
  const key = `${by} ${code}`;
  if (told.has(key)) return;
  told.add(key);
  toConsole(`${by}: ${message}. Pass logger to be told instead`);
}

/** The warnings of one session. */
export class Warnings {
  readonly #logger: SessionOptions["logger"];
  readonly #listeners: Listeners;
  readonly #told = new Set<string>();

  constructor(logger: SessionOptions["logger"], listeners: Listeners) {
    this.#logger = logger;
    this.#listeners = listeners;
  }

  /** `isLogged`: the logger has it already. */
  tell(warning: Warning, isLogged = false): void {
    if (!isLogged) this.#log(warning);
    this.#listeners.emit("warning", warning);
    this.#shout(warning);
  }

  /** Warnings of the opening: delivered to listeners that are added as soon as the session is there. */
  announce(warning: Warning): void {
    this.#log(warning);
    this.#listeners.announce("warning", warning);
    try {
      setTimeout(() => this.#shout(warning));
    } catch {
      // Workers set no timers outside of a request.
      this.#shout(warning);
    }
  }

  /** What a store found: also what it did when the session was opened. */
  found(warning: Warning): void {
    if (this.#listeners.hears("warning")) this.tell(warning);
    else this.announce(warning);
  }

  #log({ message }: Warning): void {
    quietly(() => this.#logger?.("warn", message));
  }

  #shout({ code, message }: Warning): void {
    if (this.#logger || this.#listeners.hears("warning") || this.#told.has(code)) return;
    this.#told.add(code);
    toConsole(`${message}. Listen with session.on("warning"), or pass logger, to be told instead`);
  }
}

function toConsole(message: string): void {
  quietly(() => globalThis.console?.warn(`context-compactor: ${message}`));
}
