/** The engine's memory for a large result stays below what docs/limits.md says of it. It only grows: its end is its highest. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { measure } from "../../bench/memory/measure.mjs";

const BYTES = 16_000_000;

test("P14: a result of 16 MB takes little more than twice its size, and offloading it no more", async (t) => {
  const { isOffloaded, appended, prepared } = await measure("memory", BYTES);
  t.diagnostic(`${appended} bytes appended, ${prepared} offloaded`);
  assert.ok(isOffloaded);
  assert.ok(appended <= 2.1 * BYTES, `${appended} bytes`);
  assert.equal(prepared, appended);
});
