/** The reader of options in JavaScript gives the answers of the one in Rust (`crates/core/tests/all/option_table.rs`). */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readOptions } from "../../pkg/dist/given.js";

const answers = JSON.parse(readFileSync(new URL("../fixtures/option-bounds.json", import.meta.url), "utf8"));

/** Functions are written as texts. */
function revived(value) {
  if (value === "a function") return () => {};
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, revived(member)]));
}

test("H4: every bound of every option has one answer in both readers", () => {
  assert.ok(answers.length > 700, `${answers.length}`);
  const differing = [];
  for (const [options, expected] of answers) {
    let told = null;
    try {
      readOptions(revived(options), "state" in options ? "compact" : "openSession");
    } catch (error) {
      assert.equal(error.code, "invalid_option");
      // The field is before the message there.
      const message = error.message.includes("is not an option") ? "is not an option" : error.message.replace(`${error.field}: `, "");
      told = [error.field, message];
    }
    if (JSON.stringify(told) !== JSON.stringify(expected)) differing.push({ options: JSON.stringify(options), told, expected });
  }
  assert.deepEqual(differing, []);
});
