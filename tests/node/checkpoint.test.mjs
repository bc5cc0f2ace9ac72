/** Preset `checkpoint` through the package: goals, levels, reliability, what stands in the context. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { buildSummaryPrompt, compact, memoryStore, openSession } from "../support/offload.mjs";
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
  assert.deepEqual(session.goal, GOAL);
  await session.append(...chat(2));
  const { system } = await session.prepare();
  assert.match(system, /^You are a tool\.\n\nACTIVE GOAL: Fix the parser\nPriority: high\nStatus: active\n/);
  assert.match(system, /✅ Find the fault\n\nKey Decisions:\n🔒 Keep the public API\n/);
  const goal = await session.applyMarkers("Done.\n[DECISION] Use E0502 as the test\n[ARTIFACT] Created tests/a.rs");
  assert.deepEqual(goal.decisions[1], { id: "d2", description: "Use E0502 as the test", rationale: "", locked: false });
  assert.deepEqual(goal.artifacts[1], { type: "file", path: "tests/a.rs", action: "created" });
  assert.deepEqual(session.goal, goal);
  const again = await openSession({ ...options, store });
  assert.deepEqual(again.goal, goal, "what was reached holds");
  await again.setGoal({ ...GOAL, id: "g2", status: "paused" });
  assert.equal((await again.prepare()).system, "You are a tool.");
  await assert.rejects(again.setGoal({ ...GOAL, priority: "urgent" }), fails("invalid_option", { field: "goal.priority" }));
  await assert.rejects(again.setGoal("win"), fails("invalid_option"));
  const bare = await openSession({ store: memoryStore() });
  await assert.rejects(bare.applyMarkers("[DECISION] x"), fails("not_found"));
  assert.equal(bare.goal, undefined);
});

test("s5_3_s5_11_checkpoints_reliability_and_validation_are_told", async () => {
  const summarize = summariser();
  const stages = [];
  const options = { ...OPTIONS, store: memoryStore(), summarize, onProgress: ({ stage }) => stages.push(stage) };
  const session = await openSession(options);
  assert.deepEqual(session.reliability(), { score: 0.5, warn: false });
  await session.append(...chat(20));
  const result = await session.compact();
  assert.equal(result.success, true);
  assert.deepEqual(stages, ["identify", "prepare", "summarise", "checkpoint", "update", "validate"]);
  const [record] = session.checkpoints();
  assert.equal(result.messages[0].content.startsWith(`[Checkpoint ${record.id} @ `), true);
  assert.equal(result.messages[0].content.includes(SUMMARY), true);
  assert.deepEqual([record.number, record.messageRange[0]], [0, 0]);
  assert.equal(session.reliability().score, 0.45);
  const { valid, tokens, limit } = session.validate();
  assert.deepEqual([valid, tokens, limit], [true, session.getContextUsage().usedTokens, 31_000]);
});

test("S5.5, F1: nothing to compress is a success that says so", async () => {
  const { success, reason, freedTokens } = await compact(chat(2), OPTIONS);
  assert.deepEqual([success, reason, freedTokens], [true, "No messages to compress", 0]);
});

test("s5_8_old_checkpoints_go_to_the_summariser_of_the_history_with_purposes_of_their_own", async () => {
  const purposes = [];
  const summarize = async (_, { purpose }) => {
    purposes.push(purpose);
    return `${purpose} ${purposes.length}: ${SUMMARY.repeat(purpose === "history" ? 4 : 1)}`;
  };
  const summarizeResult = async () => assert.fail("a checkpoint is no tool result");
  const session = await openSession({ ...OPTIONS, level: 3, store: memoryStore(), summarize, summarizeResult });
  for (let nth = 0; nth < 13; nth += 1) {
    await session.append(...chat(10, nth * 10));
    const { success, error } = await session.compact();
    assert.equal(success, true, String(error));
  }
  assert.deepEqual([...new Set(purposes)], ["history", "age", "merge"]);
  assert.equal(session.checkpoints().length < 13, true);
});

test("s5_7_s5_10_a_prompt_by_level_mode_and_goal", () => {
  const prompt = (options) => buildSummaryPrompt(chat(4), { preset: "checkpoint", ...options });
  const { system, targetTokens } = prompt({ mode: "PLANNING", level: 2, goal: GOAL, contextWindow: 8_000 });
  assert.equal(targetTokens, 300);
  assert.match(system, /150 to 300 tokens/);
  assert.match(system, /trade-offs/);
  assert.match(system, /ACTIVE GOAL: Fix the parser/);
  assert.equal(prompt({ contextWindow: 8_000 }).targetTokens, 500);
  assert.equal(prompt({ targetTokens: 77 }).targetTokens, 77);
  assert.match(prompt({ mode: "ANYTHING" }).system, /preferences/);
});

test("s5_12_an_unknown_model_or_size_is_an_error", async () => {
  const profiles = [{ model: "llama3:7b", size: 8_000, share: 0.85 }];
  const open = (model, contextWindow) =>
    openSession({ preset: "checkpoint", store: "memory", model, contextWindow, checkpoint: { profiles } });
  assert.equal((await open("llama3:7b", 8_000)).getContextUsage().maxTokens, 6_800);
  await assert.rejects(open("other", 8_000), fails("unknown_model", { message: "Model not found: other" }));
  await assert.rejects(open("llama3:7b", 9_000), fails("invalid_option", { field: "contextWindow" }));
});
