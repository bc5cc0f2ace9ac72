/** One call of a model, for SDKs that have a hook for the request, and others for what came of it. */

import type { Fitted } from "./threads.js";

/** A call that `Threads.send` waits for until it is said what came of it. */
export class Turn {
  /** What is sent now. */
  next!: Promise<Fitted | undefined>;
  fitted: Fitted | undefined;
  readonly #ended: Promise<void>;
  #found!: (fitted: Fitted | undefined) => void;
  #lost!: (error: unknown) => void;
  #done: (() => void) | undefined;
  #failed: ((error: unknown) => void) | undefined;

  constructor(send: (call: (fitted: Fitted | undefined) => Promise<void>) => Promise<void>) {
    this.#wait();
    const call = (fitted: Fitted | undefined) => {
      this.fitted = fitted;
      this.#found(fitted);
      return new Promise<void>((done, failed) => ([this.#done, this.#failed] = [done, failed]));
    };
    this.#ended = send(call).catch((error: unknown) => this.#lost(error));
  }

  #wait(): void {
    this.next = new Promise((found, lost) => ([this.#found, this.#lost] = [found, lost]));
    // Who waits for it is told.
    this.next.catch(() => undefined);
  }

  /** Ends the call. Resolves when its conversation is free for the next one. */
  done(): Promise<void> {
    this.#done?.();
    return this.#ended;
  }

  /** Resolves to whether there is less to send. */
  failed(error: unknown): Promise<boolean> {
    this.#wait();
    this.#failed?.(error);
    return this.next.then(
      () => true,
      () => false,
    );
  }
}
