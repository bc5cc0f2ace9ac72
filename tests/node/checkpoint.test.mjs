/** Preset `checkpoint` through the package: goals, levels, reliability, what stands in the context. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { buildSummaryPrompt, compact, memoryStore, openSession, withDocumentedNames } from "../support/offload.mjs";
import { chat, fails, frozen, summariser, SUMMARY } from "../support/api.mjs";

const GOAL = {
  id: "g1",
  description: "Fix the parser",
  priority: "high",
  status: "active",
  checkpoints: [{ description: "Find the fault", status: "completed", completedAt: 1_700_000_000_000 }],
  decisions: [{ id: "d1", description: "Keep the public API", rationale: "users", locked: true }],
  artifacts: [{ type: "file", path: "src/parser.rs", action: "modified" }],
};
const OPTIONS = { preset: "checkpoint", contextWindow: 32_000, model: "llama3:7b" };

test("s5_13_a_goal_stands_behind_the_system_prompt_and_is_updated_by_markers", async () => {
  const store = memoryStore();
  const options = frozen({ ...OPTIONS, id: "a", goal: GOAL, systemPrompt: "You are a tool." });
  const session = await openSession({ ...options, store });
  assert.deepEqual(session.goal.current, GOAL);
  await session.append(...chat(2));
  const { system } = await session.prepare();
  assert.match(system, /^You are a tool\.\n\nACTIVE GOAL: Fix the parser\nPriority: high\nStatus: active\n/);
  assert.match(system, /✅ Find the fault\n\nKey Decisions:\n🔒 Keep the public API\n/);
  const goal = await session.goal.applyMarkers("Done.\n[DECISION] Use E0502 as the test\n[ARTIFACT] Created tests/a.rs");
  assert.deepEqual(goal.decisions[1], { id: "d2", description: "Use E0502 as the test", rationale: "", locked: false });
  assert.deepEqual(goal.artifacts[1], { type: "file", path: "tests/a.rs", action: "created" });
  assert.deepEqual(session.goal.current, goal);
  const again = await openSession({ ...options, store });
  assert.deepEqual(again.goal.current, goal, "what was reached holds");
  await again.goal.set({ ...GOAL, id: "g2", status: "paused" });
  assert.equal((await again.prepare()).system, "You are a tool.");
  await assert.rejects(again.goal.set({ ...GOAL, priority: "urgent" }), fails("invalid_option", { field: "goal.priority" }));
  await assert.rejects(again.goal.set("win"), fails("invalid_option"));
  const bare = await openSession({ store: memoryStore() });
  await assert.rejects(bare.goal.applyMarkers("[DECISION] x"), fails("not_found"));
  assert.equal(bare.goal.current, undefined);
});

test("s5_3_s5_11_checkpoints_reliability_and_validation_are_told", async () => {
  const summarize = summariser();
  const stages = [];
  const options = { ...OPTIONS, store: memoryStore(), summarize, onProgress: ({ stage }) => stages.push(stage) };
  const session = await openSession(options);
  assert.deepEqual(session.context.reliability(), { score: 0.5, warn: false });
  await session.append(...chat(20));
  const result = await session.compact();
  assert.equal(result.success, true);
  assert.deepEqual(stages, ["identify", "prepare", "summarize", "checkpoint", "update", "validate"]);
  const [record] = session.context.checkpoints();
  assert.equal(result.messages[0].content.startsWith(`[Checkpoint ${record.id} @ `), true);
  assert.equal(result.messages[0].content.includes(SUMMARY), true);
  assert.deepEqual([record.number, record.messageRange[0]], [0, 0]);
  assert.equal(session.context.reliability().score, 0.45);
  const { valid, tokens, limit } = await withDocumentedNames(session).validate();
  assert.deepEqual([valid, tokens, limit], [true, session.context.usage().usedTokens, 31_000]);
});

test("S5.5, F1: nothing to compress is a success that says so, and none by the document's names", async () => {
  const { success, reason, freedTokens } = await compact(chat(2), OPTIONS);
  assert.deepEqual([success, reason, freedTokens], [true, "No messages to compress", 0]);
  const documented = withDocumentedNames(await openSession({ ...OPTIONS, store: memoryStore() }));
  await documented.append(...chat(2));
  const result = await documented.compact();
  assert.deepEqual([result.success, result.reason, result.error, result.freedTokens], [false, "No messages to compress", undefined, 0]);
});

test("s5_8_old_checkpoints_go_to_the_summariser_of_the_history_with_purposes_of_their_own", async () => {
  const purposes = [];
  const summarize = async (_, { purpose }) => {
    purposes.push(purpose);
    return `${purpose} ${purposes.length}: ${SUMMARY.repeat(purpose === "history" ? 4 : 1)}`;
  };
  const summarizeResult = async () => assert.fail("a checkpoint is no tool result");
  const session = await openSession({ ...OPTIONS, store: memoryStore(), summarize: { call: summarize, detail: 3, forResults: summarizeResult } });
  for (let nth = 0; nth < 13; nth += 1) {
    await session.append(...chat(10, nth * 10));
    const { success, error } = await session.compact();
    assert.equal(success, true, String(error));
  }
  assert.deepEqual([...new Set(purposes)], ["history", "age", "merge"]);
  assert.equal(session.context.checkpoints().length < 13, true);
});

test("s5_7_s5_10_a_prompt_by_level_mode_and_goal", async () => {
  const prompt = (options) => buildSummaryPrompt(chat(4), { preset: "checkpoint", ...options });
  const { system, targetTokens } = await prompt({ mode: "planning", detail: 2, goal: GOAL, contextWindow: 8_000 });
  assert.equal(targetTokens, 300);
  assert.match(system, /150 to 300 tokens/);
  assert.match(system, /trade-offs/);
  assert.match(system, /ACTIVE GOAL: Fix the parser/);
  assert.equal((await prompt({ contextWindow: 8_000 })).targetTokens, 500);
  assert.equal((await prompt({ targetTokens: 77 })).targetTokens, 77);
  assert.match((await prompt({ mode: "ANYTHING" })).system, /preferences/);
});

test("s5_12_an_unknown_model_or_size_is_an_error", async () => {
  const profiles = [{ model: "llama3:7b", size: 8_000, share: 0.85 }];
  const open = (model, contextWindow) =>
    openSession({ preset: "checkpoint", store: "memory", model, contextWindow, presetOptions: { profiles } });
  assert.equal((await open("llama3:7b", 8_000)).context.usage().maxTokens, 6_800);
  await assert.rejects(open("other", 8_000), fails("unknown_model", { message: "Model not found: other" }));
  await assert.rejects(open("llama3:7b", 9_000), fails("invalid_option", { field: "contextWindow" }));
});

test("s5_3_s5_8_a record has the document's fields, and keeps its id, time, number and range as it ages", async () => {
  let now = 1_700_000_000_000;
  const runtime = { now: () => (now += 1_000), id: () => crypto.randomUUID() };
  const summarize = async (_, { purpose }) => `${purpose} at ${now}: ${SUMMARY.repeat(purpose === "history" ? 4 : 1)}`;
  const checkpoint = { ageModerate: 3, ageCompact: 4 };
  const session = await openSession({ ...OPTIONS, store: "memory", presetOptions: checkpoint, summarize: { call: summarize, detail: 3 }, advanced: { runtime } });
  await session.append(...chat(10));
  const begun = now;
  const { previousTokens, freedTokens } = await session.compact();
  const [first] = session.context.checkpoints();
  const { id, timestamp, messageRange, originalTokens, countedTokens, compressedTokens, compressionRatio, level, number, ...more } = first;
  assert.deepEqual([more, level, number, messageRange], [{}, 3, 0, [0, 15]]);
  assert.match(id, /^cp_[a-z2-7]{26}$/);
  assert.ok(timestamp > begun && timestamp <= now);
  assert.equal(freedTokens, originalTokens - compressedTokens);
  assert.equal(compressionRatio, compressedTokens / originalTokens);
  assert.ok(countedTokens > 0 && countedTokens < originalTokens && originalTokens < previousTokens);
  const levels = [];
  for (let round = 1; round <= 3; round += 1) {
    await session.append(...chat(8, round * 10));
    assert.equal((await session.compact()).success, true);
    const [aged] = session.context.checkpoints();
    levels.push(aged.level);
    assert.deepEqual([aged.id, aged.timestamp, aged.number, aged.messageRange], [id, timestamp, 0, [0, 15]]);
  }
  assert.deepEqual(levels, [3, 2, 1]);
  await session.close();
});

test("s5_12_a_profile_may_name_what_the_provider_takes, and without a share it is all of the size", async () => {
  const profiles = [
    { model: "llama3:7b", size: 8_000, contextSize: 7_000, share: 0.85 },
    { model: "llama3:7b", size: 16_000 },
  ];
  for (const [contextWindow, takes] of [[8_000, 7_000], [16_000, 16_000]]) {
    const session = await openSession({ ...OPTIONS, contextWindow, store: "memory", presetOptions: { profiles } });
    assert.equal(session.context.usage().maxTokens, takes);
    assert.deepEqual((await session.context.validate()), { valid: true, tokens: 0, limit: takes - 1_000 });
    await session.close();
  }
  const session = await openSession({ ...OPTIONS, contextWindow: 4_000, store: "memory", tokenCounter: () => 1_000 });
  await session.append(...chat(2));
  const { suggestions, ...told } = await session.context.validate();
  const message = "Context exceeds provider limit by 1000 tokens";
  assert.deepEqual(told, { valid: false, tokens: 4_000, limit: 3_000, overage: 1_000, message });
  assert.match(suggestions[0], /^compress older messages/);
  await session.close();
});

test("S5.5: a failure at any stage leaves the context as it was, and the stages told end with the one that failed", async () => {
  const STAGES = ["identify", "prepare", "summarize", "checkpoint", "update", "validate"];
  const large = (messages) => messages.map((message) => ({ ...message, content: message.content.repeat(12) }));
  const disk = new Error("the disk is gone");
  const down = new Error("down");
  for (const [name, last, messages, over, contextWindow = OPTIONS.contextWindow] of [
    ["the summariser fails", "summarize", chat(10), { call: async () => Promise.reject(down) }],
    ["the summary is refused", "summarize", chat(10), { call: async () => "Done." }],
    ["the prompt does not fit", "validate", [...chat(10), ...large(chat(3))], { contextWindow: 32_000 }, 4_000],
    ["the store fails", "validate", chat(10), {}],
  ]) {
    const stages = [];
    const store = memoryStore();
    const commit = (batch) => {
      if (name === "the store fails" && batch.puts.some(([key]) => key[0] === "views")) throw disk;
      return store.commit(batch);
    };
    const onProgress = ({ stage }) => stages.push(stage);
    const session = await openSession({ ...OPTIONS, contextWindow, store: { ...store, commit }, onProgress, summarize: { call: summariser(), attempts: 1, ...over } });
    session.on("compact", () => assert.fail(`${name}: nothing was compacted`));
    await session.append(...messages);
    const before = await session.context.parts();
    const failed = await session.compact().catch((error) => ({ success: false, error, freedTokens: 0 }));
    assert.deepEqual([failed.success, failed.freedTokens], [false, 0], name);
    assert.match(failed.error.message, { summarize: /down|short/, validate: /Compression failed validation: Context exceeds|disk is gone/ }[last], name);
    assert.deepEqual(stages, STAGES.slice(0, STAGES.indexOf(last) + 1), name);
    assert.deepEqual((await session.context.parts()), before, name);
    assert.ok((await session.context.parts()).recentMessages.every((message, at) => message === messages[at]), name);
    assert.deepEqual([session.context.checkpoints(), session.context.reliability().score], [[], 0.5], name);
    await session.close();
  }
});

test("s5_6_five_messages_or_fewer_are_nothing_to_compress, whatever they are", async () => {
  const history = chat(4).slice(1);
  for (let count = 1; count <= 7; count += 1) {
    // The first is the model's: with a sixth message it is compressed.
    const summarize = summariser("The parser was read and it fails.");
    const { reason, success, ledger } = await compact(history.slice(0, count), { ...OPTIONS, format: "openai-chat", summarize });
    assert.equal(success, true);
    assert.equal(reason, count <= 5 ? "No messages to compress" : undefined, `${count}`);
    assert.equal(ledger[0].fate, count <= 5 ? "verbatim" : "summarized", `${count}`);
    assert.equal(summarize.calls.length, count <= 5 ? 0 : 1);
  }
});

test("s5_13_every_state_and_every_action_of_a_marker_reaches_the_goal and its block", async () => {
  const steps = ["one", "two", "three"].map((description) => ({ description, status: "pending" }));
  const goal = { ...GOAL, checkpoints: steps, decisions: [], artifacts: [] };
  const runtime = { now: () => 1_700_000_000_000, id: () => crypto.randomUUID() };
  const session = await openSession({ ...OPTIONS, store: "memory", goal, systemPrompt: "You are a tool.", advanced: { runtime } });
  const output = [
    "[CHECKPOINT] one - IN-PROGRESS",
    "[CHECKPOINT] two - COMPLETED",
    "[CHECKPOINT] three - COMPLETED",
    "[CHECKPOINT] three - PENDING",
    "[ARTIFACT] Created a.rs",
    "[ARTIFACT] Modified b.rs",
    "[ARTIFACT] Deleted c.rs",
    "[DECISION] Use serde - LOCKED",
    "[DECISION] No async",
  ];
  const { checkpoints, artifacts, decisions } = await session.goal.applyMarkers(output.join("\n"));
  assert.deepEqual(checkpoints, [
    { description: "one", status: "in-progress" },
    { description: "two", status: "completed", completedAt: 1_700_000_000_000 },
    { description: "three", status: "pending" },
  ]);
  const file = (path, action) => ({ type: "file", path, action });
  assert.deepEqual(artifacts, [file("a.rs", "created"), file("b.rs", "modified"), file("c.rs", "deleted")]);
  assert.deepEqual(decisions.map(({ description, locked }) => [description, locked]), [["Use serde", true], ["No async", false]]);
  await session.append(...chat(1));
  const { system } = await session.prepare();
  assert.match(system, /\n\nCheckpoints:\n🔄 one\n✅ two\n⏳ three\n\nKey Decisions:\n🔒 Use serde\n- No async\n/);
  await session.goal.set({ ...session.goal.current, status: "completed" });
  assert.equal((await session.prepare()).system, "You are a tool.", "one that was reached is not told any more");
  await session.close();
});

test("S5.17: with ten checkpoints and more, a compaction takes less than 5 s beside the model, and validation less than 100 ms", async () => {
  let [asking, longest, validating] = [0, 0, 0];
  const timed = async (work) => {
    const begun = performance.now();
    await work();
    return performance.now() - begun;
  };
  const summarize = async () => {
    asking += await timed(() => new Promise((resolve) => setTimeout(resolve, 5)));
    return SUMMARY.repeat(3);
  };
  const session = await openSession({ ...OPTIONS, contextWindow: 200_000, store: "memory", summarize: { call: summarize, detail: 3 } });
  for (let nth = 0; nth < 12; nth += 1) {
    await session.append(...chat(60, nth * 60));
    asking = 0;
    const took = await timed(async () => assert.equal((await session.compact()).success, true));
    longest = Math.max(longest, took - asking);
    // The quickest of three: another program may hold up any one of them.
    const validations = [];
    for (let call = 0; call < 3; call += 1) validations.push(await timed(async () => assert.equal((await session.context.validate()).valid, true)));
    validating = Math.max(validating, Math.min(...validations));
  }
  assert.ok(session.context.checkpoints().length >= 10, `${session.context.checkpoints().length}`);
  assert.ok(longest < 5_000 && validating < 100, `${longest} ms, ${validating} ms`);
  await session.close();
});
