/** Trajectories (`S2`): turns of thought, action and result. Nothing but results is ever changed (RT1). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { addTurn, compact, detectFormat, estimateTokens, exportTrajectory, openSession, repairHistory, splitMessages, stats, validateHistory } from "../support/offload.mjs";
import { fails, frozen, summariser } from "../support/api.mjs";

/** `turns` of about 500 tokens each. */
function trajectory(turns) {
  return Array.from({ length: turns }, (_, nth) => ({
    thought: `Step ${nth}: I read the file.`,
    action: { tool: "read_file", path: `src/${nth}.rs` },
    result: `${nth} 파일의 내용 `.repeat(100),
    at: new Date(nth),
  }));
}

test("a trajectory is told by its turns", async () => {
  const turns = frozen(trajectory(3));
  assert.equal(await detectFormat(turns), "react");
  assert.deepEqual(await validateHistory(turns, { strict: true }), { valid: true, problems: [] });
  assert.ok(estimateTokens(turns) > 3 * estimateTokens(turns[0].result));
  const { toCompress, toPreserve } = await splitMessages(turns, { keep: { messages: 1 } });
  assert.deepEqual([toCompress.length, toPreserve[0]], [2, turns[2]]);
});

test("s2_5_rt1_a session offloads results and changes nothing else", async () => {
  const turns = frozen(trajectory(8));
  const session = await openSession({ store: "memory", compactAt: { tokens: 1_000 }, summarize: summariser() });
  await session.append(...turns);
  assert.equal(session.context.format, "react");
  const { messages } = await session.prepare();
  assert.equal(messages.length, turns.length);
  messages.forEach((message, index) => {
    const { result, ...rest } = message;
    const { result: was, ...same } = turns[index];
    assert.deepEqual(rest, same, "with the app's own fields, a Date among them");
    assert.equal(result === was, index >= 4);
  });
  const [{ ref }] = await session.context.explain();
  assert.equal(messages[0].result, `Tool result is at: ${ref}`);
  assert.equal(await session.recall.read(ref), turns[0].result);
  await session.close();
});

test("s2_5_compact removes no turn, asks no model and says so", async () => {
  const turns = frozen(trajectory(12));
  const summarize = summariser();
  const result = await compact(turns, { summarize });
  assert.deepEqual([result.success, result.freedTokens, result.llmCalls], [true, 0, 0]);
  assert.match(result.reason, /react/);
  assert.equal(summarize.calls.length, 0);
  result.messages.forEach((message, index) => assert.equal(message, turns[index]));
});

test("rt0_rt1_what is broken is named, and mended without taking a turn out", async () => {
  const { result, ...unfinished } = trajectory(1)[0];
  const turns = frozen([unfinished, ...trajectory(2)]);
  const { problems } = await validateHistory(turns);
  assert.deepEqual(problems.map(({ rule, index }) => [rule, index]), [["RT1", 0]]);
  const repaired = await repairHistory(turns);
  assert.deepEqual(repaired.messages[0], { ...unfinished, result: "" });
  assert.equal(repaired.messages[2], turns[2]);
  const bad = [...trajectory(1), { thought: "Hm.", action: "Search[x]", result }];
  await assert.rejects(() => validateHistory(bad), fails("invalid_message", { index: 1, field: "action" }));
});

/** A session whose model answers by `answer`, which is told the purpose; results are the summariser's alone. */
async function reacting(turns, answer, react, { preset = "react", summarize, ...more } = {}) {
  const asked = [];
  const summarizeResult = ({ messages: [{ content }] }, { purpose }) => {
    asked.push({ purpose, content });
    return answer(purpose);
  };
  const session = await openSession({
    store: "memory",
    preset,
    contextWindow: 200_000,
    summarize: { call: summarize, attempts: 1, forResults: summarizeResult },
    presetOptions: preset === "react" ? { strategies: false, modelContextLimit: 200_000, ...react } : {},
    ...more,
  });
  for (const [nth, result] of turns.entries()) {
    await addTurn(session, { thought: `I look at ${nth}.`, action: { tool: "read", path: `${nth}.txt` }, result });
  }
  return { session, asked };
}

test("s2_1_each chunk is sent alone, no character is lost or twice there, and none is cut", async () => {
  const family = "👩‍👩‍👧";
  // Five scalar values each: a chunk of 50,000 would end within one.
  const text = `a${family.repeat(24_000)}`;
  const { session, asked } = await reacting([text], () => "a shorter result");
  await session.prepare();
  const chunks = asked.map(({ content }) => /<tool_result>\n([^]*)\n<\/tool_result>/.exec(content)[1]);
  assert.deepEqual(asked.map(({ purpose }) => purpose), ["chunk", "chunk", "chunk"]);
  assert.ok(chunks.join("") === text, "all of it, in order");
  for (const chunk of chunks) {
    assert.ok([...chunk].length <= 50_000, `${[...chunk].length}`);
    assert.match(chunk, new RegExp(`^a?(?:${family})+$`, "u"));
  }
  await session.close();
});

