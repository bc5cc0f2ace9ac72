/** What results and errors say of themselves: whether it worked, what changed, and whether trying again may help. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { compact, CompactionError } from "context-compactor";
import { chat, SUMMARY } from "../support/api.mjs";

const USUAL = { contextWindow: 8_000, maxOutputTokens: 500, preset: "offload", logger: () => {} };
const history = chat(30);
const failing = (error, more) => compact(history, { ...USUAL, summarize: { call: () => Promise.reject(error), attempts: 1, ...more } });

const RETRYABLE = ["timeout", "conflict", "store_unavailable", "stage_unavailable"];

test("H14: every code says whether the same call may succeed later", () => {
  const source = readFileSync(new URL("../../js/errors.ts", import.meta.url), "utf8");
  const union = source.slice(0, source.indexOf(";"));
  const codes = [...union.matchAll(/\| "(\w+)"/g)].map(([, code]) => code);
  assert.ok(codes.length > 20);
  for (const code of codes) assert.equal(new CompactionError(code, "").retryable, RETRYABLE.includes(code), code);
  for (const reason of ["csp", "no_webassembly", "version"]) {
    assert.equal(new CompactionError("stage_unavailable", "", { reason }).retryable, false, reason);
  }
});

for (const [what, error, retryable] of [
  ["429", Object.assign(new Error("slow down"), { status: 429 }), true],
  ["500", Object.assign(new Error("oops"), { status: 500 }), true],
  ["529", Object.assign(new Error("overloaded"), { status: 529 }), true],
  ["400", Object.assign(new Error("no such model"), { status: 400 }), false],
  ["401", Object.assign(new Error("whose key is that?"), { status: 401 }), false],
  ["nothing", new Error("a bug"), false],
]) {
  test(`H14: a summary that failed with ${what} is ${retryable ? "" : "not "}retryable`, async () => {
    const { success, changed, reason, error: failed, appliedEdits } = await failing(error);
    assert.deepEqual([success, failed.code, failed.retryable], [false, "summary_failed", retryable]);
    assert.equal(reason, failed.message);
    assert.equal(changed, appliedEdits.length > 0);
  });
}

test("H14: a lost connection and a call that took too long are retryable", async () => {
  const provider = { kind: "openai", model: "m", url: "http://127.0.0.1:9/v1" };
  const lost = await compact(history, { ...USUAL, summarize: { provider, attempts: 1 } });
  assert.deepEqual([lost.success, lost.error.code, lost.error.retryable], [false, "summary_failed", true]);
  const never = { call: () => new Promise(() => {}), attempts: 1, timeoutMs: 5 };
  const late = await compact(history, { ...USUAL, summarize: never });
  assert.deepEqual([late.success, late.error.code, late.error.retryable], [false, "timeout", true]);
});

test("H14: a success says what changed, and why where nothing did", async () => {
  const done = await compact(history, { ...USUAL, summarize: () => SUMMARY });
  assert.deepEqual([done.success, done.changed, done.error], [true, true, undefined]);
  const idle = await compact(history.slice(0, 2), { ...USUAL, summarize: () => SUMMARY });
  assert.deepEqual([idle.success, idle.changed, idle.error], [true, false, undefined]);
  assert.ok(idle.reason);
});
