/** docs/faults.md names the tests of each fault. They exist, and every fault has some or says where they are instead. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");

const rows = read("docs/faults.md")
  .split("\n")
  .filter((line) => /^\| \d+ \|/.test(line))
  .map((line) => line.slice(2, -2).split(" | "));

/** The names of a file's tests; placeholders in a name stay as they are written. */
function names(path) {
  const source = read(path);
  if (path.endsWith(".rs")) return Array.from(source.matchAll(/#\[test\][^{]*?\bfn (\w+)/g), ([, name]) => name);
  return Array.from(source.matchAll(/\btest\(\s*(["`])(.+?)\1,/g), ([, , name]) => name);
}

test("the page has every fault, in order", () => {
  assert.deepEqual(rows.map(([number]) => Number(number)), Array.from({ length: 25 }, (_, at) => at + 1));
  for (const cells of rows) assert.equal(cells.length, 4, cells.join(" | "));
});

for (const [number, fault, , tests] of rows) {
  test(`${number}: ${fault}`, () => {
    if (tests.startsWith("not here: ")) return;
    for (const named of tests.split("<br>")) {
      const [, path, name] = /^`([^`]+)`: (.+)$/.exec(named) ?? assert.fail(`no test: ${named}`);
      assert.ok(names(path).includes(name), `${path} has no test ${name}`);
    }
  });
}

test("every fault that the README's table of stores cites is on the page", () => {
  const [, table] = /### What each store survives\n([\s\S]*?)\n## /.exec(read("README.md"));
  const cited = Array.from(table.matchAll(/\(([\d, –]+)\)/g), ([, numbers]) => numbers.split(/, |–/)).flat();
  assert.ok(cited.length > 10, cited.join());
  const known = new Set(rows.map(([number]) => number));
  assert.deepEqual(cited.filter((number) => !known.has(number)), []);
});
