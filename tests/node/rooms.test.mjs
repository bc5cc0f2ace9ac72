/** A room of the engine's core, a folder or file of its source, uses only rooms below it (H2). */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const source = new URL("../../crates/core/src/", import.meta.url);
/** The rooms, bottom up. */
const ROOMS = [
  ...["error", "order", "clock", "text", "message", "keys", "wire", "tokens", "checkpoint", "redact", "context", "summary"],
  ...["policy", "step", "log", "recall", "compaction", "standalone", "session"],
];
/** What `lib.rs` exports from the lowest room. */
const EXPORTED = ["Code", "Error", "Result"];

/** Without comments and modules of tests; every line stays in its place. */
function code(text) {
  const isOfTests = /#\[cfg\(test\)\]\s*mod \w+ \{[\s\S]*?^\}/gm;
  return text.replace(/(?<!:)\/\/.*$/gm, "").replace(isOfTests, (tests) => tests.replace(/[^\n]/g, ""));
}

/** Words that name a room where only what is below this one may stand, and types of other rooms that get methods here. */
function upward(files) {
  const homes = files.flatMap(({ room, text }) =>
    Array.from(text.matchAll(/^(?:pub(?:\([\w ]+\))? )?(?:struct|enum|type) (\w+)/gm), ([, type]) => `${room} ${type}`),
  );
  return files.flatMap(({ path, room, text }) => {
    const depth = path.replace(/(\/mod)?\.rs$/, "").split("/").length;
    const top = new RegExp(`\\b(?:crate::|(?<!super::)(?:super::){${depth}}(?!super\\b))(\\w+|\\{)`, "g");
    return text.split("\n").flatMap((line, at) => {
      const used = Array.from(line.matchAll(top), ([, word]) => (EXPORTED.includes(word) ? "error" : word));
      const isBelow = (word) => ROOMS.includes(word) && ROOMS.indexOf(word) <= ROOMS.indexOf(room);
      const type = line.match(/^impl(?:<[^{]*>)? (\w+)(?!.* for )/)?.[1];
      const wrong = used.filter((word) => !isBelow(word));
      if (type && !homes.includes(`${room} ${type}`)) wrong.push(`impl ${type}`);
      return wrong.map((word) => `${path}:${at + 1}: ${room} → ${word}`);
    });
  });
}

const file = (path, text) => ({ path, room: path.replace(/[/.].*/, ""), text: code(text) });

test("h2_no room uses one above it", () => {
  const names = readdirSync(source, { recursive: true }).filter((name) => name.endsWith(".rs") && name !== "lib.rs");
  const files = names.filter((name) => !/(^|\/)tests(\/|\.rs$)/.test(name)).map((name) => file(name, readFileSync(new URL(name, source), "utf8")));
  assert.ok(files.length > 200, `${files.length} files`);
  assert.deepEqual([...new Set(files.map(({ room }) => room))].sort(), [...ROOMS].sort());
  assert.deepEqual(upward(files), []);
});

test("h2_an arrow upward is found by its file and line", () => {
  const of = (path, text) => upward([file("session/operations.rs", "pub struct Session {\n}\n"), file(path, text)]);
  assert.deepEqual(of("policy/settings.rs", "// crate::log\nuse crate::session::Session;\n"), ["policy/settings.rs:2: policy → session"]);
  assert.deepEqual(of("policy/settings.rs", "fn a() {\n    crate::log::b(crate::error::c())\n}\n"), ["policy/settings.rs:2: policy → log"]);
  assert.deepEqual(of("policy/mod.rs", "use super::step::Io;\nmod settings;\n"), ["policy/mod.rs:1: policy → step"]);
  assert.deepEqual(of("policy/cost/rule.rs", "use super::super::super::step::Io;\nuse super::super::step;\n"), ["policy/cost/rule.rs:1: policy → step"]);
  assert.deepEqual(of("log/state.rs", "use crate::{error, session};\n"), ["log/state.rs:1: log → {"], "a list of rooms is not read");
  assert.deepEqual(of("log/state.rs", "impl fmt::Display for Session {}\nimpl<T> Session<T> {}\n"), ["log/state.rs:2: log → impl Session"]);
  assert.deepEqual(of("log/state.rs", "#[cfg(test)]\nmod tests {\n    use crate::session;\n}\n"), []);
  assert.deepEqual(of("session/state.rs", "use crate::log::State;\nfn a() -> crate::Result<()>;\n"), []);
});
