/** The store of Durable Objects under faults: rows 16 and 17 of the fault matrix, and mutants that they find. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { mutants } from "../support/durable-mutants.mjs";
import { startDurable } from "../support/durable.mjs";

let worker;
before(async () => {
  worker = await startDurable();
});
after(() => worker?.dispose());

test("the protocol", async (t) => {
  const names = await worker.names("protocol");
  assert.ok(names.length > 20);
  for (const name of names) await t.test(name, async () => assert.equal(await worker.run("protocol", name), undefined));
});

describe("the checks of the protocol can fail", () => {
  for (const [mutant, { caughtBy }] of Object.entries(mutants)) {
    test(`${mutant} is caught by: ${caughtBy}`, async () => {
      assert.notEqual(await worker.run("protocol", caughtBy, mutant), undefined, "it passes");
    });
  }

  test("every check catches a mutant", async () => {
    const caught = new Set(Object.values(mutants).map(({ caughtBy }) => caughtBy));
    assert.deepEqual([...caught].sort(), (await worker.names("protocol")).sort());
  });
});
