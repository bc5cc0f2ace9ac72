/** Snapshots, the active context, and what is refused where a message belongs (`S5.1`, `S5.2`, `S5.4`). */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addTurn,
  buildSummaryPrompt,
  compact,
  detectFormat,
  estimateTokens,
  extractiveSummary,
  memoryStore,
  openSession,
  planCompaction,
  repairHistory,
  splitMessages,
  validateHistory,
  withDocumentedNames,
} from "../support/offload.mjs";
import { chat, fails, frozen, summariser } from "../support/api.mjs";

const OPTIONS = { preset: "checkpoint", contextWindow: 32_000 };
const GOAL = { id: "g", description: "Fix the parser", priority: "high", status: "active", checkpoints: [], decisions: [], artifacts: [] };

const open = (store, over = {}) => openSession({ ...OPTIONS, id: "s", store, summarize: summariser(), ...over });
const sent = async (session) => (await session.prepare()).messages;

test("S5.2: a snapshot brings back the very messages, and what was said since stays in the transcript", async () => {
  const store = memoryStore();
  const session = await open(store, { goal: GOAL });
  const history = frozen(chat(30));
  await session.append(...history);
  assert.equal((await session.compact()).success, true);
  const before = await sent(session);
  const checkpoints = session.context.checkpoints();
  const documented = withDocumentedNames(session);
  const id = await documented.snapshot("rollback");
  assert.match(id, /^snap_[a-z2-7]{26}$/);

  await session.append(...chat(30, 30));
  await session.goal.set({ ...GOAL, description: "Something else" });
  assert.equal((await session.compact()).success, true);
  assert.notDeepEqual(await sent(session), before);

  assert.equal(await documented.restore(id), undefined);
  const after = await sent(session);
  assert.deepEqual(after, before);
  assert.equal(after.at(-1), history.at(-1), "the app's own object");
  assert.deepEqual([session.context.checkpoints(), session.goal.current], [checkpoints, GOAL]);
  const left = (await session.context.explain()).filter(({ fate }) => fate === "dropped");
  assert.deepEqual(left.map(({ index }) => index), Array.from({ length: 60 }, (_, nth) => 60 + nth));
  assert.match(left[0].reason, /snapshot that was restored; the log keeps it/);
  const [hit] = await session.recall.search(chat(1, 45)[0].content);
  assert.equal((await session.recall.read(hit.ref)).length > 0, true);

  // Reopened, it is the same; and so it is once more.
  await session.close();
  const again = await open(store);
  assert.deepEqual(await sent(again), before);
  assert.deepEqual((await withDocumentedNames(again).snapshots()).map((one) => one.id), [id]);
  await again.append({ role: "user", content: "another way" });
  await again.snapshots.restore(id);
  assert.deepEqual(await sent(again), before);
});

test("X14: undo brings back the very messages, and what was said since stays behind them", async () => {
  const store = memoryStore();
  const session = await open(store);
  const history = frozen(chat(30));
  await session.append(...history);
  const preview = await session.snapshots.preview();
  assert.deepEqual(await sent(session), history, "a preview changes nothing");
  const result = await session.compact();
  assert.equal(result.success, true);
  const since = frozen(chat(2, 30));
  await session.append(...since);
  const compacted = await sent(session);

  assert.equal(await session.snapshots.undo(), undefined);
  const after = await sent(session);
  assert.deepEqual(after, [...history, ...since]);
  assert.equal(since.every((message, nth) => message === after[30 * 2 + nth]), true, "the app's own objects");
  assert.deepEqual([session.context.checkpoints(), session.archive.metadata().compressionCount], [[], 0]);
  assert.equal((await session.context.explain()).every(({ fate }) => fate === "verbatim"), true);
  assert.deepEqual(await session.sync([...history, ...since]), { appended: 0, recognized: 64 });
  await assert.rejects(session.snapshots.undo(), fails("not_found", { message: /^No compaction to undo: the context was not compacted/ }));
  assert.equal((await session.archive.verify()).ok, true);

  // What the preview said came true.
  assert.deepEqual(preview.changes.map(({ index }) => index), result.ledger.filter(({ fate }) => fate !== "verbatim").map(({ index }) => index));
  assert.equal(preview.changes.every(({ before, after, tokens }) => before === "verbatim" && after === "summarized" && tokens > 0), true);
  assert.equal(preview.tokens, result.previousTokens);
  const off = Math.abs(preview.tokensAfter - result.currentTokens);
  assert.equal(off < preview.tokens / 50, true, `${preview.tokensAfter}, and then ${result.currentTokens}`);

  // Reopened, it is the same, and can be compacted anew.
  await session.close();
  const again = await open(store);
  assert.deepEqual(await sent(again), after);
  assert.equal((await again.compact()).success, true);
  assert.notDeepEqual(await sent(again), compacted);
});

