/** The names that the bench of the front counts: what it reads as one, and when a call lacks it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Known, Named } from "../../bench/front/named.mjs";
import { names } from "../../bench/front/names.mjs";
import { replay, simple } from "../../bench/front/replay.mjs";

test("W17 names are what must be written to the letter, as the evaluator reads them", () => {
  for (const [text, ...expected] of [
    ["see ./crates/core/src/lib.rs:12:5.", "src/lib.rs"],
    ["cmd/main.go:12:runAll() in main.go", "cmd/main.go", "runAll", "main.go"],
    ["(https://a.example/x?y=1).", "https://a.example/x?y=1"],
    ["to ann@mail.example, please", "ann@mail.example"],
    ["#W2378156 HAT219 4e313bb PROJ-12", "#W2378156", "HAT219", "4e313bb", "PROJ-12"],
    ["v1.2.3 $12.50 15% 250ms 42", "v1.2.3", "$12.50", "15%", "250ms"],
    ["TypeError: ENOENT E0463", "TypeError", "ENOENT", "E0463"],
    ["use --no-verify, snake_case.camelCase and strategy::SaveIt", "--no-verify", "snake_case", "camelCase", "SaveIt"],
    ["한국어 camelCase变量 👩‍💻 src/a_b.rs다", "camelCase", "src/a_b.rs"],
    ["   120→\tfoo\n121\tbar and/or it's well-known e.g. GitHub"],
    [String.raw`"a\nContainer\tValue" /clear`],
  ]) {
    const found = names(text);
    assert.deepEqual(found.map(({ name }) => name), expected, text);
    for (const { name, at, end } of found) assert.ok(text.slice(at, end).endsWith(name), name);
  }
});

const said = (text) => ({ role: "user", content: text });
const call = (input) => ({ role: "assistant", content: [{ type: "tool_use", id: "call_id", name: "a_tool", input }] });

test("W17 a call lacks a name that no message of the prompt has, or only among other words", () => {
  const source = said("The retry of uploads waits in waitForUpload, which is slow.");
  const history = [source, said("Go on."), call({ pattern: "waitForUpload" })];
  const lost = (of, prompt, known = () => false) => {
    const named = new Named(known);
    named.read(source, 0);
    return named.lost(of, history, prompt);
  };
  assert.equal(lost(history[2], [source]), undefined);
  assert.equal(lost(history[2], [said("Go on.")]), "waitForUpload");
  assert.equal(lost(history[2], [said("waitForUpload, parseAll, mergeTree")]), "waitForUpload");
  assert.equal(lost(history[2], [said("One retry: waitForUpload")]), "waitForUpload");
  assert.equal(lost(history[2], [said("Retry of uploads: waitForUpload")]), undefined);
  assert.equal(lost(history[2], [said("Retry of uploads: waitForUploads")]), "waitForUpload");
  assert.equal(lost(history[2], [history[1]], (name) => name === "waitForUpload"), undefined);
  assert.equal(lost(call({ pattern: "newName" }), [history[1]]), undefined, "it is new");
  assert.equal(lost(call({ pattern: "plain words" }), [history[1]]), undefined, "its id and its tool are no names");
  const thought = { role: "assistant", content: [{ type: "thinking", thinking: "waitForUpload" }] };
  assert.equal(lost(thought, [history[1]]), undefined, "it only thinks of it");
  const given = said("type wait_for_upload = string");
  assert.equal(new Set(history).has(given), false);
  history.push(given);
  assert.equal(lost(history[2], [given]), undefined, "spelled in another convention");
});

test("W17 a number is lacked where the call means the same by it", () => {
  const source = said("The server listens on port 48151 for metrics.");
  const named = new Named(() => false);
  named.read(source, 0);
  assert.equal(named.lost(call({ command: "check the metrics server on port 48151" }), [source], []), "48151");
  assert.equal(named.lost(call({ command: "sleep 48151" }), [source], []), undefined);
});

test("W17 names that are known from elsewhere: of other projects, of libraries, of local variables, written untold", () => {
  const known = new Known();
  const [own, other] = ["https://a.example/own@1:x", "https://a.example/other@1:x"];
  known.add({ id: "a", source: own, messages: [said("func openFile() {\n  rest, readErr := strings.TrimLeft(x)\n  sharedName()\n}\ntype sharedName int\nvar readErr error")] });
  known.add({ id: "b", source: own, messages: [call({ text: "see docs/STYLE.md" })] });
  known.add({ id: "c", source: own, messages: [call({ text: "see docs/STYLE.md and docs/ONE.md" }), said("docs/OTHER.md")] });
  known.add({ id: "d", source: other, messages: [said("sharedName")] });
  const has = (name, id = "a") => known.has(name, { id, source: own });
  assert.equal(has("openFile"), false);
  assert.equal(has("TrimLeft"), true);
  assert.equal(has("readErr"), true);
  assert.equal(has("sharedName"), true);
  assert.equal(has("docs/STYLE.md"), true);
  assert.equal(has("docs/STYLE.md", "b"), false, "one other session writes it, its own does not count");
  assert.equal(has("docs/ONE.md"), false);
  assert.equal(has("docs/OTHER.md"), false);
});

test("W17 a replay counts calls that lack a name, a copy, and either", async () => {
  const copied = Array.from({ length: 40 }, (_, nth) => `word${nth}`).join(" ");
  const messages = [said(`${copied} in waitForUpload`), call({}), said("ok"), call({ text: copied }), said("ok"), call({ text: "waitForUpload" })];
  const forgets = simple(async (all) => all.slice(-1));
  const { lost, named, either } = await replay(messages, forgets, 200_000, { names: new Named(() => false) });
  assert.deepEqual([lost, named, either], [1, 1, 2]);
  const kept = await replay(messages, simple(async (all) => all), 200_000, { names: new Named(() => false) });
  assert.deepEqual([kept.lost, kept.named, kept.either], [0, 0, 0]);
  assert.equal((await replay(messages, forgets, 200_000)).named, 0);
});
