/** Lists that no compiler holds against each other: a name that one of them lacks is named. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { kinds } from "../formats/fixtures/index.mjs";
import { load, files } from "../conformance/vectors.mjs";
import { formats, presets } from "../support/names.mjs";
import { stores } from "../support/stores.mjs";

const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

/** The first group of every match, sorted. */
const all = (text, pattern) => Array.from(text.matchAll(pattern), ([, name]) => name).sort();
/** The first column of a table of the docs, below a heading. */
const column = (page, heading) => all(read(page).split(`\n## ${heading}\n`)[1].split("\n|---")[1].split("\n\n")[0], /^\| `([\w-]+)`/gm);
const same = (what, found, wanted) => assert.deepEqual([...new Set(found)].sort(), [...wanted].sort(), what);

test("H23: every event of the engine has a type and a row of the docs", () => {
  const body = (path, begin) => read(path).split(begin)[1].split("\n}\n")[0];
  const kebab = (name) => name.replaceAll(/(?!^)[A-Z]/g, "-$&").toLowerCase();
  const engine = all(body("crates/core/src/step/effect.rs", "pub enum Notice {"), /^    (\w+) \{/gm).map(kebab);
  const types = all(body("js/types/session.ts", "export interface SessionEvents {"), /^  "?([\w-]+)"?: /gm);
  assert.ok(engine.includes("data-loss"), String(engine));
  // Three are of the package itself.
  same("SessionEvents", types, [...engine, "pin", "progress", "usage"]);
  same("docs/sessions.md", column("docs/sessions.md", "Events"), types);
});

test("H23: every format has vectors, histories of official shapes, and a row of the docs", () => {
  const schema = JSON.parse(read("tests/conformance/vectors.schema.json"));
  same("vectors.schema.json", schema.$defs.format.enum, formats);
  same("vectors", files.flatMap(load).flatMap(({ format }) => format ?? []), formats);
  same("fixtures", Object.values(kinds).map(({ format }) => format), formats);
  same("docs/formats.md", column("docs/formats.md", "Native formats"), formats);
});

test("H23: every preset has a row of the docs", () => same("docs/compaction.md", column("docs/compaction.md", "Presets"), presets));

test("H23: every store of Node goes through the tests of stores", async () => {
  const names = Object.keys(await import("context-compactor/node")).filter((name) => name.endsWith("Store"));
  same("tests/support/stores.mjs", Object.keys(stores).map((name) => `${name}Store`), [...names, "memoryStore"]);
});
