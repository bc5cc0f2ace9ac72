/**
 * The keys of an encrypted store, and what they do to a value.
 *
 *     app's key ─wraps─▶ root key ─wraps─▶ a key for each session ─seals─▶ its rows
 *                           └─seals─▶ rows of `meta`
 *
 * Keys are in rows of their own, written once: `["meta", "keys", "root", nth]`, where `nth` counts the app's keys, and
 * `["meta", "keys", "of", session, id]`. Each has a copy after it (`[…, "copy"]`), sealed for that place, so that one
 * damaged row costs no key, and is written again from the other one when the key is opened; where a release that wrote no
 * copies left a key without, it is written before the next value. A writer expects the rows of the keys that it used, so
 * nothing is ever sealed with a key that was deleted meanwhile.
 */

import { invalidOption } from "../checks.js";
import { CompactionError } from "../errors.js";
import type { Damaged, Key, Store } from "../types.js";
import { hex, isDamaged, randomId, startsWith, TABLES } from "./keys.js";
import type { Value } from "./keys.js";

/** Everything under this prefix is the keyring's. */
export const RESERVED: Key = ["meta", "keys"];
const ROOTS: Key = [...RESERVED, "root"];
const COPY = "copy";

/** Layout of a sealed value: this number, the id of its key, the IV, the ciphertext with its tag. */
const FORMAT = 1;
const ID_BYTES = 8;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + ID_BYTES;
const KEY_BYTES = 32;
export const OVERHEAD = HEAD_BYTES + IV_BYTES + TAG_BYTES;

/** Session keys that are kept in memory; more are read again. */
const MOST_HELD = 512;
/** Rows of keys of one session that are looked at: as a rule it has one key, in two rows. */
const KEY_ROWS = 32;

type Bytes = Uint8Array<ArrayBuffer>;

/** A key with the row that must be there for it to be used. */
export interface Sealer {
  readonly id: string;
  readonly key: CryptoKey;
  readonly row: Key;
  /** Its rows, as long as none of them was written: they are to be written with the next value. */
  readonly unwritten: [Key, Uint8Array][];
  /** One of its two rows that cannot be opened. */
  lacking?: Lacking | undefined;
}

interface Lacking {
  row: Key;
  value: Bytes;
  /** The other row. */
  sound: Key;
  /** It is there and damaged. */
  isDamaged: boolean;
}

export class Keyring {
  readonly #store: Store;
  readonly #key: CryptoKey;
  readonly #previous: CryptoKey | undefined;
  readonly #repaired: (reason: string) => void;
  #root: Promise<Sealer> | undefined;
  /** Keys of sessions, by row. */
  readonly #sealers = new Map<string, Sealer>();
  /** Rows of the keys that sessions are written with, by session. */
  readonly #current = new Map<string, Sealer>();

  constructor(store: Store, key: CryptoKey, previous: CryptoKey | undefined, repaired: (reason: string) => void) {
    this.#store = store;
    this.#key = key;
    this.#previous = previous;
    this.#repaired = repaired;
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
    const scan = { limit: KEY_ROWS, maxBytes: KEY_ROWS * (OVERHEAD + KEY_BYTES) };
    const entries = begin ? [] : await this.#store.scan(keysOf(session), scan);
    const root = await this.root();
    for (const [row] of entries.filter(([row]) => row.length === PLAIN)) {
      const sealer = await this.#unwrap(root, row, entries);
      // One that is damaged sealed what cannot be read any more: what comes next has another.
      if (sealer) return this.hold(session, sealer);
    }
    const id = randomId(ID_BYTES);
    const raw = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
    const [row, unwritten] = [[...keysOf(session), id], await wrapped(root, [...keysOf(session), id], raw)];
    return { id, row, unwritten, key: await imported(raw) };
  }

