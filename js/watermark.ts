/** How far sessions are, kept outside of their store: the engine says what, this keeps it. */

import { within } from "./effects.js";
import { isPromise } from "./store-calls.js";
import type { Store, Watermark } from "./types.js";

/** How long a watermark is waited for, in ms: a session opens without one. */
const WAIT_MS = 10_000;

/** The app's own watermark; else `localStorage` for a store that the platform can remove, where there is one. */
function watermarkFor(given: Watermark | undefined, { name }: Store): Watermark | undefined {
  if (given) return given;
  const storage = name === undefined ? undefined : localStorageOf();
  if (!storage) return undefined;
  const own = (key: string) => `context-compactor/${name}/${key}`;
  return {
    get: (key) => storage.getItem(own(key)),
    set: (key, value) => (value === "" ? storage.removeItem(own(key)) : storage.setItem(own(key), value)),
  };
}

function localStorageOf(): Storage | undefined {
  try {
    return globalThis.localStorage;
  } catch {
    // Refused, as in a sandboxed frame.
    return undefined;
  }
}

export class Watermarks {
  readonly #watermark: Watermark | undefined;
  readonly #store: Store;
  readonly #warn: (message: string) => void;
  #warned = false;
  /** What waits to be written. Of one key the newest is enough: it says all that those before it said. */
  readonly #next = new Map<string, string>();
  #writing: Promise<void> | undefined;

  constructor(given: Watermark | undefined, store: Store, warn: (message: string) => void) {
    this.#watermark = watermarkFor(given, store);
    this.#store = store;
    this.#warn = warn;
  }

  /** There is something to ask. */
  get known(): boolean {
    return this.#watermark !== undefined || typeof this.#store.dataLoss === "function";
  }

  /** What is known of a session outside of its store. What cannot be asked is not known. */
  async read(key: string): Promise<{ mark: string | undefined; lost: string | undefined }> {
    const [mark, lost] = await Promise.all([
      this.#ask(() => this.#watermark?.get(key)),
      this.#ask(() => this.#store.dataLoss?.()),
    ]);
    return { mark, lost };
  }

  async #ask(what: () => unknown): Promise<string | undefined> {
    try {
      const text = await within(WAIT_MS, undefined, what);
      if (typeof text === "string" && text !== "") return text;
      if (text !== undefined && text !== null && text !== "") throw new TypeError("it must be a text");
    } catch (error) {
      this.#failed(error);
    }
    return undefined;
  }

  /** Begins to write a mark, at once where that needs no waiting. Never throws: no append fails for it. */
  write(key: string, value: string): void {
    if (!this.#watermark) return;
    this.#next.set(key, value);
    if (!this.#writing) this.#flush();
  }

  #flush(): void {
    for (const [key, value] of this.#next) {
      this.#next.delete(key);
      try {
        const written = this.#keep(key, value);
        if (!isPromise(written)) continue;
        this.#writing = Promise.resolve(written).then(
          () => this.#written(),
          (error) => {
            this.#failed(error);
            this.#written();
          },
        );
        return;
      } catch (error) {
        this.#failed(error);
      }
    }
  }

  /** Keeps a mark unless a greater one is there: another tab that wrote later may have recorded its own first. */
  #keep(key: string, value: string): unknown {
    if (value === "") return this.#watermark?.set(key, value);
    const set = (kept: unknown) => {
      if (typeof kept !== "string" || kept < value) return this.#watermark?.set(key, value);
      return undefined;
    };
    const kept: unknown = this.#watermark?.get(key);
    return isPromise(kept) ? Promise.resolve(kept).then(set) : set(kept);
  }

  #written(): void {
    this.#writing = undefined;
    this.#flush();
  }

  /** Waits for what is being written, but not for ever. */
  async settled(): Promise<void> {
    try {
      await within(WAIT_MS, undefined, async () => {
        while (this.#writing) await this.#writing;
      });
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (this.#warned) return;
    this.#warned = true;
    const why = error instanceof Error ? error.message : String(error);
    this.#warn(`the watermark of this session failed: what the platform removes may go unnoticed (${why})`);
  }
}
