/**
 * The keys of an encrypted store, and what they do to a value.
 *
 *     app's key ─wraps─▶ root key ─wraps─▶ a key for each session ─seals─▶ its rows
 *                           └─seals─▶ rows of `meta`
 *
 * Keys stand in rows of their own, written once: `["meta", "keys", "root", nth]`, where `nth` counts the app's keys, and
 * `["meta", "keys", "of", session, id]`. A writer expects the rows of the keys that it used, so nothing is ever sealed
 * with a key that was deleted meanwhile.
 */

import { invalidOption } from "../checks.js";
import { CompactionError } from "../errors.js";
import type { Key, Store } from "../types.js";
import { hex, randomId, startsWith, TABLES } from "./keys.js";

/** Everything under this prefix is the keyring's. */
export const RESERVED: Key = ["meta", "keys"];
const ROOTS: Key = [...RESERVED, "root"];

/** Layout of a sealed value: this number, the id of its key, the IV, the ciphertext with its tag. */
const FORMAT = 1;
const ID_BYTES = 8;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + ID_BYTES;
const KEY_BYTES = 32;
export const OVERHEAD = HEAD_BYTES + IV_BYTES + TAG_BYTES;

/** Session keys that are held; more are read again. */
const MOST_HELD = 512;

type Bytes = Uint8Array<ArrayBuffer>;

/** A key with the row that must be there for it to be used. */
export interface Sealer {
  readonly id: string;
  readonly key: CryptoKey;
  readonly row: Key;
  /** What is to be written to that row with the first value: the key is new. */
  readonly wrapped?: Uint8Array;
}

export class Keyring {
  readonly #store: Store;
  readonly #key: CryptoKey;
  readonly #previous: CryptoKey | undefined;
  #root: Promise<Sealer> | undefined;
  /** Keys of sessions, by row. */
  readonly #held = new Map<string, Sealer>();
  /** Rows of the keys that sessions are written with, by session. */
  readonly #current = new Map<string, Sealer>();

  constructor(store: Store, key: CryptoKey, previous: CryptoKey | undefined) {
    this.#store = store;
    this.#key = key;
    this.#previous = previous;
  }

