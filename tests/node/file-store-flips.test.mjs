/** A file store whose files are damaged: what is damaged is lost and nothing else (fault row 12). */

import { test } from "node:test";
import { damageChecks } from "../support/file-damage.mjs";
import { folder, loadStore, QUICK } from "../support/file-store.mjs";

for (const [name, check] of Object.entries(damageChecks)) {
  test(`damage: ${name}`, async (context) => check(await loadStore([QUICK]), await folder(context)));
}
