/** What an operation asks of the store, in time. */

import { Deadline } from "./awake.js";
import { CompactionError } from "./errors.js";
import type { MaybePromise, Store } from "./types.js";

/** How long one call may take by default, in ms. */
const STORE_MS = 30_000;

/** The calls of one operation. After one that was not answered no other one is made: it would only wait as long again. */
export class StoreCalls {
  readonly #store: Store | undefined;
  readonly #ms: number;
  /** What was not answered in time. */
  #late: string | undefined;

  constructor(store: Store | undefined, ms: number | undefined) {
    this.#store = store;
    this.#ms = ms ?? STORE_MS;
  }

  /**
   * The answer of `work`, at once where that is, or a failure in time. One that comes later is ignored: a commit of it is written or not, and
   * the next writer gets a conflict.
   */
  call<T>(what: "read" | "scan" | "commit", work: (store: Store) => MaybePromise<T>): MaybePromise<T> {
    if (!this.#store) throw new CompactionError("store_unavailable", "there is no store for this operation");
    if (this.#late) throw new CompactionError("store_unavailable", `${this.#late}: nothing more was asked of it; try again`);
    const answer = work(this.#store);
    // Memory answers at once, and needs no timer.
    if (!isPromise(answer)) return answer;
    return new Promise((resolve, reject) => {
      const deadline = new Deadline(this.#ms, () => {
        this.#late = `the store's \`${what}\` did not answer in ${this.#ms} ms (limits.storeTimeoutMs)`;
        reject(
          what === "commit"
            ? new CompactionError("indeterminate", `${this.#late}: read again to see whether it was written`)
            : new CompactionError("store_unavailable", `${this.#late}: nothing was written; try again`),
        );
      });
      answer.then(
        (value) => {
          deadline.stop();
          resolve(value);
        },
        (error: unknown) => {
          deadline.stop();
          reject(error as Error);
        },
      );
    });
  }
}

/** Of any realm or library. */
export function isPromise<T>(answer: MaybePromise<T> | PromiseLike<T>): answer is Promise<T> {
  return typeof (answer as { then?: unknown } | null | undefined)?.then === "function";
}

/** What `next` makes of a value: at once where that is here. */
export function after<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return isPromise(value) ? value.then(next) : next(value);
}
