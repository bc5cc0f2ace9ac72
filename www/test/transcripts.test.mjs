import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { answersOf, callsOf, kindOf } from "../src/logic/messages.js";
import { transcripts } from "../transcript/generate.mjs";

for (const [name, text] of Object.entries(transcripts())) {
  const messages = JSON.parse(text);

  test(`${name} is what its sources generate`, () => {
    assert.equal(readFileSync(new URL(`../public/transcripts/${name}`, import.meta.url), "utf8"), text);
  });

  test(`${name}: every call has one result, right after it, and arguments are JSON objects`, () => {
    let open = new Set();
    for (const [index, message] of messages.entries()) {
      for (const id of answersOf(message)) assert.ok(open.delete(id), `message ${index} answers ${id}`);
      if (kindOf(message) === "tool") continue;
      assert.equal(open.size, 0, `message ${index} comes before every call is answered`);
      open = new Set(callsOf(message).map(({ id }) => id));
      for (const { input } of callsOf(message)) assert.equal(typeof JSON.parse(input), "object");
    }
    assert.equal(open.size, 0);
  });
}

test("the main run is long enough to overflow a small window several times", () => {
  const messages = JSON.parse(transcripts()["invoicing-run.json"]);
  assert.ok(messages.length >= 120);
  assert.ok(JSON.stringify(messages).length > 240_000);
});