test("S5.2: snapshots are listed, the newest five are kept, and one that there is not is not found", async () => {
  const session = await open(memoryStore(), { advanced: { runtime: { now: () => 1_700_000_000_000, id: () => crypto.randomUUID() } } });
  const documented = withDocumentedNames(session);
  assert.deepEqual(await documented.snapshots(), []);
  await session.append(...chat(2));
  const first = await documented.snapshot();
  const [info] = await documented.snapshots();
  const { usedTokens } = session.context.usage();
  assert.deepEqual(info, {
    id: first,
    purpose: "recovery",
    timestamp: 1_700_000_000_000,
    messageCount: 4,
    checkpointCount: 0,
    tokens: usedTokens,
  });
  const ids = [];
  for (let nth = 0; nth < 5; nth += 1) ids.push(await session.snapshots.take("rollback"));
  assert.deepEqual((await session.snapshots.list()).map(({ id }) => id), ids);
  for (const id of [first, "snap_none", undefined]) {
    await assert.rejects(documented.restore(id), fails("not_found", { message: `Snapshot not found: ${id}` }));
  }
  for (const purpose of ["emergency", "", null]) {
    await assert.rejects(documented.snapshot(purpose), fails("invalid_option", { field: "purpose" }));
  }
  for (const keepSnapshots of [0, 101, "5"]) {
    await assert.rejects(open("memory", { presetOptions: { keepSnapshots } }), fails("invalid_option", { field: "presetOptions.keepSnapshots" }));
  }
  await session.close();
  await assert.rejects(session.snapshots.take(), fails("closed"));
  await assert.rejects(session.snapshots.restore(first), fails("closed"));
});

test("S5.2: a restore waits for a compaction, and a snapshot is taken beside it", async () => {
  let asked;
  const begun = new Promise((resolve) => (asked = resolve));
  let answer;
  const summarize = () => new Promise((resolve) => ((answer = resolve), asked()));
  const session = await open(memoryStore(), { summarize });
  await session.append(...chat(15));
  const id = await session.snapshots.take();
  const compacting = session.compact();
  await begun;
  const beside = await session.snapshots.take();
  const restoring = session.snapshots.restore(id);
  answer("The user asked many things about the parser, and all of them were answered.");
  assert.equal((await compacting).success, true);
  await restoring;
  assert.equal((await sent(session)).length, 30);
  await session.snapshots.restore(beside);
  assert.equal((await sent(session)).length, 30);
});

test("S5.2: sync goes on with the history that was gone back to", async () => {
  const store = memoryStore();
  const session = await open(store, { onDiverged: "throw" });
  const history = chat(3);
  await session.sync(history);
  const id = await session.snapshots.take();
  await session.sync([...history, ...chat(1, 3)]);
  await session.snapshots.restore(id);
  const other = [...history, { role: "user", content: "another way" }, { role: "assistant", content: "yes" }];
  assert.deepEqual(await session.sync(other), { appended: 2, recognized: 6 });
  assert.deepEqual(await session.sync(other), { appended: 0, recognized: 8 });
  const messages = await sent(session);
  assert.deepEqual(messages, other);
  assert.equal(messages.every((message, at) => message === other[at]), true, "the app's own objects");
  assert.equal((await session.context.explain()).length, 10);
  const changed = [...other.slice(0, 7), { role: "assistant", content: "no" }];
  await assert.rejects(session.sync(changed), fails("diverged", { index: 7 }));
  const again = await open(store);
  assert.deepEqual(await again.sync(structuredClone(other)), { appended: 0, recognized: 8 });
  assert.deepEqual(await sent(again), other);
});

