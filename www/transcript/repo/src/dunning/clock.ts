export interface Clock {
  now(): Date;
}

export const systemClock: Clock = { now: () => new Date() };

/** A clock that stands still until it is told to move. */
export class FakeClock implements Clock {
  #now: number;

  constructor(iso: string) {
    this.#now = Date.parse(iso);
    if (Number.isNaN(this.#now)) throw new RangeError(`not a date: ${iso}`);
  }

  now(): Date {
    return new Date(this.#now);
  }

  advance(ms: number): void {
    this.#now += ms;
  }
}
