/** A queue of tabs in front of the commits of a session, so that none of them comes second every time. */

import { CompactionError } from "../errors.js";

/** How long a turn is waited for: a tab that is stopped keeps its lock, and must not stop the others. */
const WAIT_MS = 200;
/** How long a turn is kept for a writer that lost a race and has to read first. */
const KEEP_MS = 100;

interface Kept {
  leave: () => void;
  timer: ReturnType<typeof setTimeout>;
}

/** It makes conflicts rare and decides nothing: compare-and-set does. */
export class Queue {
  readonly #kept = new Map<string, Kept>();

  /** Runs `commit` in its turn among those with this name, or once it has waited long enough. After a conflict the turn is
   *  kept for the next try. */
  async run<T>(name: string, commit: () => Promise<T>): Promise<T> {
    const leave = this.#take(name) ?? (await turn(name));
    let isLost = false;
    try {
      return await commit();
    } catch (error) {
      isLost = CompactionError.isInstance(error) && error.code === "conflict";
      throw error;
    } finally {
      if (leave && isLost) this.#keep(name, leave);
      else leave?.();
    }
  }

  #take(name: string): (() => void) | undefined {
    const kept = this.#kept.get(name);
    this.#kept.delete(name);
    clearTimeout(kept?.timer);
    return kept?.leave;
  }

  #keep(name: string, leave: () => void): void {
    // Two handles on this store may both have lost.
    this.#take(name)?.();
    this.#kept.set(name, { leave, timer: setTimeout(() => this.#take(name)?.(), KEEP_MS) });
  }
}

/** Resolves to what ends the turn; to nothing where it did not come in time, or there are no locks. */
async function turn(name: string): Promise<(() => void) | undefined> {
  const { locks } = (globalThis.navigator ?? {}) as { locks?: LockManager };
  if (!locks) return undefined;
  return new Promise((resolve) => {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), WAIT_MS);
    const go = (leave?: () => void) => {
      clearTimeout(timer);
      resolve(leave);
    };
    locks
      .request(name, { signal: late.signal }, () => new Promise<void>((leave) => go(leave)))
      // It came too late, or this page may have no locks.
      .catch(() => go());
  });
}