test("S5.15: an emergency takes a snapshot first, which brings back what was there", async () => {
  const session = await openSession({ preset: "checkpoint", contextWindow: 4_000, store: "memory", summarize: { fallback: "extractive" } });
  const long = "the parser reads the next token and the test fails again ".repeat(60);
  await session.append(...chat(1));
  for (let nth = 0; nth < 6; nth += 1) {
    await session.append({ role: "user", content: `${nth}: ${long}` }, { role: "assistant", content: `${nth}: ${long}` });
  }
  const warnings = [];
  session.on("warning", ({ message }) => warnings.push(message));
  await session.prepare();
  const [first, ...more] = await session.snapshots.list();
  assert.equal([first, ...more].every(({ purpose }) => purpose === "emergency"), true);
  assert.equal(first.messageCount, 14);
  const told = warnings.find((message) => message.startsWith("Emergency"));
  if (told) assert.match(told, /restoring snap_\w+ undoes it/);
  await session.snapshots.restore(first.id);
  assert.equal((await session.context.parts()).recentMessages.length, 14);
});

test("S5.1: the context by its parts, with what is left of the window", async () => {
  const session = await open(memoryStore(), { systemPrompt: "You are a tool." });
  const { getAvailableTokens, getContextUsage, getState, validate } = withDocumentedNames(session);
  const empty = await getState();
  assert.deepEqual([empty.checkpoints, empty.recentMessages, empty.systemPrompt], [[], [], "You are a tool."]);
  const history = chat(30);
  await session.append(...history);
  await session.compact();
  await session.prepare({ tools: [{ name: "read_file", description: "Reads a file from the disk" }] });
  const { checkpoints, recentMessages, tokenCount } = await getState();
  assert.deepEqual(checkpoints, session.context.checkpoints());
  assert.equal(recentMessages.length >= 5 && recentMessages.every((message) => history.includes(message)), true);
  const { system, checkpoints: ofCheckpoints, recent, total } = tokenCount;
  assert.equal(system + ofCheckpoints + recent, total);
  assert.equal(total, getContextUsage().usedTokens);
  assert.equal(getAvailableTokens(), 31_000 - total);
  assert.equal(getAvailableTokens(), (await validate()).limit - total);
  const state = await getState();
  assert.throws(() => state.recentMessages.push({}), TypeError);
  assert.throws(() => (state.tokenCount.total = 0), TypeError);
  assert.throws(() => (state.checkpoints[0].id = "x"), TypeError);
  const parts = Object.fromEntries(getContextUsage().categories.map(({ name, tokens }) => [name, tokens]));
  assert.equal(parts.system + parts.tools, system);
  assert.equal(parts.tools > 0 && parts.free > 0 && parts.buffer > 0, true);
});

test("S5.1: what does not fit is refused with both figures, and is in the transcript all the same", async () => {
  const store = memoryStore();
  const session = await open(store, { contextWindow: 4_000, tokenCounter: ([{ content }]) => content.length });
  await session.append({ role: "user", content: "x".repeat(1_000) }, { role: "assistant", content: "y".repeat(2_000) });
  assert.equal((await session.prepare()).usage.usedTokens, 3_000, "equality fits");
  await session.append({ role: "user", content: "z" });
  const short = { role: "user", content: "z".repeat(3_001) };
  const full = await openSession({ preset: "checkpoint", contextWindow: 4_000, store: "memory", tokenCounter: ([{ content }]) => content.length });
  await full.append(short);
  await full.pins.add(0);
  await assert.rejects(full.prepare(), (error) => {
    assert.equal(error.code, "context_overflow");
    assert.match(error.message, /^message 0: Cannot add message: would exceed limit \(3001 > 3000\)/);
    return true;
  });
  assert.deepEqual([(await full.context.explain()).length, full.context.availableTokens(), (await full.context.validate()).overage], [1, 0, 1]);
});

