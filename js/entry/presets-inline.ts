/** Entry `context-compactor/presets` where the engine comes as code, which every bundler can load apart: only `restoreBackup` needs it. */

import { restore } from "../backup.js";
import { bringFrom } from "../engine.js";
import { compiled } from "../module.js";
import type { Store } from "../types.js";

export { withDocumentedNames } from "../documented.js";
export { optionsFromEnv } from "../environment.js";
export type { DocumentedEvents, DocumentedResult, DocumentedSession } from "../types/documented.js";

/**
 * Puts the session called `id` back as it was before this release migrated it to its schema, for the release that wrote
 * it. Close it first; opening it migrates it again. Resolves to the number of the old schema. Rejects with `not_found`
 * when it has no backup, `conflict` when it went on since.
 */
export function restoreBackup(store: Store, id: string): Promise<number> {
  bringFrom(() => compiled(import("../wasm/inline.js")));
  return restore(store, id);
}
