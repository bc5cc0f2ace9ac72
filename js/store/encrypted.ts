/** Encryption at rest, over any store: values are sealed before they reach it, keys of rows are not. */

import { checkObject, checkOptions, invalidOption } from "../checks.js";
import { CompactionError } from "../errors.js";
import type { Batch, Damaged, Key, Store } from "../types.js";
import { checkCryptoKey, idOf, KeyMissing, Keyring, OVERHEAD, RESERVED, seal, unseal } from "./keyring.js";
import type { Sealer } from "./keyring.js";
import { checkKey, checkScan, isDamaged, ownBatch, startsWith } from "./keys.js";
import type { ScanOptions, Value } from "./keys.js";
import { notices } from "./notices.js";
import { overlayOf } from "./overlay.js";

/** Options of `encryptedStore`. */
export interface EncryptionOptions {
  /** An AES-GCM key with usages `encrypt` and `decrypt`, preferably not extractable. It decrypts everything. */
  encryptionKey: CryptoKey;
  /** The previous key, to change it: a store that it opens is switched to `encryptionKey` in one small commit. */
  previousEncryptionKey?: CryptoKey | undefined;
}

type Row = [Key, Uint8Array];
type Found = [Key, Value];

/** A writer whose keys were deleted while it worked begins again; it meets that once for each deletion of others. */
const TRIES = 4;

/**
 * Wraps `store` so that every value is encrypted (AES-256-GCM, a fresh IV for each, bound to its table and key). The
 * number, length and time of rows remain visible. Each session has its own key, which is deleted in the commit that
 * deletes the session and its name. A changed or moved row counts as damaged, alone; keys are stored twice, and a damaged
 * copy is restored from the other (`repaired`).
 *
 * A store is encrypted from its first row or never: calls reject with `invalid_option` for a store with unencrypted rows,
 * and for a wrong key.
 */