test("S5.1: messages are removed as whole exchanges, and never from the transcript", async () => {
  const store = memoryStore();
  const session = await open(store);
  const call = { id: "c1", type: "function", function: { name: "read_file", arguments: "{}" } };
  const history = [
    ...chat(1),
    { role: "user", content: "read it" },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "c1", content: "the file" },
    { role: "assistant", content: "done" },
  ];
  await session.append(...history);
  const { removeMessages } = withDocumentedNames(session);
  assert.deepEqual(await removeMessages([4]), [3, 4]);
  assert.deepEqual(await sent(session), history.filter((_, at) => at !== 3 && at !== 4));
  assert.deepEqual(await removeMessages([3]), []);
  assert.equal((await session.context.explain())[4].reason, "it was removed from the context; the log keeps it");
  assert.deepEqual(await session.sync(history), { appended: 0, recognized: history.length }, "it is still the same conversation");
  assert.deepEqual(await removeMessages([9, 77]), [], "F33: what there is not is passed over");
  for (const ids of [undefined, "3", [-1], [0.5], ["a"]]) await assert.rejects(removeMessages(ids), fails("invalid_option"));
  const again = await open(store);
  assert.equal((await sent(again)).length, 4);
});

/** Records as the library hands them out, as JSON brings them back, and as the document has them. */
async function records() {
  const session = await open(memoryStore(), { goal: GOAL });
  await session.append(...chat(30));
  await session.compact();
  await session.snapshots.take("rollback");
  const [snapshot] = await session.snapshots.list();
  const [checkpoint] = session.context.checkpoints();
  const messages = chat(1);
  const archive = await new Response(session.archive.jsonl()).text();
  const lines = archive.trim().split("\n").map((line) => JSON.parse(line));
  const row = { v: 100, seq: 0, n: 0, id: "msg_x", kind: "message", at: 1, prev: "", chain: "x", body: messages[0], hash: "x" };
  return {
    snapshot: [
      snapshot,
      JSON.parse(JSON.stringify(snapshot)),
      { ...snapshot },
      { id: "a", sessionId: "s", timestamp: 1, conversationState: { messages, checkpoints: [] }, purpose: "emergency" },
    ],
    history: [
      checkpoint,
      structuredClone(checkpoint),
      row,
      ...["session", "message", "view", "snapshot", "checkpoint"].map((kind) => lines.find((line) => line.kind === kind)),
      session.archive.metadata(),
      structuredClone(session.archive.metadata()),
      ...(await session.archive.checkpoints()),
      session.archive.history(),
      session.archive.jsonl(),
      { sessionId: "s", messages, checkpointRecords: [], metadata: { startTime: 1 } },
    ],
  };
}

test("S5.4: a snapshot or a session's record is refused wherever messages are taken", async () => {
  const functions = {
    buildSummaryPrompt,
    extractiveSummary,
    compact,
    planCompaction,
    splitMessages,
    estimateTokens,
    detectFormat,
    validateHistory,
    repairHistory,
  };
  const session = await open(memoryStore());
  await session.append(...chat(2));
  const before = await session.context.explain();
  for (const [kind, found] of Object.entries(await records())) {
    const words = kind === "snapshot" ? /a snapshot is never sent to a model; session\.snapshots\.restore/ : /record of a session is never sent/;
    const refused = (index) => (error) => {
      assert.equal(error.code, "invalid_message");
      assert.match(error.message, words);
      assert.equal(error.index, index);
      return true;
    };
    for (const record of found) {
      for (const [name, call] of Object.entries(functions)) {
        const among = async () => call([...chat(1), record], { format: "openai-chat" });
        await assert.rejects(among, refused(2), `${name} of ${JSON.stringify(record)}`);
        if (name === "estimateTokens") await assert.rejects(async () => call(record), refused(0));
        else await assert.rejects(async () => call(record), refused(undefined), name);
      }
      await assert.rejects(session.append(record), refused(0));
      await assert.rejects(session.append(chat(1)[0], record), refused(1));
      await assert.rejects(session.sync([...chat(1), record]), refused(2));
      await assert.rejects(session.sync(record), refused(undefined));
      await assert.rejects(addTurn(session, record), refused(0));
    }
  }
  assert.deepEqual((await session.context.explain()), before, "nothing was appended");
});

test("S5.4: what only resembles a record is a message", async () => {
  const odd = [
    { role: "user", content: "x", purpose: "recovery", timestamp: 1, conversationState: {} },
    { role: "assistant", content: "y", sessionId: "s", messages: [], checkpointRecords: [] },
  ];
  const session = await openSession({ store: "memory" });
  await session.append(...odd);
  assert.deepEqual(await sent(session), odd);
  const trajectory = [{ thought: "t", action: { purpose: "recovery", timestamp: 1 }, result: "r" }];
  assert.equal(await detectFormat(trajectory), "react");
});
