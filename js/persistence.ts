/** Whether the platform keeps what a session has stored. Nothing waits for the answer. */

import type { Store } from "./types.js";
import { NOT_PERSISTED, type Warning } from "./warnings.js";

export class Persistence {
  readonly #store: Store;
  readonly #warn: (warning: Warning) => void;
  #isWatched = false;
  value: boolean | undefined;

  constructor(store: Store, warn: (warning: Warning) => void) {
    this.#store = store;
    this.#warn = warn;
  }

  async look(): Promise<void> {
    try {
      this.value = (await this.#store.persisted?.()) ?? this.value;
    } catch {
      // It stays unknown.
    }
  }

  /** From the first append on there is something to lose. */
  async watch(): Promise<void> {
    if (this.#isWatched) return;
    this.#isWatched = true;
    await this.look();
    if (this.value === false) this.#warn(NOT_PERSISTED);
  }
}
