/** A fault at every commit to the IndexedDB store, for every operation (`storage` row 5). */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ENGINES, missing, startEngine } from "../support/engines.mjs";
import { STEPS } from "../support/failpoints.mjs";
import { makeProfile } from "../support/session.mjs";
import { call, serveSessions } from "../support/session-server.mjs";

const chosen = process.env.CC_BROWSERS?.split(",") ?? Object.keys(ENGINES);

let pages;
before(async () => {
  pages = await serveSessions({}, "failpoints-page.mjs");
});
after(() => pages?.close());

for (const engine of chosen) {
  describe(engine, { skip: missing(engine) }, () => {
    test("every operation survives a fault at every commit", async (t) => {
      const profile = await makeProfile();
      const session = await startEngine(engine, { profile });
      try {
        const page = await pages.openPage(session);
        const sum = { crashes: 0, failures: 0 };
        // One at a time: an answer of a page is not waited for longer than some steps take together.
        for (const step of Object.keys(STEPS)) {
          const { counts, problems } = await call(page, "failpoints", [step]);
          assert.deepEqual(problems, []);
          sum.crashes += counts.crashes;
          sum.failures += counts.failures;
        }
        t.diagnostic(`count ${JSON.stringify({ check: "failpoints", of: engine, ...sum })}`);
        assert.ok(sum.crashes >= 20 && sum.failures >= 20);
      } finally {
        await session.close();
        await profile.remove();
      }
    });
  });
}
