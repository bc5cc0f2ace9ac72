/** Turns: one at a time. */

import type { MaybePromise } from "./types.js";

/** One at a time, in the order of asking. */
export class Mutex {
  #last: Promise<void> = Promise.resolve();
  #asked = 0;

  /** True when nobody has a turn or waits for one. */
  get free(): boolean {
    return this.#asked === 0;
  }

  /** True when somebody waits for a turn. */
  get awaited(): boolean {
    return this.#asked > 1;
  }

  /** Resolves when it is this caller's turn, to what ends the turn. */
  async acquire(): Promise<() => void> {
    this.#asked++;
    const before = this.#last;
    let release!: () => void;
    this.#last = new Promise((resolve) => {
      release = () => {
        this.#asked--;
        resolve();
      };
    });
    await before;
    return release;
  }
}

/** A turn that is let go of while something is waited for. */
export class Turn {
  readonly #mutex: Mutex;
  #held: Promise<() => void>;
  /** Several waits may be under way at once: the first lets go, the last takes hold again. One that begins while the last one
   *  before it is about to take hold lets go of that. */
  #waits = 0;
  #hasEnded = false;

  constructor(mutex: Mutex, release: () => void) {
    this.#mutex = mutex;
    this.#held = Promise.resolve(release);
  }

  /** Lets others have the turn while `work` takes its time. */
  async park<T>(work: () => MaybePromise<T>): Promise<T> {
    if (this.#waits++ === 0) void this.#held.then((release) => release());
    try {
      return await work();
    } finally {
      if (--this.#waits === 0 && !this.#hasEnded) {
        this.#held = this.#mutex.acquire();
        await this.#held;
      }
    }
  }

  async end(): Promise<void> {
    // Whatever still waits was given up with the call: it let go of the turn, and takes no hold of it again.
    this.#hasEnded = true;
    if (this.#waits === 0) (await this.#held)();
  }
}
