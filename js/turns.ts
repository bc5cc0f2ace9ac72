/** The order of a session's calls. */

import { checkOptions, checkSignal } from "./checks.js";
import { checkAborted, withEither, type Host } from "./effects.js";
import { CompactionError } from "./errors.js";
import { Mutex, Turn } from "./mutex.js";
import type { SessionOptions } from "./types.js";

export class Turns {
  readonly #options: SessionOptions;
  readonly #host: Host;
  readonly #after: () => void;
  /** Whole calls that change the context, one after the other. */
  readonly #turn = new Mutex();
  /** The engine's state. Given away while a summariser works, so that appends need not wait for it. */
  readonly #state = new Mutex();
  /** Calls that hold neither. */
  readonly #beside = new Set<Promise<unknown>>();
  #closed = false;
  #asked = 0;
  /** The app's summariser runs, up to its first `await`. */
  #isAsking = false;

  /** `after` runs after every `queued` call, before the next one begins. */
  constructor(options: SessionOptions, host: Host, after: () => void) {
    this.#options = options;
    this.#host = host;
    this.#after = after;
  }

  /** Calls so far. */
  get asked(): number {
    return this.#asked;
  }

  /** No call that changes the context is under way, or waits. */
  get isFree(): boolean {
    return this.#turn.free;
  }

  /** No call is under way, and none waits. */
  get isIdle(): boolean {
    return this.#turn.free && this.#state.free && !this.isBeside;
  }

  /** A call that only reads is under way. */
  get isBeside(): boolean {
    return this.#beside.size > 0;
  }

  /** Runs the app's summariser. A call that waits for the turn would wait for the summary, and the summary for it. */
  asking<T>(summarize: () => T): T {
    this.#isAsking = true;
    try {
      return summarize();
    } finally {
      this.#isAsking = false;
    }
  }

  /** Added to what is said of a summariser that gave no answer: it may itself have made the calls that wait. */
  get waiting(): string {
    return this.#turn.awaited ? "; other calls of the session wait for it: does summarize call its own session?" : "";
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  checkOpen(): void {
    if (this.#closed) throw new CompactionError("closed", "the session was closed or deleted; open it again");
  }

  /** A call that holds the engine's state, and may come while another one waits for a summariser. */
  async queued<T>(work: () => Promise<T>): Promise<T> {
    this.#asked++;
    const release = await this.#state.acquire();
    try {
      this.checkOpen();
      return await work();
    } finally {
      this.#after();
      release();
    }
  }

  /** The same; other calls may come while a function of the app works for it. */
  async parking<T>(work: (host: Host) => Promise<T>): Promise<T> {
    this.#asked++;
    let release = await this.#state.acquire();
    const park: Host["park"] = async (wait) => {
      release();
      try {
        return await wait();
      } finally {
        release = await this.#state.acquire();
      }
    };
    try {
      this.checkOpen();
      return await work({ ...this.#host, park });
    } finally {
      this.#after();
      release();
    }
  }

  /** A call that changes the context at once. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    const { turn, state } = await this.#both();
    try {
      this.checkOpen();
      return await work();
    } finally {
      state();
      turn();
    }
  }

  /** A call that changes the context. It holds the engine's state except while a summariser works. `heeds`: not begun where the
   *  signal is aborted already. */
  async exclusive<T>(
    options: { signal?: AbortSignal },
    known: readonly string[],
    work: (host: Host) => Promise<T>,
    heeds = true,
  ): Promise<T> {
    checkOptions(options, known);
    const { signal } = options;
    checkSignal(signal);
    const { turn, ...queued } = await this.#both();
    const state = new Turn(this.#state, queued.state);
    try {
      this.checkOpen();
      const park: Host["park"] = (wait) => state.park(wait);
      return await withEither([signal, this.#options.signal], (signal) => {
        if (heeds) checkAborted(signal);
        return work({ ...this.#host, signal, park });
      });
    } finally {
      await state.end();
      turn();
    }
  }

  /** A call beside one that changes the context, while that waits for a summariser. */
  async shared<T>(options: { signal?: AbortSignal }, work: (host: Host) => Promise<T>): Promise<T> {
    checkSignal(options.signal);
    return this.queued(() =>
      withEither([options.signal, this.#options.signal], (signal) => {
        checkAborted(signal);
        return work({ ...this.#host, signal });
      }),
    );
  }

  /** A call that only reads what is written once: others go on meanwhile, and the session ends after it. */
  async beside<T>(options: { signal?: AbortSignal }, work: (host: Host) => Promise<T>): Promise<T> {
    checkOptions(options, ["signal"]);
    const { signal } = options;
    checkSignal(signal);
    this.checkOpen();
    checkAborted(signal);
    const running = work({ ...this.#host, signal });
    this.#beside.add(running);
    try {
      return await running;
    } finally {
      this.#beside.delete(running);
    }
  }

  /** Ends the session after `last`, once everything under way has ended; then `release`. */
  async end(last: () => Promise<void>, release: () => Promise<void>): Promise<void> {
    const { turn, state } = await this.#both();
    try {
      if (this.#closed) return;
      while (this.#beside.size > 0) await Promise.allSettled(this.#beside);
      await last();
      this.#closed = true;
      await release();
    } finally {
      state();
      turn();
    }
  }

  /** A turn, and then the state: at once where nobody else has a turn, so that an append made later comes later. */
  async #both(): Promise<{ turn: () => void; state: () => void }> {
    if (this.#isAsking) {
      const message = "summarize: it called the session that waits for its answer; write the summary from its request alone";
      throw new CompactionError("invalid_option", message, { field: "summarize" });
    }
    this.#asked++;
    const free = this.#turn.free;
    const turn = this.#turn.acquire();
    const state = free ? this.#state.acquire() : undefined;
    return { turn: await turn, state: await (state ?? this.#state.acquire()) };
  }
}
