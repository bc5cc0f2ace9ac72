/** A file store whose files are damaged: what is damaged is lost and nothing else (fault row 12). */

import { test } from "node:test";
import { damageChecks } from "../support/file-damage.mjs";
import { gapChecks } from "../support/file-gaps.mjs";
import { folder, loadStore, QUICK } from "../support/file-store.mjs";

for (const [name, check] of Object.entries({ ...damageChecks, ...gapChecks })) {
  test(`damage: ${name}`, async (context) => check(await loadStore([QUICK]), await folder(context)));
}