test("s2_8_the cheaper summariser is asked in every layer and at both levels", async () => {
  const summarize = () => assert.fail("the cheaper one is there");
  const prose = (count) => "Words that no table and no log has. ".repeat(count);
  const answer = (purpose) => "s".repeat(purpose === "chunk" ? 30_000 : 900);
  const { session, asked } = await reacting([prose(3_000), prose(300)], answer, { globalCompressionThreshold: 0.05 }, { summarize });
  const { messages } = await session.prepare();
  assert.deepEqual(asked.map(({ purpose }) => purpose), ["chunk", "chunk", "chunk", "merge", "result"]);
  assert.deepEqual(messages.map(({ result }) => result.length), [900, 900]);
  await session.close();
});

test("s2_11_what the first layer compressed is not compressed again by the second", async () => {
  const prose = "Words that no table and no log has. ".repeat(3_000);
  const { session, asked } = await reacting([prose], () => "s".repeat(7_000), { globalCompressionThreshold: 0.1 });
  const first = (await session.prepare()).messages[0].result;
  assert.ok(first.length > 20_000, "more than the least size, and than the threshold");
  await addTurn(session, { thought: "On.", action: { tool: "read" }, result: prose.slice(0, 9_000) });
  const { messages } = await session.prepare();
  assert.deepEqual(asked.map(({ purpose }) => purpose), ["chunk", "chunk", "chunk", "result"]);
  assert.equal(messages[0].result, first);
  await session.close();
});

test("s2_9_the exported trajectory says whose it is, what was thought and whether a layer is on", async () => {
  const runtime = { now: () => 1_700_000_000_000, id: () => crypto.randomUUID() };
  const { session } = await reacting(["x", "y"], () => assert.fail("nothing is large"), {}, { id: "run", advanced: { runtime } });
  const { metadata, reasoning_trace, execution, context_compression } = await exportTrajectory(session);
  assert.deepEqual(metadata, { session: "run", created_at: 1_700_000_000_000, updated_at: 1_700_000_000_000, messages: 2 });
  assert.deepEqual(reasoning_trace, ["I look at 0.", "I look at 1."]);
  assert.equal(execution.final_response, "");
  assert.deepEqual(context_compression, { enabled: true, stats: await stats(session) });
  for (const [react, enabled] of [
    [{ singleEnabled: false }, true],
    [{ globalEnabled: false }, true],
    [{ singleEnabled: false, globalEnabled: false }, false],
    [{ singleResultThreshold: Infinity, globalCompressionThreshold: 1 }, false],
  ]) {
    const { session: other } = await reacting([], () => "", react);
    assert.equal((await exportTrajectory(other)).context_compression.enabled, enabled, JSON.stringify(react));
    await other.close();
  }
  const { session: other } = await reacting([], () => "", {}, { preset: "offload" });
  assert.equal((await exportTrajectory(other)).context_compression.enabled, false, "the preset has no such layer");
  await session.close();
  await other.close();
});

test("s2_4_s2_10_after each added turn the layers run, and the logger gets their lines with the levels", async () => {
  const lines = [];
  const logger = (...line) => lines.push(line);
  const { session } = await reacting([], () => "s".repeat(1_000), { modelContextLimit: 20_000 }, { logger });
  /** What was told while a turn was added. */
  const added = async (result) => {
    lines.length = 0;
    await addTurn(session, { thought: "I look.", action: { tool: "read" }, result });
    return lines.filter(([, line]) => !line.startsWith("Offloaded ")).map(([level, line]) => `${level}: ${line}`);
  };
  assert.deepEqual(await added("x".repeat(5_001)), []);
  const size = (await stats(session)).total_size;
  const total = size + "I look.".length + JSON.stringify({ tool: "read" }).length + 5_000;
  assert.deepEqual(await added("y".repeat(5_000)), [
    `warn: Context size ${total} exceeds threshold 16000, triggering global compression...`,
    "info: Turn 1: Compressed result 5001 → 1000 chars",
    `info: Global compression complete: 1 results compressed, total size ${total} → ${total - 4_001} chars (${(((total - 4_001) / total) * 100).toFixed(1)}%)`,
  ]);
  assert.deepEqual(await added("z".repeat(100_000)), [
    "info: Tool result too large (100000 chars), applying streaming compression...",
    "info: Breaking result into 2 chunks for summarization",
    "info: Compressed 100000 → 2024 chars (2.0%)",
  ]);
  lines.length = 0;
  const { messages } = await session.prepare();
  assert.deepEqual([messages.map(({ result }) => result.length), lines], [[1_000, 5_000, 2_024], []]);
  await session.close();
});
