/** Every public function of the engine is called by something that is no test (F32). */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = new URL("../../", import.meta.url).pathname;
/** Who may call the core: itself, the bindings, and the programs that are built with it. */
const CALLERS = ["crates/core/src", "crates/estimator/src", "crates/evaluator/src", "crates/scan/src", "crates/tokenizer/src", "crates/wire/src", "src", "xtask/src"];
/** Called by name of a path only, as serde does. */
const NAMED = /(?:with|default|deserialize_with|serialize_with|skip_serializing_if)\s*=\s*"([\w:]+)"/g;

function sources(folder) {
  const names = readdirSync(join(root, folder), { recursive: true });
  const isCode = (name) => name.endsWith(".rs") && !/(^|\/)(tests|benches|target)(\/|\.rs$)/.test(name);
  return names.filter(isCode).map((name) => ({ path: join(folder, name), text: withoutTests(readFileSync(join(root, folder, name), "utf8")) }));
}

/** Without comments, and without modules of tests that stand in the file. */
function withoutTests(text) {
  return text
    .replace(/^\s*\/\/.*$/gm, "")
    .replace(/#\[cfg\(test\)\]\s*mod \w+ \{[\s\S]*?^\}/gm, "");
}

function uncalled(files) {
  const all = files.map(({ text }) => text).join("\n");
  const count = (pattern) => {
    const counts = new Map();
    for (const [, name] of all.matchAll(pattern)) counts.set(name, (counts.get(name) ?? 0) + 1);
    return counts;
  };
  const [words, defined] = [count(/\b(\w+)\b/g), count(/\bfn (\w+)/g)];
  for (const [, path] of all.matchAll(NAMED)) {
    const name = path.split("::").at(-1);
    words.set(name, words.get(name) + 1);
  }
  const core = files.filter(({ path }) => /^crates\/(core|wire)\/src\//.test(path));
  const found = core.flatMap(({ path, text }) =>
    [...text.matchAll(/\bpub(?:\([\w: ]+\))? (?:const |async )*fn (\w+)/g)].map(([, name]) => ({ path, name })),
  );
  return found.filter(({ name }) => words.get(name) <= defined.get(name)).map(({ path, name }) => `${name} in ${path}`);
}

test("f32_every public function of the core has a caller that is no test", () => {
  const files = CALLERS.flatMap(sources);
  assert.ok(files.length > 200, `${files.length} files`);
  assert.deepEqual(uncalled(files), []);
});

test("f32_a function that nothing calls is found", () => {
  const text = "pub fn dead() {}\n#[cfg(test)]\nmod tests {\n    fn t() { dead() }\n}\n";
  const files = [{ path: "crates/core/src/a.rs", text: withoutTests(text) }];
  assert.deepEqual(uncalled(files), ["dead in crates/core/src/a.rs"]);
});