export function encryptedStore(store: Store, options: EncryptionOptions): Store {
  checkOptions(options, ["encryptionKey", "previousEncryptionKey"]);
  const { encryptionKey, previousEncryptionKey } = options;
  checkCryptoKey("encryptionKey", encryptionKey);
  if (previousEncryptionKey !== undefined) checkCryptoKey("previousEncryptionKey", previousEncryptionKey);
  checkObject(store);
  if (store.caps.atomic !== "batch" || !store.caps.cas) {
    throw invalidOption("store", 'must have caps.atomic "batch" and caps.cas to be encrypted');
  }
  const caps = {
    ...store.caps,
    maxValueBytes: store.caps.maxValueBytes - OVERHEAD,
    // Each row may bring those of its key along, and all of them those of the root key.
    maxBatchOps: Math.floor((store.caps.maxBatchOps - 2) / 3),
    reportsDamage: true,
    // Some stores know it only once they were opened.
    get durable() {
      return store.caps.durable;
    },
  };
  const { tell, listen } = notices();
  const keyring = new Keyring(store, encryptionKey, previousEncryptionKey, (reason) => tell({ kind: "repaired", reason }));
  const running = new Set<Promise<unknown>>();
  let closed = false;

  /** Runs `work` unless the store was closed, which waits for it. */
  async function open<T>(work: () => Promise<T>): Promise<T> {
    if (closed) throw new CompactionError("closed", "The store was closed: make a new one");
    const run = work();
    running.add(run);
    try {
      return await run;
    } finally {
      running.delete(run);
    }
  }

  /** Reads again where a key is missing: it was deleted, or the whole store was, after it was last read. */
  async function consistent<T>(read: (isLast: boolean) => Promise<T>): Promise<T> {
    try {
      return await read(false);
    } catch (error) {
      if (!(error instanceof KeyMissing)) throw error;
      keyring.forget();
      return read(true);
    }
  }

  /** The values, opened. Those of a deleted session are no more than keys. */
  async function unsealed(rows: Found[], isLast: boolean): Promise<(Value | undefined)[]> {
    const ids = rows.map(([key, sealed]) => (isDamaged(sealed) ? sealed : idOrDamage(key, sealed)));
    const sound = rows.flatMap(([key], i) => (typeof ids[i] === "string" ? [{ key, id: ids[i] }] : []));
    const sealers = (await keyring.found(sound, isLast)).values();
    return Promise.all(
      rows.map(async ([key, sealed], i) => {
        const id = ids[i]!;
        if (typeof id !== "string") return id;
        const sealer = sealers.next().value;
        if (!sealer || "damaged" in sealer) return sealer;
        return unseal(sealer.key, key, sealed as Uint8Array).catch(damage);
      }),
    );
  }

  async function read(keys: Key[], isLast: boolean): Promise<(Value | undefined)[]> {
    await keyring.root();
    const sealed = await store.read(keys);
    const there = keys.flatMap((key, i): Found[] => (sealed[i] ? [[key, sealed[i]]] : []));
    const values = (await unsealed(there, isLast)).values();
    return sealed.map((value) => value && values.next().value);
  }

  async function scan(prefix: Key, options: ScanOptions, isLast: boolean): Promise<Found[]> {
    await keyring.root();
    const { limit, maxBytes, keysOnly = false } = options;
    const page: Found[] = [];
    let bytes = 0;
    for (let { after } = options; page.length < limit; ) {
      const left = limit - page.length;
      const room = Math.max(maxBytes - bytes, 0) + left * OVERHEAD;
      const found = await store.scan(prefix, { ...options, ...(after && { after }), limit: left, maxBytes: room });
      if (found.length === 0) break;
      after = found.at(-1)![0];
      const visible = found.filter(([key]) => !startsWith(key, RESERVED));
      const values = keysOnly ? visible.map(() => new Uint8Array()) : await unsealed(visible, isLast);
      for (const [i, [key]] of visible.entries()) {
        const value = values[i];
        if (!value) continue;
        bytes += isDamaged(value) ? 0 : value.byteLength;
        if (page.length > 0 && bytes > maxBytes) return page;
        page.push([key, value]);
      }
      // Without rows that are not shown, `room` makes this page the whole one.
      if (values.length === found.length && values.every(Boolean)) return page;
    }
    return page;
  }

  /** The batch as the store takes it, and what it does to the keys of sessions. */
  async function sealedBatch(batch: Batch) {
    const root = await keyring.root();
    const shredded = new Map<string | number, Key[]>();
    for (const key of isReset(batch) ? [] : batch.deletes) {
      if (key[0] === "sessions" && key.length === 2) shredded.set(key[1]!, await keyring.rowsOf(key[1]!));
    }
    const written = new Set(batch.puts.flatMap(([key]) => (key[0] === "meta" ? [] : [key[1]!])));
    const sealers = new Map<string | number, Sealer>();
    for (const session of written) sealers.set(session, await keyring.ofSession(session, shredded.has(session)));
    const used = [...sealers.values()];
    for (const sealer of batch.puts.length > 0 ? [root, ...used] : []) await keyring.mend(sealer);
    const unwritten = used.flatMap(({ unwritten }) => unwritten);
    const isRootUsed = unwritten.length > 0 || batch.puts.some(([key]) => key[0] === "meta");
    const rows = [...(isRootUsed ? [root] : []), ...used.filter(({ unwritten }) => unwritten.length === 0)].map(({ row }) => row);
    const sealed = batch.puts.map(async ([key, value]): Promise<Row> => {
      const sealer = key[0] === "meta" ? root : sealers.get(key[1]!)!;
      return [key, await seal(sealer, key, value)];
    });
    return {
      batch: {
        expect: [...batch.expect, ...rows.map((key) => ({ key, version: 1 }))],
        puts: [...(await Promise.all(sealed)), ...unwritten],
        deletes: [...batch.deletes, ...[...shredded.values()].flat()],
        durability: batch.durability,
      },
      /** Rows of keys that must be there. */
      rows,
      done() {
        for (const [session, rows] of shredded) keyring.release(session, rows);
        for (const [session, sealer] of sealers) keyring.hold(session, sealer);
      },
    };
  }

  async function commit(owned: Batch): Promise<void> {
    for (let tries = 1; ; tries++) {
      const { batch, rows, done } = await sealedBatch(owned);
      try {
        await store.commit(batch);
        return done();
      } catch (error) {
        const isConflict = CompactionError.isInstance(error) && error.code === "conflict";
        if (!isConflict || tries === TRIES) throw error;
        // Of the batch's own expectations, unless a key that it used is gone.
        if ((await store.read(rows)).every(Boolean)) throw error;
        keyring.forget();
      }
    }
  }

  /** The id of the key that a row was sealed with, or why there is none. */
  function idOrDamage(key: Key, sealed: Uint8Array): string | Damaged {
    try {
      return idOf(sealed, key);
    } catch (error) {
      return damage(error);
    }
  }

  /** What is not what was sealed, as one row among others. */
  function damage(error: unknown): Damaged {
    if (CompactionError.isInstance(error) && error.code === "store_corrupt") return { damaged: error.message };
    throw error;
  }

  function checkFree(key: Key): void {
    if (startsWith(key, RESERVED)) {
      throw new CompactionError("invalid_option", `Key ${JSON.stringify(key)} is one of the encryption's own`);
    }
  }

  return {
    caps,
    ...(store.name !== undefined && { name: store.name }),

    read: (keys) =>
      open(async () => {
        keys.forEach(checkKey);
        keys.forEach(checkFree);
        const asked = keys.map((key) => [...key]);
        return asked.length === 0 ? [] : consistent((isLast) => read(asked, isLast));
      }),

    scan: (prefix, options) =>
      open(async () => {
        checkScan(prefix, options);
        checkFree(prefix);
        const [under, how] = [[...prefix], { ...options }];
        return consistent((isLast) => scan(under, how, isLast));
      }),

    commit: (batch) =>
      open(async () => {
        const owned = ownBatch(batch, caps);
        for (const [key] of owned.puts) checkFree(key);
        for (const key of [...owned.deletes, ...owned.expect.map(({ key }) => key)]) checkFree(key);
        if (owned.expect.length + owned.puts.length + owned.deletes.length > 0) await commit(owned);
      }),

    ...(store.purge && { purge: () => open(async () => store.purge!()) }),
    ...(store.persisted && { persisted: () => store.persisted!() }),
    ...(store.changes && { changes: (listener) => store.changes!(listener) }),
    notices(listener) {
      const ends = [listen(listener), store.notices?.(listener)];
      return () => ends.forEach((end) => end?.());
    },
    // What is mended there stays in memory.
    remains: async () => encryptedStore((await store.remains?.()) ?? overlayOf(store), options),

    ...(store.dataLoss && { dataLoss: () => open(async () => store.dataLoss!()) }),

    async close() {
      closed = true;
      await Promise.allSettled(running);
      await store.close?.();
    },
  };
}

/** A session's row that goes alone is to be written anew, because its version is unknown: the session stays, and so do its
 *  keys, whoever wrote the row meanwhile. Who deletes the session removes its name, or marks it, in the same batch. */
function isReset({ puts, deletes }: Batch): boolean {
  const [key, ...more] = deletes;
  return key?.[0] === "sessions" && more.length === 0 && puts.length === 0;
}
