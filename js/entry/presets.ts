/** Entry `context-compactor/presets`: only `restoreBackup` needs the engine. */

import { restore } from "../backup.js";
import { bring } from "../host/files.js";
import type { Store } from "../types.js";

export { withDocumentedNames } from "../documented.js";
export { optionsFromEnv } from "../environment.js";
export type { DocumentedEvents, DocumentedResult, DocumentedSession } from "../types/documented.js";

/**
 * Restores the session `id` as it was before this release migrated it to its schema, so that the older release can read
 * it. Close the session first; opening it migrates it again. Resolves to the number of the old schema. Rejects with
 * `not_found` if there is no backup, and with `conflict` if the session has changed since.
 */
export function restoreBackup(store: Store, id: string): Promise<number> {
  bring();
  return restore(store, id);
}
