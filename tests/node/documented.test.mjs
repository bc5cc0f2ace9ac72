/** A session under the names of the five documents (H16). Tests with the ids of the systems call them where a document does. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSession } from "context-compactor";
import { withDocumentedNames } from "context-compactor/presets";
import { chat, exchange, fails, summariser } from "../support/api.mjs";

const NAMES = [
  "getContextUsage",
  "getState",
  "getAvailableTokens",
  "validate",
  "removeMessages",
  "snapshot",
  "snapshots",
  "restore",
  "sessionLog",
  "exportMarkdown",
];
const OWN = ["id", "append", "sync", "prepare", "compact", "on", "close"];

const open = (options = {}) => openSession({ preset: "offload", contextWindow: 8_000, store: "memory", summarize: summariser(), ...options });

test("H16: it has the documents' names, and those of an agent's loop", async () => {
  const documented = withDocumentedNames(await open());
  assert.deepEqual(Object.keys(documented).sort(), [...NAMES, ...OWN].sort());
  for (const session of [undefined, null, {}, documented, "s"]) {
    assert.throws(() => withDocumentedNames(session), fails("invalid_option", { field: "session" }));
  }
});

test("H16: each says what the session says", async () => {
  const session = await open({ preset: "checkpoint", contextWindow: 32_000 });
  const documented = withDocumentedNames(session);
  assert.equal(documented.id, session.id);
  assert.deepEqual(await documented.sync(chat(20)), { appended: 40, recognized: 0 });
  await documented.append(...chat(1, 20));
  const { success, messages } = await documented.compact({ instructions: "Name files." });
  assert.equal(success, true);
  assert.deepEqual((await documented.prepare({ tools: [] })).messages, messages);
  assert.deepEqual(documented.getContextUsage(), session.context.usage());
  assert.equal(documented.getAvailableTokens(), session.context.availableTokens());
  assert.deepEqual(await documented.getState(), await session.context.parts());
  assert.deepEqual(await documented.validate(), await session.context.validate());
  assert.notEqual(documented.sessionLog(), "");
  assert.equal(documented.sessionLog(), session.archive.compactionLog());
  assert.equal(await documented.exportMarkdown(), await session.archive.markdown());
  const id = await documented.snapshot("rollback");
  assert.deepEqual(await documented.snapshots(), await session.snapshots.list());
  assert.equal((await documented.snapshots())[0].purpose, "rollback");
  assert.deepEqual(await documented.removeMessages([41]), [41]);
  const removed = await session.context.parts();
  await documented.restore(id);
  assert.equal((await session.context.parts()).recentMessages.length, removed.recentMessages.length + 1);
  await documented.close({ delete: true });
  assert.throws(() => session.context.usage(), fails("closed"));
});

test("H16: results and the event have deletedFiles and deletedFileCount, in place of the names of today", async () => {
  const session = await open();
  const documented = withDocumentedNames(session);
  const [events, others] = [[], []];
  const off = documented.on("compact", (data) => events.push(data));
  documented.on("offload", (data) => others.push(data));
  const told = [];
  session.on("compact", (data) => told.push(data));
  for (let nth = 0; nth < 20; nth++) await documented.append(...exchange(nth, 1_200));
  const { edits, result } = await documented.prepare();
  assert.ok(edits.length > 0 && others.length === 1);
  const compacted = result ?? (await documented.compact());
  assert.ok(compacted.deletedFiles.length > 0);
  assert.equal("retiredRefs" in compacted, false);
  const { previousTokens, currentTokens, freedTokens, deletedFiles } = compacted;
  assert.deepEqual(events, [{ previousTokens, currentTokens, freedTokens, deletedFileCount: deletedFiles.length }]);
  assert.equal(told[0].retiredRefCount, deletedFiles.length);
  off();
  await documented.append(...chat(20));
  await documented.compact();
  assert.deepEqual([events.length, told.length], [1, 2]);
  assert.throws(() => documented.on("compact", {}), fails("invalid_option", { field: "listener" }));
  assert.throws(() => documented.on("compacted", () => {}), fails("invalid_option", { field: "event" }));
});

test("H16: a summary that prepare asked for has them, too, and one that failed is as it was", async () => {
  const session = await open({ compactAt: { tokens: 2_000 }, advanced: { minOffloadGain: 1e6 } });
  const documented = withDocumentedNames(session);
  for (let nth = 0; nth < 20; nth++) await documented.append(...exchange(nth, 1_200));
  const { result } = await documented.prepare();
  assert.deepEqual([result.success, Array.isArray(result.deletedFiles), "retiredRefs" in result], [true, true, false]);
  const failing = withDocumentedNames(await open({ summarize: { call: async () => Promise.reject(new Error("down")), attempts: 1 } }));
  await failing.append(...chat(20));
  const { success, error, deletedFiles } = await failing.compact();
  assert.deepEqual([success, error.code, deletedFiles], [false, "summary_failed", []]);
});

test("H16: nothing to compress is none in preset checkpoint, and a success elsewhere, as each document has it", async () => {
  for (const [preset, success] of [["checkpoint", false], ["offload", true], ["factor3", true], ["layered", true]]) {
    const documented = withDocumentedNames(await open({ preset, contextWindow: 200_000 }));
    await documented.append(...chat(1));
    const result = await documented.compact();
    assert.deepEqual([result.success, result.changed, result.freedTokens, result.error], [success, false, 0, undefined], preset);
    if (!success) assert.equal(result.reason, "No messages to compress");
  }
});
