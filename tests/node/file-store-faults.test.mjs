/** A file store whose process is killed, stopped or without power, and whose disk fails (fault row 18). */

import { test } from "node:test";
import { checks } from "../support/file-checks.mjs";
import { folder, loadStore, QUICK } from "../support/file-store.mjs";

for (const [name, check] of Object.entries(checks)) {
  test(`${name}`, async (context) => check(await loadStore([QUICK]), await folder(context)));
}
