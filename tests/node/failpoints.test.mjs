/** A fault at every call of every store of Node, for every operation; and protocols that this must catch. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as library from "../support/offload.mjs";
import { failpoints } from "../support/failpoints.mjs";
import { protocols } from "../support/protocols.mjs";
import { stores } from "../support/stores.mjs";

for (const [name, make] of Object.entries(stores)) {
  test(`${name}: every operation survives a fault at every call of the store`, async (t) => {
    const { counts, problems } = await failpoints({ library, make });
    t.diagnostic(`count ${JSON.stringify({ check: "failpoints", of: name, ...counts })}`);
    assert.deepEqual(problems, []);
    assert.ok(counts.crashes > 50 && counts.failures > 50);
  });
}

describe("protocols that are wrong in one way each", () => {
  for (const [name, protocol] of Object.entries(protocols)) {
    test(name, async (t) => {
      const { problems } = await failpoints({ library, make: stores.memory, protocol });
      assert.ok(problems.length > 0, "it was not caught");
      t.diagnostic(`caught by ${problems[0]}`);
    });
  }
});
