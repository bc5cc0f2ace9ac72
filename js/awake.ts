/** Deadlines that count only the time in which this page or process was awake. */

const TICK_MS = 500;
/** What one tick may count: the time that a page was frozen, or waited for a processor, is no time that a store had. */
const MOST_OF_TICK_MS = 2_000;

/** Calls `ended` once, unless it is stopped before. */
export class Deadline {
  readonly #ended: () => void;
  #left: number;
  #last = Date.now();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ms: number, ended: () => void) {
    this.#ended = ended;
    this.#left = ms;
    this.#wait();
  }

  /** From now on there are `ms` left. */
  set(ms: number): void {
    this.#left = ms;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #wait(): void {
    this.#timer = setTimeout(() => {
      const now = Date.now();
      this.#left -= Math.min(Math.max(now - this.#last, 0), MOST_OF_TICK_MS);
      this.#last = now;
      if (this.#left > 0) this.#wait();
      else this.#ended();
    }, Math.max(1, Math.min(this.#left, TICK_MS)));
  }
}
