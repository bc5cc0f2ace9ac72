/**
 * A room of the engine's core, a folder or file of its source, uses only rooms below it (H2). The lowest ones are a crate of
 * their own (H3): what is a file or folder there and none of the others is of the room `wire`.
 */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const SOURCES = ["../../crates/core/src/", "../../crates/wire/src/"].map((path) => new URL(path, import.meta.url));
/** The rooms, bottom up. */
const ROOMS = [
  ...["error", "order", "message", "wire", "clock", "text", "keys", "tokens", "checkpoint", "redact", "context", "summary"],
  ...["policy", "step", "log", "recall", "compaction", "standalone", "session"],
];
const LOWEST = ROOMS.slice(0, ROOMS.indexOf("wire"));
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
    Array.from(text.matchAll(/^ *(?:pub(?:\([\w ]+\))? )?(?:struct|enum|type) (\w+)/gm), ([, type]) => `${room} ${type}`),
  );
  return files.flatMap(({ path, room, text, isOfWire }) => {
    const depth = path.replace(/(\/mod)?\.rs$/, "").split("/").length;
    const top = new RegExp(`\\b(?:crate::|(?<!super::)(?:super::){${depth}}(?!super\\b))(\\w+|\\{)`, "g");
    return text.split("\n").flatMap((line, at) => {
      const words = Array.from(line.matchAll(top), ([, word]) => (EXPORTED.includes(word) ? "error" : word));
      const used = isOfWire ? words.map(roomOfWire) : words;
      const isBelow = (word) => ROOMS.includes(word) && ROOMS.indexOf(word) <= ROOMS.indexOf(room);
      const type = line.match(/^impl(?:<[^{]*>)? (?!for )(\w+)(?!.* for )/)?.[1];
      const wrong = used.filter((word) => !isBelow(word));
      if (type && !homes.includes(`${room} ${type}`)) wrong.push(`impl ${type}`);
      return wrong.map((word) => `${path}:${at + 1}: ${room} → ${word}`);
    });
  });
}

const roomOfWire = (name) => (LOWEST.includes(name) ? name : "wire");

function file(path, text, isOfWire = false) {
  const name = path.replace(/[/.].*/, "");
  return { path, room: isOfWire ? roomOfWire(name) : name, text: code(text), isOfWire };
}

test("h2_no room uses one above it", () => {
  const files = SOURCES.flatMap((source, nth) => {
    const names = readdirSync(source, { recursive: true }).filter((name) => name.endsWith(".rs"));
    const isCode = (name) => !/(^|\/)tests(\/|\.rs$)/.test(name) && (nth === 1 || name !== "lib.rs");
    return names.filter(isCode).map((name) => file(name, readFileSync(new URL(name, source), "utf8"), nth === 1));
  });
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
  assert.deepEqual(upward([file("message/mod.rs", "use crate::Format;\nuse crate::order;\n", true)]), ["message/mod.rs:1: message → wire"]);
});