  /** `sealer` is in the store: it is used from now on. */
  hold(session: string | number, sealer: Sealer): Sealer {
    if (this.#sealers.size >= MOST_HELD) this.forget();
    const held = { ...sealer, unwritten: [] };
    this.#sealers.set(nameOf(sealer.row), held);
    this.#current.set(JSON.stringify(session), held);
    return held;
  }

  /**
   * The keys that `sealed` rows were sealed with; none for a session whose key was deleted, which is gone. `isLast` says
   * that keys that are missing were read again: what they sealed is damaged.
   */
  async found(sealed: { key: Key; id: string }[], isLast: boolean): Promise<(Sealer | Damaged | undefined)[]> {
    const root = await this.root();
    const rows = sealed.map(({ key, id }) => (key[0] === "meta" ? root.row : [...keysOf(key[1]!), id]));
    const missing = rows.filter((row) => row !== root.row && !this.#sealers.has(nameOf(row)));
    const asked = [...new Map(missing.map((row) => [nameOf(row), row])).values()];
    const sealers = new Map<string, Sealer | Damaged>();
    if (asked.length > 0) {
      // With the sessions' rows, as they were at one moment: a key is deleted together with the session.
      const copies = asked.map((row): Key => [...row, COPY]);
      const sessions = asked.map((row): Key => ["sessions", row[3]!]);
      const read = [...asked, ...copies];
      const values = await this.#store.read([...read, ...sessions]);
      const entries = read.flatMap((row, i): Entry[] => (values[i] === undefined ? [] : [[row, values[i]]]));
      for (const [nth, row] of asked.entries()) {
        const there = entries.filter(([key]) => startsWith(key, row));
        const sealer = await this.#unwrap(root, row, there);
        if (sealer) sealers.set(nameOf(row), this.hold(row[3]!, sealer));
        else if (there.length > 0) sealers.set(nameOf(row), { damaged: "the key that it was sealed with is damaged" });
        // Without its row a session is deleted only if all of its keys are gone, too.
        else if (values[read.length + nth] !== undefined || (await this.rowsOf(row[3]!)).length > 0) {
          sealers.set(nameOf(row), keyMissing(row, isLast));
        }
      }
    }
    return rows.map((row, i) => {
      if (row === root.row) return sealed[i]!.id === root.id ? root : keyMissing(row, isLast);
      return sealers.get(nameOf(row)) ?? this.#sealers.get(nameOf(row));
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
    for (const row of rows) this.#sealers.delete(nameOf(row));
  }

  /** Writes the row again that `sealer` lacks, for the other one may be damaged next. What fails is tried again when the key
   *  is next opened. */
  async mend(sealer: Sealer): Promise<void> {
    const { lacking } = sealer;
    if (!lacking) return;
    sealer.lacking = undefined;
    const { row, value, sound, isDamaged } = lacking;
    // Its session was not deleted meanwhile, which nothing may bring a key of back.
    const isThere = { key: sound, version: 1 };
    try {
      // Rows of keys have version 1, which writers expect. Whoever ends in between leaves a row that is missing.
      const expect = [{ key: row, version: 1 }, isThere];
      if (isDamaged) await this.#store.commit({ expect, puts: [], deletes: [row], durability: "relaxed" });
      const puts: Entry<Bytes>[] = [[row, value]];
      await this.#store.commit({ expect: [{ key: row, version: null }, isThere], puts, deletes: [], durability: "strict" });
    } catch {
      return;
    }
    if (isDamaged) this.#repaired(`a row of a key was damaged, and was written again from its copy: ${JSON.stringify(row)}`);
  }

  /** Reads all keys again when they are next needed. */
  forget(): void {
    this.#root = undefined;
    this.#sealers.clear();
    this.#current.clear();
  }

  async #openRoot(): Promise<Sealer> {
    if (!globalThis.crypto?.subtle) {
      throw new CompactionError("store_unavailable", "There is no WebCrypto here: encryption needs a secure context (https)");
    }
    const scan = { limit: 2, maxBytes: 2 * (OVERHEAD + KEY_BYTES), reverse: true };
    const entries = await this.#store.scan(ROOTS, scan);
    const [nth] = entries.map(([row]) => row[3] as number);
    if (nth === undefined) return this.#begin();
    const [row, there] = [[...ROOTS, nth], entries.filter(([row]) => row[3] === nth)];
    const sealer = await this.#unwrap({ key: this.#key }, row, there);
    if (sealer) return sealer;
    const older = this.#previous && (await opened(this.#previous, there));
    if (!older) {
      const which = this.#previous ? "Neither `encryptionKey` nor `previousEncryptionKey` opens" : "`encryptionKey` does not open";
      const what = `${which} this store: give the key that it was begun with, or a store of another name`;
      throw new CompactionError("invalid_option", what, { field: "encryptionKey" });
    }
    const next = [...ROOTS, nth + 1];
    return this.#write({ id: older.id, key: this.#key }, next, older.raw, there.map(([row]) => row));
  }

  /** A store that holds rows already cannot become an encrypted one: they would be there to read for ever. */
  async #begin(): Promise<Sealer> {
    const isThere = async (prefix: Key, but?: Key) => {
      const rows = await this.#store.scan(prefix, { limit: 1, maxBytes: 1, keysOnly: true });
      return rows.some(([key]) => !but || !startsWith(key, but));
    };
    for (const table of TABLES) {
      if (!(await isThere([table], RESERVED))) continue;
      // Somebody else may have begun it meanwhile.
      if (await isThere(ROOTS)) return this.#openRoot();
      if (await isThere(RESERVED)) {
        throw new CompactionError("store_corrupt", "The root key of this store is gone, and with it all that is in it: put the store back from a copy of it");
      }
      const what =
        "This store was begun without encryption: begin another one, and take sessions along with session.archive.jsonl() and importSession";
      throw new CompactionError("invalid_option", what, { field: "encryptionKey" });
    }
    const id = randomId(ID_BYTES);
    const raw = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
    return this.#write({ id, key: this.#key }, [...ROOTS, 1], raw, []);
  }

  /** Writes the root key `raw`, wrapped by the app's, in place of `before`. Who comes second takes what is there. */
  async #write(wrapper: Wrapper, row: Key, raw: Bytes, before: Key[]): Promise<Sealer> {
    const puts = await wrapped(wrapper, row, raw);
    // A copy may have been written by several who found none.
    const [first] = before.filter((row) => row.length === PLAIN - 1);
    const expect = [{ key: row, version: null }, ...(first ? [{ key: first, version: 1 }] : [])];
    try {
      await this.#store.commit({ expect, puts, deletes: before, durability: "strict" });
    } catch (error) {
      if (CompactionError.isInstance(error) && error.code === "conflict") return this.#openRoot();
      throw error;
    }
    return { id: wrapper.id, row, unwritten: [], key: await imported(raw) };
  }

  /** The key whose rows are among `entries`, where one of them can be opened. */
  async #unwrap(by: { key: CryptoKey }, row: Key, entries: Entry[]): Promise<Sealer | undefined> {
    const own = entries.filter(([key]) => startsWith(key, row));
    const found = await opened(by.key, own);
    if (!found) return undefined;
    const { id, raw, from } = found;
    const rows: Key[] = [row, [...row, COPY]];
    const isThere = rows.map(({ length }) => own.some(([key]) => key.length === length));
    const [at, sound] = from.length === row.length ? [1, 0] : [0, 1];
    const other = await opened(by.key, own.filter(([key]) => key.length === rows[at]!.length));
    other?.raw.fill(0);
    const value = other ? undefined : await seal({ id, key: by.key }, rows[at]!, raw);
    const lacking = value && { row: rows[at]!, value, sound: rows[sound]!, isDamaged: isThere[at]! };
    const name = row.length === PLAIN ? String(row.at(-1)) : id;
    const sealer = { id: name, row: isThere[0] ? rows[0]! : rows[1]!, unwritten: [], lacking, key: await imported(raw) };
    // What was never written is no damage, and a reader writes nothing.
    if (lacking?.isDamaged) await this.mend(sealer);
    return sealer;
  }
}

