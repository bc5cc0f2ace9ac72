/** The backups that migrations leave (`S5.18`). */

import { drive } from "./driver.js";
import { started } from "./engine.js";
import { hostOn } from "./stored.js";
import type { Store } from "./types.js";

/** See `entry/presets.ts`. */
export async function restore(store: Store, id: string): Promise<number> {
  const host = hostOn(store);
  await started();
  return drive<number>((engine) => engine.restoreBackup(String(id)), host);
}
