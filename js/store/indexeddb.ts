/** The store of browsers, encrypted where there is a key. */

import { checkOptions, invalidOption } from "../checks.js";
import type { Store } from "../types.js";
import { plainStore } from "./database.js";
import { encryptedStore } from "./encrypted.js";

/** Options of `indexedDbStore`. */
export interface IndexedDbOptions {
  /** Name of the database. Default: `context-compactor`. */
  name?: string;
  /** `strict` (default): an `append` resolves when it is on the disk. `relaxed`: no commit waits for the disk, so the last
   *  ones survive a crash of the browser, but not a power cut. */
  durability?: "strict" | "relaxed";
  /** Encrypts every value, as `encryptedStore` does: an AES-GCM key with usages `encrypt` and `decrypt`, preferably not
   *  extractable. A database is encrypted from its first row or never (`invalid_option`). */
  encryptionKey?: CryptoKey;
  /** The previous key, to change it: a database that it opens is switched to `encryptionKey`. */
  previousEncryptionKey?: CryptoKey;
  /** Ask the browser, once in a page and after the first commit, to keep this site's data when space runs out; nothing
   *  waits for the answer, which is `archive.persisted`. Firefox asks the user. `false`: call
   *  `navigator.storage.persist()` yourself, when the user understands why. Default: `true`. */
  persist?: boolean;
}

const OPTIONS = ["name", "durability", "encryptionKey", "previousEncryptionKey", "persist"];

/**
 * Stores sessions in an IndexedDB database. Never falls back to memory: without IndexedDB its methods reject with
 * `store_unavailable`.
 */
export function indexedDbStore(options: IndexedDbOptions = {}): Store {
  checkOptions(options, OPTIONS);
  const { encryptionKey, previousEncryptionKey } = options;
  if (encryptionKey !== undefined) {
    return encryptedStore(plainStore(options), { encryptionKey, previousEncryptionKey });
  }
  if (previousEncryptionKey !== undefined) throw invalidOption("previousEncryptionKey", "needs an `encryptionKey`");
  return plainStore(options);
}
