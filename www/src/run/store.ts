import { useEffect, useState } from "preact/hooks";

/** A value that components can watch. Updates are collected per frame: a fast run does not render twice per frame. */
export class Store<T extends object> {
  #state: T;
  #listeners = new Set<() => void>();
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
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
    this.#frame = requestAnimationFrame(this.#flush);
    // A hidden tab has no frames: there the timer does it.
    this.#timer = setTimeout(this.#flush, 100);
  }

  #flush = (): void => {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = 0;
    for (const listener of this.#listeners) listener();
  };

  /** What changed before the work is shown now, what changes during it at its end, at once. */
  async quietly(work: () => Promise<void>): Promise<void> {
    this.#flush();
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
