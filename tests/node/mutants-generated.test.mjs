/** The report of generated mutants is one of the sample that is asked for, and says of every survivor why it is one. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { pathOf } from "../../scripts/mutants/generated.mjs";
import { COUNT, reasons, SEED } from "../mutants/generated.mjs";

const root = new URL("../../", import.meta.url);
const report = JSON.parse(readFileSync(new URL("tests/mutants/generated.json", root), "utf8"));
const FIELDS = ["file", "function", "operator", "text", "to"];
const key = (mutant) => FIELDS.map((name) => mutant[name]).join("\t");

test("F39: the report is of the sample that is asked for, each mutant once", () => {
  assert.deepEqual([report.seed, report.count], [SEED, COUNT]);
  const all = [...report.survivors, ...report.mutants];
  assert.equal(all.length, COUNT);
  assert.equal(new Set(all.map((mutant) => `${key(mutant)}\t${mutant.nth}`)).size, COUNT);
  assert.equal(report.caught, report.mutants.length);
  assert.ok(report.of > 10 * COUNT, "of all that there are");
});

test("F39: a mutant is of a source of the engine, and was caught by a test or survived all that come by it", () => {
  for (const mutant of [...report.survivors, ...report.mutants]) {
    for (const name of FIELDS) assert.equal(typeof mutant[name], "string", key(mutant));
    assert.ok(existsSync(new URL(pathOf(mutant.file), root)), mutant.file);
  }
  for (const mutant of report.mutants) assert.match(mutant.by, /^\w+(::\w+)+( \(.+\))?$/, key(mutant));
});

test("F39: every survivor has its reason, and every reason its survivor", () => {
  const told = new Map(reasons.map((entry) => [key(entry), entry.why]));
  assert.equal(told.size, reasons.length);
  for (const survivor of report.survivors) {
    assert.ok(told.get(key(survivor)), key(survivor));
    assert.equal(survivor.why, told.get(key(survivor)));
  }
  const survivors = new Set(report.survivors.map(key));
  assert.deepEqual(reasons.filter((entry) => !survivors.has(key(entry))).map(key), []);
});

test("F39: at least 95 of 100 are caught", () => {
  assert.ok(report.caught >= 0.95 * report.count, `${report.caught} of ${report.count}`);
});
