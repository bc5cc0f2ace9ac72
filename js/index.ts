/** Exports of the main entry, however the engine is loaded. */

import * as engine from "./engine.js";
import { VERSION } from "./generated/build.js";

export { compact, planCompaction } from "./compact.js";
export * from "./errors.js";
export { importSession } from "./import.js";
export { modelFacts } from "./models.js";
export { isContextOverflow } from "./overflow.js";
export { sessionPool } from "./pool.js";
export { salvage } from "./salvage.js";
export { recallTools } from "./recall-tools.js";
export { openSession } from "./open.js";
export { deleteSession, listSessions } from "./sessions.js";
export { encryptedStore, type EncryptionOptions } from "./store/encrypted.js";
export { indexedDbStore, type IndexedDbOptions } from "./store/indexeddb.js";
export { memoryStore } from "./store/memory.js";
export { mirrorStore } from "./store/mirror.js";
export type * from "./types.js";

/** Returns the version of this package, such as `0.1.0`. */
export function version(): string {
  return VERSION;
}

/** Returns whether this runtime can run the engine: it has WebAssembly, and no Content-Security-Policy forbids it. Where it
 *  is false, calls that need the engine reject with `stage_unavailable`. */
export function isSupported(): boolean {
  return engine.isSupported();
}
