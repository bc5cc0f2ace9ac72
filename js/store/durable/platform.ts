/**
 * The parts of the platform that the store uses. The types of `@cloudflare/workers-types` fit them, and are not required.
 */

/** The `ctx` of a Durable Object's constructor (`DurableObjectState`), as far as the store uses it. */
export interface DurableObjectContext {
  readonly id: { toString(): string };
  readonly storage: DurableObjectStorage;
}

/** `ctx.storage` of a Durable Object, as far as the store uses it. */
export interface DurableObjectStorage {
  readonly sql: { exec(query: string, ...bindings: SqlValue[]): { toArray(): Record<string, unknown>[] } };
  transactionSync<T>(work: () => T): T;
  sync(): Promise<void>;
}

/** A value of SQLite. */
export type SqlValue = Uint8Array<ArrayBuffer> | string | number | null;

/** An `R2Bucket`, as far as the store uses it. */
export interface ObjectBucket {
  put(
    name: string,
    value: Uint8Array<ArrayBuffer>,
    options: { onlyIf: { etagDoesNotMatch: string } },
  ): Promise<{ readonly size: number } | null>;
  get(name: string): Promise<{ arrayBuffer(): Promise<ArrayBuffer> } | null>;
  head(name: string): Promise<{ readonly size: number } | null>;
  delete(names: string[]): Promise<void>;
}
