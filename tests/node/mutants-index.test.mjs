/** The table of mutants cannot go stale: every text is where it says, every behaviour has one, and each was seen to fail. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { carries, ids, missing, mutants } from "../mutants/index.mjs";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");

/** The sources of a target: a test's own file, or those with the core's unit tests. */
function sources(target) {
  if (target.endsWith(".mjs")) return [target];
  if (target === "lib") return [...rust("crates/core/src"), ...rust("crates/wire/src")];
  const [name, owner = "core"] = target.split("/").reverse();
  const path = `crates/${owner}/tests/${name === "allocations" ? name : `all/${name}`}`;
  return existsSync(new URL(`${path}.rs`, root)) ? [`${path}.rs`] : rust(path);
}

function rust(folder) {
  const files = readdirSync(new URL(folder, root), { recursive: true }).filter((file) => file.endsWith(".rs"));
  return files.map((file) => `${folder}/${file}`);
}

/** The names of the tests of a target; placeholders in a name stay as they are written. */
const names = new Map();
function namesOf(target) {
  if (!names.has(target)) {
    const pattern = target.endsWith(".mjs") ? /\btest\(\s*["`](.+?)["`],/g : /\bfn (\w+)\(/g;
    names.set(
      target,
      sources(target).flatMap((path) => Array.from(read(path).matchAll(pattern), ([, name]) => name)),
    );
  }
  return names.get(target);
}

test("every text that a mutant replaces stands exactly once in its file, and is replaced by another one", () => {
  for (const { id, what, file, from, to } of mutants) {
    assert.equal(read(file).split(from).length - 1, 1, `${id} ${what}: ${JSON.stringify(from)} in ${file}`);
    assert.notEqual(from, to, `${id} ${what}`);
  }
});

test("every mutant names tests that carry its id", () => {
  for (const { id, what, tests } of mutants) {
    assert.notEqual(tests.length, 0, `${id} ${what}`);
    for (const target of tests) {
      const own = namesOf(target).filter((name) => carries(name, id));
      assert.notEqual(own.length, 0, `${target} has no test of ${id}`);
    }
  }
});

test("every behaviour has a mutant, but for those that are known to have none", () => {
  const without = ids.filter((id) => !mutants.some((mutant) => mutant.id === id));
  assert.deepEqual(without, missing);
});

test("mutants stand in the order of their ids, each once", () => {
  const keys = mutants.map(({ id, what }) => `${id} ${what}`);
  assert.deepEqual(keys, [...new Set(keys)]);
  const places = mutants.map(({ id }) => ids.indexOf(id));
  assert.deepEqual(places, places.toSorted((one, other) => one - other));
});

test("the report says of every mutant which tests failed", () => {
  const report = JSON.parse(read("bench/reports/mutants.json")).mutants;
  const key = ({ id, what, file }) => `${id} ${what} (${file})`;
  assert.deepEqual(report.map(key), mutants.map(key));
  for (const { id, what, red } of report) {
    assert.ok(red.some((name) => carries(name, id)), `${id} ${what}: ${red}`);
  }
});
