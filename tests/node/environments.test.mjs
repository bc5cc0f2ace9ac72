/** docs/environments.md is made from the report of the matrix, which was run with the rows that there are. `BLESS=1` writes the page anew. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { PAGE, pageOf, readReport } from "../matrix/report.mjs";
import { ROWS } from "../matrix/rows.mjs";

test("E25: docs/environments.md is what the matrix found", () => {
  const made = pageOf(readReport());
  if (process.env.BLESS === "1") writeFileSync(PAGE, made);
  assert.equal(readFileSync(PAGE, "utf8"), made, "run with BLESS=1 and read the change");
});

test("E25: every row has been run, with these versions, and came out as it says", () => {
  const report = readReport();
  assert.deepEqual(Object.keys(report), Object.keys(ROWS));
  for (const [name, { packages, cases }] of Object.entries(ROWS)) {
    assert.deepEqual(report[name].packages, packages, `${name}: run CC_ROWS="${name}" BLESS=1 npm test -- matrix`);
    const engines = (cases) => Object.entries(cases).map(([what, { engine }]) => [what, engine]);
    assert.deepEqual(engines(report[name].cases), engines(cases), name);
  }
});