  /** The root key; begins the keyring of an empty store. */
  root(): Promise<Sealer> {
    if (this.#root) return this.#root;
    const root = this.#openRoot();
    this.#root = root;
    root.catch(() => (this.#root = undefined));
    return root;
  }

  /** The key that rows of `session` are written with; a new one where there is none, or where `begin` says so. */
  async ofSession(session: string | number, begin: boolean): Promise<Sealer> {
    const current = begin ? undefined : this.#current.get(JSON.stringify(session));
    if (current) return current;
    const scan = { limit: 1, maxBytes: OVERHEAD + KEY_BYTES };
    const [entry] = begin ? [] : await this.#store.scan(keysOf(session), scan);
    if (entry) return this.hold(session, await this.#unwrap(entry[0], entry[1]));
    const id = randomId(ID_BYTES);
    const row = [...keysOf(session), id];
    const raw = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
    const wrapped = await seal(await this.root(), row, raw);
    return { id, row, wrapped, key: await imported(raw) };
  }

  /** `sealer` is in the store: it is used from now on. */
  hold(session: string | number, sealer: Sealer): Sealer {
    if (this.#held.size >= MOST_HELD) this.forget();
    const { id, key, row } = sealer;
    const held = { id, key, row };
    this.#held.set(JSON.stringify(row), held);
    this.#current.set(JSON.stringify(session), held);
    return held;
  }

  /** The keys that `sealed` rows were sealed with; none for a session whose key was deleted, which is gone. */
  async found(sealed: { key: Key; id: string }[]): Promise<(Sealer | undefined)[]> {
    const root = await this.root();
    if (sealed.some(({ key, id }) => key[0] === "meta" && id !== root.id)) throw new KeyMissing(root.row);
    const rows = sealed.map(({ key, id }) => (key[0] === "meta" ? root.row : [...keysOf(key[1]!), id]));
    const missing = rows.filter((row) => row !== root.row && !this.#held.has(JSON.stringify(row)));
    const asked = [...new Map(missing.map((row) => [JSON.stringify(row), row])).values()];
    const sealers = new Map<string, Sealer | undefined>();
    if (asked.length > 0) {
      // With the sessions' rows, as they were at one moment: a key is deleted together with the session.
      const sessions = asked.map((row): Key => ["sessions", row[3]!]);
      const values = await this.#store.read([...asked, ...sessions]);
      for (const [nth, row] of asked.entries()) {
        const wrapped = values[nth];
        if (wrapped) sealers.set(JSON.stringify(row), this.hold(row[3]!, await this.#unwrap(row, wrapped)));
        else if (values[asked.length + nth]) throw new KeyMissing(row);
      }
    }
    return rows.map((row) => {
      if (row === root.row) return root;
      const name = JSON.stringify(row);
      return sealers.get(name) ?? this.#held.get(name);
    });
  }

  /** The rows of the keys of `session`, to be deleted with it. */
  async rowsOf(session: string | number): Promise<Key[]> {
    const entries = await this.#store.scan(keysOf(session), { limit: 1_000, maxBytes: 1, keysOnly: true });
    return entries.map(([row]) => row);
  }

  /** The keys in `rows` are no longer used: they were deleted with `session`. */
  release(session: string | number, rows: Key[]): void {
    this.#current.delete(JSON.stringify(session));
    for (const row of rows) this.#held.delete(JSON.stringify(row));
  }

  /** Reads all keys again when they are next needed. */
  forget(): void {
    this.#root = undefined;
    this.#held.clear();
    this.#current.clear();
  }

  async #openRoot(): Promise<Sealer> {
    if (!globalThis.crypto?.subtle) {
      throw new CompactionError("store_unavailable", "There is no WebCrypto here: encryption needs a secure context (https)");
    }
    const scan = { limit: 1, maxBytes: OVERHEAD + KEY_BYTES, reverse: true };
    const [entry] = await this.#store.scan(ROOTS, scan);
    if (!entry) return this.#begin();
    const [row, wrapped] = entry;
    const id = idOf(wrapped, row);
    const raw = await unseal(this.#key, row, wrapped).catch(() => undefined);
    if (raw) return { id, row, key: await imported(raw) };
    const older = this.#previous && (await unseal(this.#previous, row, wrapped).catch(() => undefined));
    if (!older) {
      const which = this.#previous ? "Neither `encryptionKey` nor `previousEncryptionKey`" : "`encryptionKey`";
      const what = `${which} opens this store: give the key that it was begun with, or a store of another name`;
      throw new CompactionError("invalid_option", what, { field: "encryptionKey" });
    }
    const next = [...ROOTS, (row[3] as number) + 1];
    return this.#write({ id, key: this.#key, row: next }, older, row);
  }

  /** A store that holds rows already cannot become an encrypted one: they would be there to read for ever. */
  async #begin(): Promise<Sealer> {
    for (const table of TABLES) {
      const rows = await this.#store.scan([table], { limit: 1, maxBytes: 1, keysOnly: true });
      if (rows.some(([key]) => !startsWith(key, RESERVED))) {
        const what =
          "This store was begun without encryption: begin another one, and take sessions along with exportJsonl and importSession";
        throw new CompactionError("invalid_option", what, { field: "encryptionKey" });
      }
    }
    const id = randomId(ID_BYTES);
    const raw = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
    return this.#write({ id, key: this.#key, row: [...ROOTS, 1] }, raw);
  }

  /** Writes the root key `raw`, wrapped by the app's, in place of `before`. Who comes second takes what is there. */
  async #write(wrapper: Sealer, raw: Bytes, before?: Key): Promise<Sealer> {
    const wrapped = await seal(wrapper, wrapper.row, raw);
    const expect = [{ key: wrapper.row, version: null }, ...(before ? [{ key: before, version: 1 }] : [])];
    try {
      const puts: [Key, Uint8Array][] = [[wrapper.row, wrapped]];
      await this.#store.commit({ expect, puts, deletes: before ? [before] : [], durability: "strict" });
    } catch (error) {
      if (CompactionError.isInstance(error) && error.code === "conflict") return this.#openRoot();
      throw error;
    }
    return { id: wrapper.id, row: wrapper.row, key: await imported(raw) };
  }

  async #unwrap(row: Key, wrapped: Uint8Array): Promise<Sealer> {
    const root = await this.root();
    return { id: String(row.at(-1)), row, key: await imported(await unseal(root.key, row, wrapped)) };
  }
}

/** Rows are there and their key is not, though nothing says that they were deleted. */
export class KeyMissing extends CompactionError {
  constructor(row: Key) {
    super("store_corrupt", "A key of this store is missing: what it sealed cannot be read", { field: JSON.stringify(row) });
  }
}

function keysOf(session: string | number): Key {
  return [...RESERVED, "of", session];
}

/** Throws unless `key` is one that values can be sealed with. */
export function checkCryptoKey(field: string, key: unknown): asserts key is CryptoKey {
  const { type, algorithm, usages } = Object(key) as Partial<CryptoKey>;
  const can = Array.isArray(usages) && ["encrypt", "decrypt"].every((usage) => usages.includes(usage as KeyUsage));
  if (type !== "secret" || algorithm?.name !== "AES-GCM" || !can) {
    throw invalidOption(field, 'must be a CryptoKey for AES-GCM with the usages "encrypt" and "decrypt"');
  }
}

/** The id of the key that a value was sealed with. Throws `store_corrupt` for what was never sealed. */
export function idOf(sealed: Uint8Array, place: Key): string {
  if (sealed.byteLength < OVERHEAD || sealed[0] !== FORMAT) throw unreadable(place, "was not written by an encrypted store");
  return hex(sealed.subarray(1, HEAD_BYTES));
}

/** Encrypts `value` for its place: it can be read nowhere else. */
export async function seal({ key, id }: Sealer, place: Key, value: Uint8Array): Promise<Bytes> {
  const head = Uint8Array.of(FORMAT, ...bytesOfHex(id));
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const algorithm = { name: "AES-GCM", iv, additionalData: bound(head, place) };
  const encrypted = await crypto.subtle.encrypt(algorithm, key, value as Bytes);
  const sealed = new Uint8Array(HEAD_BYTES + IV_BYTES + encrypted.byteLength);
  sealed.set(head);
  sealed.set(iv, HEAD_BYTES);
  sealed.set(new Uint8Array(encrypted), HEAD_BYTES + IV_BYTES);
  return sealed;
}

/** Throws `store_corrupt` for what was changed, or sealed for another place or with another key. */
export async function unseal(key: CryptoKey, place: Key, sealed: Uint8Array): Promise<Bytes> {
  const bytes = sealed as Bytes;
  const iv = bytes.subarray(HEAD_BYTES, HEAD_BYTES + IV_BYTES);
  const algorithm = { name: "AES-GCM", iv, additionalData: bound(bytes.subarray(0, HEAD_BYTES), place) };
  try {
    return new Uint8Array(await crypto.subtle.decrypt(algorithm, key, bytes.subarray(HEAD_BYTES + IV_BYTES)));
  } catch (cause) {
    throw unreadable(place, "was changed, or moved here from another row", cause);
  }
}

function unreadable(place: Key, what: string, cause?: unknown): CompactionError {
  const field = JSON.stringify(place);
  return new CompactionError("store_corrupt", `${field} ${what}`, cause === undefined ? { field } : { field, cause });
}

/** What is authenticated beside the value: the head, and its place. */
function bound(head: Uint8Array, place: Key): Bytes {
  const name = new TextEncoder().encode(JSON.stringify(place));
  const both = new Uint8Array(head.byteLength + name.byteLength);
  both.set(head);
  both.set(name, head.byteLength);
  return both;
}

/** `raw` as a key that cannot be taken out again; the bytes are gone. */
async function imported(raw: Bytes): Promise<CryptoKey> {
  const key = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt", "decrypt"]);
  raw.fill(0);
  return key;
}

function bytesOfHex(id: string): number[] {
  return Array.from({ length: ID_BYTES }, (_, i) => Number.parseInt(id.slice(2 * i, 2 * i + 2), 16));
}
