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
