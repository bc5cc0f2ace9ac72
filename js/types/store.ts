/** The contract of stores. */

/** A value, or a promise of it: stores may be synchronous. */
export type MaybePromise<T> = T | Promise<T>;
/** Key of a stored row, made by the library, never from user text: the table (`meta`, `sessions`, `log`, `blobs`, `views`,
 *  `jobs`), then one or more parts of the row. Keys sort part by part, a prefix before longer keys: numbers (whole,
 *  from 0 to `Number.MAX_SAFE_INTEGER`, by value) before strings (well formed, by UTF-16 code unit). */
export type Key = readonly (string | number)[];

/** The changes of one commit. A key appears at most once in `puts` and `deletes`, else the batch is refused
 *  (`invalid_option`). */
export interface Batch {
  /** Expected versions. If one differs, nothing is written and `commit` rejects with `conflict`. The version of a key is
   *  the number of commits that put it, from 1; it starts again after a delete. `null`: the key must not exist. */
  expect: { key: Key; version: number | null }[];
  /** Rows to write. The store copies the values before `commit` returns. */
  puts: [Key, Uint8Array][];
  /** Keys to delete. A key that does not exist is no error. */
  deletes: Key[];
  /** `strict`: resolve when the data are on the disk. `relaxed`: resolve earlier, for changes that may be lost. */
  durability: "strict" | "relaxed";
}

/** Returned in place of a stored value that is not what was written. The row still exists, with its version. */
export interface Damaged {
  /** Why, for people. */
  readonly damaged: string;
}

/** A store of sessions: a sorted map from keys to bytes with atomic, conditional commits. Methods may be synchronous or
 *  asynchronous; `storeConformance` checks everything described here. Errors have the codes of `CompactionError`:
 *  `conflict`, `quota_exceeded`, `too_large`, `unsupported_value`, `invalid_option` (a key), `store_unavailable`,
 *  `store_corrupt`, `schema_too_new`, `closed` mean that nothing was written. After `indeterminate` the batch may have
 *  been written: read again. */
export interface Store {
  /** Capabilities. Sessions need `atomic: "batch"` and `cas: true`. */
  readonly caps: {
    /** `batch`: a commit is written whole or not at all. */
    atomic: "batch" | "single-key";
    /** `commit` compares `expect` and writes in one atomic step. */
    cas: boolean;
    /** What a strict commit survives: `synced` a power cut, `process` a crash of the process, `none` neither. */
    durable: "synced" | "process" | "none";
    /** Largest value, in bytes. A larger one is refused with `too_large`. */
    maxValueBytes: number;
    /** Most expectations, puts and deletes of one batch, together. A larger batch is refused with `too_large`. */
    maxBatchOps: number;
    /** The store detects changed bytes and returns `{ damaged }` for that row alone; the row can be expected, replaced and
     *  deleted as before. Without this a store returns the bytes as they are, and the session, which checks every row,
     *  detects the damage. A store must not throw for one damaged row: that makes the whole session unreadable. */
    readonly reportsDamage?: boolean;
  };
  /** Reads values, in the order of `keys` and from one consistent state; `undefined` for a key that does not exist. The
   *  caller owns each value, in a buffer of its exact length. */
  read(keys: Key[]): MaybePromise<(Uint8Array | Damaged | undefined)[]>;
  /** Lists the entries whose key begins with `prefix` (at least a table), in key order, or from the last with `reverse`.
   *  Starts after `after`, a key under the prefix that need not exist. Stops at `limit` entries, or before the values
   *  exceed `maxBytes`, but returns at least one entry if there is any. With `keysOnly` the values are empty. */
  scan(
    prefix: Key,
    options: { after?: Key; limit: number; maxBytes: number; reverse?: boolean; keysOnly?: boolean },
  ): MaybePromise<[Key, Uint8Array | Damaged][]>;
  /** Writes a batch whole or not at all. Resolves when it is as durable as `durability` asks. Rejects with `conflict` if
   *  an expectation fails. */
  commit(batch: Batch): MaybePromise<void>;
  /** If the platform deleted this store's data, such as a browser that cleared its database: why, in different words for
   *  each loss; `undefined` if no loss is known. A loss is recorded, if there is a place for it, until it was returned
   *  once. Opens the store. */
  dataLoss?(): MaybePromise<string | undefined>;
  /** Whether the platform keeps the data when space runs out; `undefined` if it does not say. May take as long as the user
   *  takes to answer a question: no call of a session waits for it. */
  persisted?(): MaybePromise<boolean | undefined>;
  /** Calls `listener` after commits that wrote the row of a session (`["sessions", sid]`), with the row's new version:
   *  also after commits of other tabs or processes. Calls may be late or missing, because sessions read their row before
   *  they prepare. Returns the function that ends this. Must not keep a process alive. */
  changes?(listener: (sid: string, ver: number) => void): () => void;
  /** Calls `listener` with notices about the store itself, such as repaired rows, or a copy that cannot be written.
   *  Notices found before the first listener are delivered to it. Returns the function that ends this. Must not keep a
   *  process alive. */
  notices?(listener: (notice: StoreNotice) => void): () => void;
  /** Returns a read-only store of the rows that can still be read, for `salvage`, even if this store does not open. Valid
   *  until this one is closed. Its `dataLoss` says what is missing. */
  remains?(): MaybePromise<Store>;
  /** Overwrites or deletes the bytes of replaced and deleted rows, which would otherwise stay in the files. Called by
   *  `archive.erase`. */
  purge?(): MaybePromise<void>;
  /** Waits for pending calls. Later calls reject with `closed`. */
  close?(): MaybePromise<void>;
  /** Name of a database that the platform can delete. The default `watermark` records its sessions under this name. */
  readonly name?: string;
}

