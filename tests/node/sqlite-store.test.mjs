/** `sqlStore` on SQLite (E6): `node:sqlite`, here where this Node has it, else in the newer one that npm brings; Bun; libSQL. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { conformance } from "../support/database-suite.mjs";
import { placesOn, sqliteFile } from "../support/databases.mjs";

const exec = promisify(execFile);
const require = createRequire(import.meta.url);
const path = (file) => fileURLToPath(new URL(`../support/${file}`, import.meta.url));

/** A program of a package, which is there for some platforms. */
function programOf(name) {
  try {
    return join(dirname(require.resolve(`${name}/package.json`)), "bin", name === "node24" ? "node" : "bun");
  } catch {
    return undefined;
  }
}

if (process.getBuiltinModule?.("node:sqlite")) await import("../support/sqlite-suite.mjs");
else {
  const newer = programOf("node24");
  test("E6 node:sqlite", { skip: !existsSync(newer ?? "") && "no newer Node for this platform" }, async (t) => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { stdout } = await exec(newer, ["--test", "--test-reporter=tap", path("sqlite-suite.mjs")], { maxBuffer: 1 << 26, env }).catch((error) => error);
    const count = (word) => Number(stdout.match(new RegExp(`^# ${word} (\\d+)$`, "m"))?.[1]);
    for (const [, line] of stdout.matchAll(/^ *# (count .*)$/gm)) t.diagnostic(line);
    assert.equal(count("fail"), 0, stdout);
    assert.ok(count("pass") > 30, stdout);
  });
}

const bun = programOf("@oven/bun-linux-x64");
test("E6 bun:sqlite", { skip: !existsSync(bun ?? "") && "no Bun for this platform" }, async () => {
  const { stdout } = await exec(bun, ["run", path("bun-child.mjs")]);
  const { passed, failed } = JSON.parse(stdout);
  assert.deepEqual(failed, []);
  assert.ok(passed > 25);
});

describe("E6 libSQL", async () => {
  const file = await sqliteFile();
  after(() => file.remove());
  conformance("libsql", () => placesOn("libsql", file.at)());
});
