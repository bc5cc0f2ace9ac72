/** Types of the engine: one name is one thing, in the words of the field (H17, H18). */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const CRATES = ["core", "wire"];
/** A wire format speaks of the turns, blocks and calls of its own provider. */
const isFormat = (path) => /^wire\/(?!provider\/|message\/)\w+\//.test(path);
/** Names that had to be explained. */
const HOUSE_WORDS = [
  ...["Held", "Whose", "How", "Settled", "Measured", "Made", "Cover", "Left", "Unsent", "Given", "Tie", "Half", "Paying"],
  ...["Moment", "Whereabouts", "Unpaged", "Must", "Collector", "Layer"],
];

/** Where types are defined: `name path`, without those of tests. */
function definitions(path, text) {
  const code = text.replace(/#\[cfg\(test\)\]\s*mod \w+ \{[\s\S]*?^\}/gm, "");
  const found = code.matchAll(/^(?:(?: *(?:pub(?:\([\w ]+\))? )?(?:struct|enum|trait|union))|(?:(?:pub(?:\([\w ]+\))? )?type)) (\w+)/gm);
  return Array.from(found, ([, name]) => ({ name, path }));
}

/** Names of more than one type, with where those are. */
function twice(types) {
  const paths = new Map();
  for (const { name, path } of types) paths.set(name, [...(paths.get(name) ?? []), path]);
  return Array.from(paths, ([name, of]) => (of.length > 1 ? `${name}: ${of.join(", ")}` : "")).filter(Boolean);
}

test("h18_no type's name is that of another", (t) => {
  const types = CRATES.flatMap((crate) => {
    const source = new URL(`../../crates/${crate}/src/`, import.meta.url);
    const names = readdirSync(source, { recursive: true }).filter((name) => name.endsWith(".rs") && !/(^|\/)tests(\/|\.rs$)/.test(name));
    return names.flatMap((name) => definitions(`${crate}/${name}`, readFileSync(new URL(name, source), "utf8")));
  });
  const outside = types.filter(({ path }) => !isFormat(path));
  t.diagnostic(`${new Set(types.map(({ name }) => name)).size} names of ${types.length} types, ${types.length - outside.length} of them in formats`);
  assert.ok(outside.length > 100, `${outside.length} types`);
  assert.deepEqual(twice(outside), []);
  assert.deepEqual(types.filter(({ name }) => HOUSE_WORDS.includes(name)), []);
});

test("h18_a second type of a name is found", () => {
  const types = [
    ...definitions("log/state.rs", "pub(crate) struct State {\n}\nimpl Iterator for State {\n    type Item = u8;\n}\n"),
    ...definitions("step/mod.rs", "fn a() {\n    enum State {}\n}\npub type Item = u8;\n#[cfg(test)]\nmod tests {\n    struct Item;\n}\n"),
  ];
  assert.deepEqual(twice(types), ["State: log/state.rs, step/mod.rs"]);
});
