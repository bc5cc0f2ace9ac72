/** How the conformance checks look at a store. Their own assertions: they run where there is no `node:assert`. */

import { CompactionError } from "../errors.js";
import type { ErrorCode } from "../errors.js";
import type { Batch, Key, Store } from "../types.js";
import { isDamaged, MAX_VALUE_BYTES } from "./keys.js";
import type { ScanOptions, Value } from "./keys.js";

export type Row = [Key, Uint8Array];

/** A check; `damage` changes what is at rest under a key. */
export type Check = (probe: Probe, damage: (key: Key) => Promise<void>) => Promise<void>;

/** A store with every method asynchronous, and the short forms that the checks use. */
export class Probe {
  readonly caps: Store["caps"];
  readonly #store: Store;

  constructor(store: Store) {
    this.caps = store.caps;
    this.#store = store;
  }

  /** Listens if the store reports what was written. */
  get changes(): Store["changes"] {
    const store = this.#store;
    return store.changes && ((listener) => store.changes!(listener));
  }

  async read(keys: Key[]): Promise<(Uint8Array | undefined)[]> {
    const values = await this.answers(keys);
    return values.map((value, i) => (value === undefined ? undefined : sound(keys[i]!, value)));
  }

  async scan(prefix: Key, options: Partial<ScanOptions> = {}): Promise<Row[]> {
    const entries = await this.entries(prefix, options);
    return entries.map(([key, value]) => [key, sound(key, value)]);
  }

  /** What `read` answers, damaged or not. */
  async answers(keys: Key[]): Promise<(Value | undefined)[]> {
    return this.#store.read(keys);
  }

  /** What `scan` answers, damaged or not. */
  async entries(prefix: Key, options: Partial<ScanOptions> = {}): Promise<[Key, Value][]> {
    return this.#store.scan(prefix, { limit: 100_000, maxBytes: MAX_VALUE_BYTES, ...options });
  }

  async commit(batch: Partial<Batch>): Promise<void> {
    const whole: Batch = { expect: [], puts: [], deletes: [], durability: "strict" };
    await this.#store.commit(Object.assign(whole, batch));
  }

  put(...rows: [Key, string][]): Promise<void> {
    return this.commit({ puts: rows.map(([key, text]): Row => [key, bytesOf(text)]) });
  }

  /** What the commit threw, or undefined. */
  async outcome(batch: Partial<Batch>): Promise<unknown> {
    return this.commit(batch).then(
      () => undefined,
      (error: unknown) => error ?? "nothing",
    );
  }

  /** Fails unless the commit is refused, with `code` where one is given. */
  async refused(code: ErrorCode | undefined, batch: Partial<Batch>): Promise<void> {
    const error = await this.outcome(batch);
    check(error !== undefined, `a commit was acknowledged instead of refused${code ? ` with ${code}` : ""}`);
    if (code) codeIs(code, error);
  }

  async keys(prefix: Key, options: Partial<ScanOptions> = {}): Promise<Key[]> {
    const keys = (rows: Row[]) => rows.map(([key]) => key);
    const withoutValues = keys(await this.scan(prefix, { ...options, keysOnly: true }));
    same(withoutValues, keys(await this.scan(prefix, options)), "keys with and without values");
    return withoutValues;
  }

  async contents(table: string): Promise<[Key, string | undefined][]> {
    return (await this.scan([table])).map(([key, value]) => [key, textOf(value)]);
  }

  async pages(prefix: Key, options: Partial<ScanOptions>): Promise<Row[][]> {
    const pages: Row[][] = [];
    for (let after: Key | undefined; pages.length < 100;) {
      const page = await this.scan(prefix, after ? { ...options, after } : options);
      if (page.length === 0) return pages;
      pages.push(page);
      after = page.at(-1)![0];
    }
    throw new Error("a scan goes on for ever");
  }
}

function sound(key: Key, value: Value): Uint8Array {
  if (isDamaged(value)) throw new Error(`${JSON.stringify(key)} is told as damaged: ${value.damaged}`);
  return value;
}

export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function textOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes && new TextDecoder().decode(bytes);
}

export function check(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}

/** Compares plain data. */
export function same(found: unknown, expected: unknown, what: string): void {
  const write = (value: unknown) =>
    JSON.stringify(value, (_, part: unknown) => (part === undefined ? "(undefined)" : part));
  const [a, b] = [write(found), write(expected)];
  check(a === b, `${what}: expected ${b?.slice(0, 300)}, found ${a?.slice(0, 300)}`);
}

export function codeIs(code: ErrorCode, error: unknown): void {
  check(
    CompactionError.isInstance(error) && error.code === code,
    `expected a CompactionError with code ${code}, found ${String(error)}`,
  );
}
