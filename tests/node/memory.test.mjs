/** The engine's memory for a large result stays below what docs/limits.md says of it. Until the next prompt it only grows: its end is its highest. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const BYTES = 16_000_000;
const SCRIPT = fileURLToPath(new URL("../../bench/memory/measure.mjs", import.meta.url));

/** What it takes in a process of its own. */
async function measured(...more) {
  const { stdout } = await promisify(execFile)(process.execPath, [SCRIPT, "memory", `${BYTES}`, ...more]);
  return JSON.parse(stdout);
}

test("P14: a result of 16 MB takes little more than twice its size, and offloading it no more", async (t) => {
  // Where there are few ends of lines, its text is hardly shorter than its JSON.
  for (const line of [[], ["100000"]]) {
    const { isOffloaded, appended, prepared } = await measured(...line);
    t.diagnostic(`${appended} bytes appended, ${prepared} offloaded`);
    assert.ok(isOffloaded);
    assert.ok(appended <= 2.1 * BYTES, `${appended} bytes`);
    assert.equal(prepared, appended);
  }
});