type Entry<V = Value> = [Key, V];
/** What wraps a key, and the id that is noted with it. */
type Wrapper = Pick<Sealer, "id" | "key">;

/** Parts of the row of a session's key, without its copy. */
const PLAIN = keysOf("").length + 1;

/** A key by its row, also that of its copy. */
function nameOf(row: Key): string {
  return JSON.stringify(row.slice(0, PLAIN));
}

/** The rows of a new key. */
function wrapped(wrapper: Wrapper, row: Key, raw: Bytes): Promise<[Key, Bytes][]> {
  const rows: Key[] = [row, [...row, COPY]];
  return Promise.all(rows.map(async (row): Promise<[Key, Bytes]> => [row, await seal(wrapper, row, raw)]));
}

/** The first of `entries`, the rows of a key, that `key` opens. */
async function opened(key: CryptoKey, entries: Entry[]): Promise<{ id: string; raw: Bytes; from: Key } | undefined> {
  for (const [row, value] of entries) {
    if (isDamaged(value)) continue;
    try {
      return { id: idOf(value, row), raw: await unseal(key, row, value), from: row };
    } catch {
      // Damaged, or of another key: the other row may say.
    }
  }
  return undefined;
}

function keyMissing(row: Key, isLast: boolean): Damaged {
  if (!isLast) throw new KeyMissing(row);
  return { damaged: "the key that it was sealed with is missing" };
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
export async function seal({ key, id }: Wrapper, place: Key, value: Uint8Array): Promise<Bytes> {
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
