/** Entry `context-compactor/presets` for Cloudflare Workers, which compile no bytes: only `restoreBackup` needs it. */

import wasm from "../../core.wasm";
import { restore } from "../backup.js";
import { bringFrom } from "../engine.js";
import type { Store } from "../types.js";

export { withDocumentedNames } from "../documented.js";
export { optionsFromEnv } from "../environment.js";
export type { DocumentedEvents, DocumentedResult, DocumentedSession } from "../types/documented.js";

/** See `presets-inline.ts`, which has the types of all. */
export function restoreBackup(store: Store, id: string): Promise<number> {
  bringFrom(() => wasm);
  return restore(store, id);
}
