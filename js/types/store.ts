/** Where sessions are kept. */

export type MaybePromise<T> = T | Promise<T>;
/** Made by the library, never from user text: first the table (`meta`, `sessions`, `log`, `blobs`, `views`, `jobs`),
 *  then the row, of one part or more. Strings are well formed and sort by code unit, numbers are finite and sort by
 *  value, numbers before strings, a prefix before what it begins. */
export type Key = readonly (string | number)[];

/** What one commit writes. A key is at most once among `puts` and `deletes`, else the batch is refused. */
export interface Batch {
  /** All must hold, or nothing is written and `conflict` is thrown. `version` counts the commits that put the key,
   *  from 1, whether they expected one or not, and begins again when the key was deleted; `null` means that the key
   *  must not exist. */
  expect: { key: Key; version: number | null }[];
  /** The store copies the values before `commit` returns. */
  puts: [Key, Uint8Array][];
  /** A key that does not exist is no error. */
  deletes: Key[];
  /** `strict` resolves after the data were handed to the disk. */
  durability: "strict" | "relaxed";
}

/** A stored value that is not what was written, and why. Its row is there, with its version. */
export interface Damaged {
  readonly damaged: string;
}

/** Where sessions are kept. Methods may be synchronous or asynchronous. `storeConformance` checks all that is said
 *  here. Errors have the codes of `CompactionError`: `conflict`, `quota_exceeded`, `too_large`, `unsupported_value`,
 *  `invalid_option` (a key), `store_unavailable`, `store_corrupt`, `schema_too_new`, `closed`: nothing was written.
 *  Only `indeterminate` leaves open whether the batch was written: read again. */
export interface Store {
  readonly caps: {
    atomic: "batch" | "single-key";
    cas: boolean;
    /** What a strict commit survives: `synced` a power cut, `process` a crash of the process. */
    durable: "synced" | "process" | "none";
    /** A larger value is refused with `too_large`. */
    maxValueBytes: number;
    /** A batch of more expectations, puts and deletes together is refused with `too_large`. */
    maxBatchOps: number;
    /** It notices what it has and did not write, and answers `{ damaged }` for that row alone: the row can be expected,
     *  replaced and deleted as before. A store that cannot tell hands out the bytes as they are, and the session, which
     *  checks every row, notices; one that throws for one row closes the session for all. */
    readonly reportsDamage?: boolean;
  };
  /** Values in the order of `keys`, as they were at one moment; `undefined` where there is none. A value is the
   *  caller's own, in a buffer of its exact length. */
  read(keys: Key[]): MaybePromise<(Uint8Array | Damaged | undefined)[]>;
  /** Entries whose key begins with `prefix` (a table at least), in key order, or from the last back with `reverse`.
   *  Begins past `after`, a key under the prefix that need not exist. Stops at `limit` entries or before its values
   *  pass `maxBytes` (but returns one entry at least). With `keysOnly`, values are empty. */
  scan(
    prefix: Key,
    options: { after?: Key; limit: number; maxBytes: number; reverse?: boolean; keysOnly?: boolean },
  ): MaybePromise<[Key, Uint8Array | Damaged][]>;
  /** All or nothing; resolves when it is as durable as asked. */
  commit(batch: Batch): MaybePromise<void>;
  /** Why rows that this store held are gone, where the platform removed them and the store can tell: the browser
   *  cleared or lost its database, say. In words, others for each loss; `undefined` while it knows of none. A loss is
   *  remembered, where there is a place for it, until it was told once. Opens the store where it is not open. */
  dataLoss?(): MaybePromise<string | undefined>;
  /** Whether the platform keeps what is stored when space runs out; `undefined` where it does not say. It may wait for
   *  the user's answer for as long as that takes: no call of a session waits for it. */
  persisted?(): MaybePromise<boolean | undefined>;
  /** Calls `listener` after commits that wrote the row of a session (`["sessions", sid]`), with the version that it then
   *  has: those of other tabs or processes too, of this store's own or not, late or never. Nothing relies on it: a session
   *  looks at its row itself before it prepares. Returns what ends it, and keeps no process alive. */
  changes?(listener: (sid: string, ver: number) => void): () => void;
  /** Calls `listener` with what the store did or could not do beside the calls on it: rows that it made whole again, a copy
   *  that it cannot write. What came while nobody listened is told to the first who does. Returns what ends it, and keeps no
   *  process alive. */
  notices?(listener: (notice: StoreNotice) => void): () => void;
  /** The rows that can still be read, for `salvage`, also where the store does not open: a store that is only read, while
   *  this one is not closed. Its `dataLoss` says what is missing. */
  remains?(): MaybePromise<Store>;
  /** Removes from its files what was replaced or deleted, where it would stand there until it is needed for something else.
   *  `session.erase` calls it. */
  purge?(): MaybePromise<void>;
  /** Waits for what is under way. What is called later rejects with `closed`. */
  close?(): MaybePromise<void>;
  /** The name of a database that the platform can remove: the watermarks of its sessions are kept under it. */
  readonly name?: string;
}

/** What a store tells beside its answers. A session tells `repaired` as `data-loss` of that kind, and `warning` as such. */
export type StoreNotice =
  | { kind: "repaired"; reason: string }
  | { kind: "warning"; code: string; message: string };

export interface MirrorOptions {
  /** When a commit resolves: `both` (default) when both copies have it, `first` when the first has it, and the second follows. */
  acknowledge?: "both" | "first";
}

/** Two stores as one (`mirrorStore`). `close` closes both. */
export interface MirrorStore extends Store {
  /** By how many commits the second copy is behind the first, as far as this process knows; `Infinity` while the
   *  second is not a whole copy yet. With `acknowledge: "first"` so many are lost at most when the first copy is. */
  readonly behind: number;
  notices(listener: (notice: StoreNotice) => void): () => void;
  /** Reads every row of both copies, page by page, and makes those whole again that one of them lost. It is done by itself
   *  when the pair is opened and it was not done for a day. `signal` ends it between two pages. */
  check(options?: { signal?: AbortSignal }): Promise<MirrorReport>;
}

/** What a `check` of two copies found. */
export interface MirrorReport {
  /** Rows that were compared. */
  rows: number;
  /** Rows that one copy had lost and has again. */
  repaired: number;
  /** Rows that neither copy has as they were written. */
  lost: number;
}

/** Keeps texts outside of a store. */
export interface Watermark {
  /** What was set last under this key. It is asked when a session is opened, and before the first append to a new one; both
   *  go on without an answer after 10 s. */
  get(key: string): MaybePromise<string | null | undefined>;
  /** No append waits for it. It is called again only when the last call has ended, with the newest value alone, and not
   *  where `get` finds a greater text. An empty value: the session was deleted. */
  set(key: string, value: string): MaybePromise<void>;
}
