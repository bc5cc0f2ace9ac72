/** What both READMEs say of the package is what it has. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");
const readmes = ["README.md", "pkg/README.md"];

test("F38: both READMEs name every preset", () => {
  const [, union] = /export type Preset = ([^;]+);/.exec(read("js/types/presets.ts"));
  const presets = [...union.matchAll(/"(\w+)"/g)].map(([, name]) => name);
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

test("F38: the first program of the README has a key and says what went wrong", () => {
  const [, program] = /```js browser\n([\s\S]*?)```/.exec(read("README.md"));
  assert.match(program, /authorization: `Bearer /);
  assert.match(program, /if \(!response\.ok\) throw/);
});
