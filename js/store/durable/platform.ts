/**
 * What the store uses of the platform, in shapes that the official types fit: who has `@cloudflare/workers-types` passes
 * theirs, and nobody needs it.
 */

/** What the store uses of the first argument of a Durable Object's constructor (`DurableObjectState`). */
export interface DurableObjectContext {
  readonly id: { toString(): string };
  readonly storage: DurableObjectStorage;
}

export interface DurableObjectStorage {
  readonly sql: { exec(query: string, ...bindings: SqlValue[]): { toArray(): Record<string, unknown>[] } };
  transactionSync<T>(work: () => T): T;
  sync(): Promise<void>;
}

export type SqlValue = Uint8Array<ArrayBuffer> | string | number | null;

/** What the store uses of an `R2Bucket`. */
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
