/** docs/systems.md says where each behaviour of the five systems is and what tests it. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { ITEMS, page, places, read } from "../support/systems.mjs";

const path = "docs/systems.md";

test("every item of the five systems has code that names it and a test that carries its id", () => {
  const found = places();
  const without = (kind) => ITEMS.map(({ id }) => id).filter((id) => found.get(id)[kind].length === 0);
  assert.deepEqual({ code: without("code"), tests: without("tests") }, { code: [], tests: [] });
});

test("the page says what is there", () => {
  const made = page();
  if (process.env.BLESS) writeFileSync(new URL(`../../${path}`, import.meta.url), made);
  assert.equal(read(path), made, `${path} differs; run with BLESS=1 and review the change`);
});
