/** docs/lessons.md names the tests of each lesson. They exist, and none of a lesson's own is of a class that it has not. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");

const CLASSES = [
  "orphaned tool pairs",
  "server tools / new block types",
  "reasoning ↔ call coupling",
  "role order",
  "compaction loop",
  "compaction request overflows",
  "base64 in summary prompt",
  "output cap wrong",
  "empty, stale or failed summary",
  "later compaction loses earlier kept tail",
  "lost concurrent writes",
  "unfinished marker",
  "quadratic storage / CPU",
  "blocked UI / lost queued input",
  "wrong counts",
  "lost constraints",
  "cache destroyed",
  "mid-turn",
  "offload traps",
  "Unicode cuts",
  "summariser misbehaves",
  "secrets",
  "summary growth",
  "opaque server compaction",
  "browser storage",
];

/** The rows of the page's table: class, and the tests as `[path, name]`. */
function rows(page) {
  return page
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| class |"))
    .map((line) => line.slice(2, -2).split(" | "))
    .map((cells) => {
      assert.equal(cells.length, 4, `four cells: ${cells.join(" | ")}`);
      const tests = cells[3].split("<br>").map((named) => {
        const [, file, name] = /^`([^`]+)`: (.+)$/.exec(named) ?? assert.fail(`no test: ${named}`);
        return [file.includes("/") ? file : `tests/node/${file}`, name];
      });
      return { name: cells[0], tests };
    });
}

const table = rows(read("docs/lessons.md"));
const isOwn = (path) => /^tests\/node\/lessons-.*\.test\.mjs$/.test(path);

/** The names of a file's tests; placeholders in a name stay as they are written. */
function names(path) {
  const source = read(path);
  if (path.endsWith(".rs")) return Array.from(source.matchAll(/#\[test\][^{]*?\bfn (\w+)/g), ([, name]) => name);
  return Array.from(source.matchAll(/\btest\(\s*(["`])(.+?)\1,/g), ([, , name]) => name);
}

test("the page has every class once, and each has tests", () => {
  assert.deepEqual(
    table.map(({ name }) => name),
    CLASSES,
  );
  for (const { name, tests } of table) assert.notEqual(tests.length, 0, name);
});

test("every test that the page names is there, under its class", () => {
  for (const { name, tests } of table) {
    for (const [path, told] of tests) {
      const known = names(path).filter((known) => !isOwn(path) || known.startsWith(`lesson: ${name}: `));
      const ends = (known) => (path.endsWith(".rs") ? known === told : known.endsWith(told));
      assert.ok(known.some(ends), `${path} has no test of "${name}" that ends with "${told}"`);
    }
  }
});

test("every lesson that is tested is on the page", () => {
  const own = readdirSync(new URL("tests/node/", root))
    .map((file) => `tests/node/${file}`)
    .filter(isOwn);
  for (const path of own.filter((path) => !path.endsWith("lessons-index.test.mjs"))) {
    for (const name of names(path)) {
      const known = table.some(
        ({ name: known, tests }) => name.startsWith(`lesson: ${known}: `) && tests.length > 0,
      );
      assert.ok(known, `${path}: "${name}" is of no class of the page`);
    }
  }
});
