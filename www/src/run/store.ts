import { useEffect, useState } from "preact/hooks";

/** A value that components can watch. Updates are collected per frame: a fast run does not render twice per frame. */
export class Store<T extends object> {
  #state: T;
  #listeners = new Set<() => void>();
  #frame = 0;
  #isQuiet = false;

  constructor(initial: T) {
    this.#state = initial;
  }

  get state(): T {
    return this.#state;
  }

  set(change: Partial<T>): void {
    this.#state = { ...this.#state, ...change };
    if (this.#isQuiet || this.#frame !== 0) return;
    // A hidden tab has no frames: there the timer does it.
    const flush = () => {
      cancelAnimationFrame(this.#frame);
      clearTimeout(timer);
      this.#frame = 0;
      if (this.#isQuiet) return;
      for (const listener of this.#listeners) listener();
    };
    const timer = setTimeout(flush, 100);
    this.#frame = requestAnimationFrame(flush);
  }

  /** What changes during the work is shown at its end, at once. */
  async quietly(work: () => Promise<void>): Promise<void> {
    this.#isQuiet = true;
    await work().finally(() => (this.#isQuiet = false));
    this.set({});
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export function useStore<T extends object>(store: Store<T>): T {
  const [state, setState] = useState(store.state);
  useEffect(() => {
    setState(store.state);
    return store.subscribe(() => setState(store.state));
  }, [store]);
  return state;
}