/** A notice about a store. A session emits `repaired` as event `data-loss` of that kind, and `warning` as event `warning`. */
export type StoreNotice =
  | { kind: "repaired"; reason: string }
  | { kind: "warning"; code: string; message: string };

/** Options of `mirrorStore`. All processes that use a pair must use the same. */
export interface MirrorOptions {
  /** When a commit resolves: `both` (default) when both copies have it; `first` when the first copy has it, before the
   *  second. */
  acknowledge?: "both" | "first";
}

/** Two stores as one, made by `mirrorStore`. `close` closes both. */
export interface MirrorStore extends Store {
  /** How many commits the second copy lacks, as far as this process knows; `Infinity` until it is a whole copy. With
   *  `acknowledge: "first"`, losing the first copy loses at most this many. */
  readonly behind: number;
  /** Calls `listener` with notices, such as repaired rows, or a copy that does not open. Returns the function that ends
   *  this. */
  notices(listener: (notice: StoreNotice) => void): () => void;
  /** Reads every row of both copies, page by page, and repairs rows that one of them lost. Runs by itself when the pair is
   *  opened, if the last check is more than a day ago. `signal` ends it between two pages (`aborted`). */
  check(options?: { signal?: AbortSignal }): Promise<MirrorReport>;
}

/** Result of `MirrorStore.check()`. */
export interface MirrorReport {
  /** Compared rows. */
  rows: number;
  /** Rows that one copy had lost and that were restored from the other. */
  repaired: number;
  /** Rows that are lost or damaged in both copies. */
  lost: number;
}

/** Records, outside the store, how far each session is, so that a lost or outdated database is noticed (option
 *  `advanced.watermark`). */
export interface Watermark {
  /** Returns the text last set under this key, or nothing. Called when a session is opened, and before the first append to
   *  a new one; both continue without it after 10 s. */
  get(key: string): MaybePromise<string | null | undefined>;
  /** Records a text. No append waits for it. Not called again before the last call has ended, then with the newest value,
   *  and not if `get` returns a greater text. An empty value means that the session was deleted. */
  set(key: string, value: string): MaybePromise<void>;
}
