/** One at a time, in the order of asking. */
export class Mutex {
  #last: Promise<void> = Promise.resolve();

  /** Resolves when it is this caller's turn, to what ends the turn. */
  async acquire(): Promise<() => void> {
    const before = this.#last;
    let release!: () => void;
    this.#last = new Promise((resolve) => {
      release = resolve;
    });
    await before;
    return release;
  }
}
