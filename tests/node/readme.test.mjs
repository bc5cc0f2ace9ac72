/** What the README says of the package is what it has, and the package has that README. */

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { presets } from "../support/names.mjs";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");
/** The repository's, and the one that the build makes of it for the package. */
const readmes = ["README.md", "pkg/README.md"];

test("F38: both READMEs name every preset", () => {
  assert.ok(presets.length >= 6);
  for (const file of readmes) for (const preset of presets) assert.ok(read(file).includes(`\`${preset}\``), `${file}: ${preset}`);
});

test("F38: the package's README names every entry of its manifest, and both how to install it and what a policy must allow", () => {
  const { name, exports } = JSON.parse(read("pkg/package.json"));
  for (const path of Object.keys(exports).filter((path) => path !== "./package.json")) {
    assert.ok(read("pkg/README.md").includes(`\`${name}${path.slice(1)}\``), path);
  }
  for (const file of readmes) {
    for (const said of [`npm install ${name}`, "'wasm-unsafe-eval'", "sync", "rewind", "isContextOverflow"]) {
      assert.ok(read(file).includes(said), `${file}: ${said}`);
    }
  }
});

test("F38: no comment cites a page of a specification that the repository does not have", () => {
  const folders = ["crates", "js", "src", "tests", "xtask", "scripts"];
  const files = folders.flatMap((folder) =>
    readdirSync(new URL(`${folder}/`, root), { recursive: true })
      .filter((path) => /\.(rs|ts|mjs)$/.test(path) && !/node_modules|(^|\/)(wasm|fixtures|dist)\//.test(path))
      .map((path) => `${folder}/${path}`),
  );
  assert.ok(files.length > 300, `${files.length} files`);
  const cited = files.flatMap((file) => {
    const pages = Array.from(read(file).matchAll(/^ *(?:\/\/|\*|\/\*).*?`?\b((?:[\w-]+\/)*[\w-]+\.md)\b/gm), ([, page]) => page);
    const exists = (page) => ["", "docs/", `${file}/../`].some((place) => existsSync(new URL(`${place}${page}`, root)));
    return pages.filter((page) => !exists(page)).map((page) => `${file}: ${page}`);
  });
  assert.deepEqual(cited, []);
});

test("F38: the first program of the README has a key and says what went wrong", () => {
  const [, program] = /```js browser\n([\s\S]*?)```/.exec(read("README.md"));
  assert.match(program, /authorization: `Bearer /);
  assert.match(program, /if \(!response\.ok\) throw/);
});

test("H20: the README is a front page", () => {
  const lines = read("README.md").split("\n").length - 1;
  assert.ok(lines <= 120, `${lines} lines`);
});

test("H27: where a change begins: every path exists, and every name is in one of its row's files", () => {
  const rows = read("docs/where-to-change.md").split("\n").filter((line) => /^\| \d+ \|/.test(line));
  assert.equal(rows.length, 20);
  for (const row of rows) {
    const [, request, places] = row.split(" | ");
    const [names, paths] = [[], []];
    for (const [, quoted] of (places ?? "").matchAll(/`([^`]+)`/g)) (/[/.]/.test(quoted) ? paths : names).push(quoted);
    assert.ok(paths.length > 0, request);
    for (const path of paths) assert.ok(existsSync(new URL(path, root)), `${request}: ${path}`);
    const texts = paths.filter((path) => !path.endsWith("/")).map(read);
    for (const name of names) assert.ok(texts.some((text) => new RegExp(`\\b${name}\\b`).test(text)), `${request}: ${name}`);
  }
  assert.ok(read("CONTRIBUTING.md").includes("docs/where-to-change.md"));
});
