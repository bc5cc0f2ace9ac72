/** The engine of another thread. */

import { invalidOption } from "../checks.js";
import { LACKING, type Fixed, type Log, type Quarters, type Seat } from "../seat.js";
import { after } from "../store-calls.js";
import type { Host } from "../effects.js";
import { isStore, noStore } from "../store/given.js";
import type { MaybePromise } from "../types.js";
import type { Session as Handle } from "../wasm/core.js";
import { StoreThere } from "./store.js";
import type { Thread } from "./thread.js";
import { isSame, nameOf, recorded } from "./wire.js";

/** The names of operations after which there is something to lose. */
const STORING = ["append", "appendAndPrepare", "sync"];

export function there(thread: Thread): Quarters {
  return {
    started: () => thread.starting,
    ready: (values) => thread.call("ready", { values }),
    async place({ store, id, parent }) {
      // An object stays here, and the thread asks for what it has.
      if (isStore(store)) return { store, own: false };
      if (store !== undefined && typeof store !== "string") throw noStore(store);
      const place = await thread.call("place", { ...(store !== undefined && { store }), ...(id !== undefined && { id }), ...(parent !== undefined && { parent }) });
      const made = new StoreThere(thread, place);
      thread.stores.set(place.nth, made);
      return { store: made.store, own: true, ...(place.warning && { warning: place.warning }) };
    },
    drive: (begin, host) => thread.run("drive", 0, recorded(begin), host),
    seat: (handle) => new SeatThere(thread, handle as unknown as number),
  };
}

class SeatThere implements Seat {
  readonly #thread: Thread;
  readonly #on: number;
  readonly #log: LogThere;
  #fixed: Fixed | undefined;
  #counting: Promise<void> | undefined;

  constructor(thread: Thread, on: number) {
    this.#thread = thread;
    this.#on = on;
    this.#log = new LogThere(thread, on);
  }

  get log(): Log {
    return this.#log;
  }

  async drive<T>(begin: (handle: Handle) => never, host: Host, seal?: (thrown: Map<number, unknown>) => void): Promise<T> {
    const at = recorded(begin);
    this.#log.clear();
    const done = await this.#thread.run<T>("drive", this.#on, at, host, seal);
    if (STORING.includes(at.path[0] ?? "")) for (const there of this.#thread.stores.values()) if (there.store === host.store) there.stored();
    return done;
  }

  look<T>(at: (handle: Handle) => unknown): T {
    const called = recorded(at);
    const known = this.#thread.known(this.#on, nameOf(called));
    if (known === undefined && called.path[0] === "tools") throw invalidOption("format", "must be the name of a format");
    return known as T;
  }

  ask<T>(at: (handle: Handle) => unknown, host: Host): MaybePromise<T> {
    const called = recorded(at);
    return after(this.#counting, () => this.#thread.run<T>("ask", this.#on, called, host));
  }

  count(fixed: Fixed, host: Host): MaybePromise<void> {
    this.#thread.check();
    if (isSame(this.#fixed, fixed)) return this.#counting;
    this.#fixed = fixed;
    const counting = this.#thread
      .run<void>("ask", this.#on, recorded<Handle>((handle) => handle.countFixed(fixed)), host)
      .finally(() => {
        if (this.#counting === counting) this.#counting = undefined;
      });
    // What looks at once does not wait, and what waits is told.
    counting.catch(() => {
      this.#fixed = undefined;
    });
    return (this.#counting = counting);
  }

  async bring(stage: Parameters<Seat["bring"]>[0]): Promise<void> {
    await this.#thread.call("stage", { stage });
  }

  isOutdated(): boolean {
    return this.#thread.known(this.#on, "isOutdated") === true;
  }

  end(): void {
    this.#thread.forget(this.#on);
  }
}

class LogThere implements Log {
  readonly #thread: Thread;
  readonly #on: number;
  readonly #bodies = new Map<number, string>();
  #all: { bodies: [number, string][]; branch: ReturnType<Log["branch"]> } | undefined;

  constructor(thread: Thread, on: number) {
    this.#thread = thread;
    this.#on = on;
  }

  /** What was brought holds until the next operation. */
  clear(): void {
    this.#all = undefined;
  }

  body(seq: number): string | undefined {
    const body = this.#bodies.get(seq);
    // Whoever takes it makes an object of it.
    this.#bodies.delete(seq);
    return body;
  }

  bodies(): [number, string][] {
    if (!this.#all) throw LACKING;
    return this.#all.bodies;
  }

  branch(): ReturnType<Log["branch"]> {
    if (!this.#all) throw LACKING;
    return this.#all.branch;
  }

  async bring(what: readonly number[] | "all"): Promise<void> {
    const [thread, on] = [this.#thread, this.#on];
    if (what !== "all") {
      const bodies = await thread.call("bodies", { on, seqs: what });
      what.forEach((seq, nth) => this.#bodies.set(seq, bodies[nth] ?? "null"));
      return;
    }
    const host = NOTHING;
    const [bodies, branch] = await Promise.all([
      thread.run<[number, string][]>("ask", on, recorded<Handle>((handle) => handle.bodies()), host),
      thread.run<ReturnType<Log["branch"]>>("ask", on, recorded<Handle>((handle) => handle.branch()), host),
    ]);
    this.#all = { bodies, branch };
  }
}

/** Nothing is performed for what is only looked at. */
const NOTHING: Host = {
  message() {
    throw new TypeError("no message is counted here");
  },
  now: () => Date.now(),
  id: () => crypto.randomUUID(),
};
