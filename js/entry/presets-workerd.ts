/** Entry `context-compactor/presets` for Cloudflare Workers; the types of all are those of `presets.ts`. */

import { restore } from "../backup.js";
import { bring } from "../host/workerd.js";
import type { Store } from "../types.js";

export { withDocumentedNames } from "../documented.js";
export { optionsFromEnv } from "../environment.js";
export type { DocumentedEvents, DocumentedResult, DocumentedSession } from "../types/documented.js";

export function restoreBackup(store: Store, id: string): Promise<number> {
  bring();
  return restore(store, id);
}
