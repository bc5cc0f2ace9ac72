/** Trajectories (`S2`): turns of thought, action and result. Nothing but results is ever changed (RT1). */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  compact,
  detectFormat,
  estimateTokens,
  openSession,
  repairHistory,
  splitMessages,
  validateHistory,
} from "../support/offload.mjs";
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

test("a trajectory is told by its turns", () => {
  const turns = frozen(trajectory(3));
  assert.equal(detectFormat(turns), "react");
  assert.deepEqual(validateHistory(turns, { strict: true }), { valid: true, problems: [] });
  assert.ok(estimateTokens(turns) > 3 * estimateTokens(turns[0].result));
  const { toCompress, toPreserve } = splitMessages(turns, { keep: { messages: 1 } });
  assert.deepEqual([toCompress.length, toPreserve[0]], [2, turns[2]]);
});

test("s2_5_rt1_a session offloads results and changes nothing else", async () => {
  const turns = frozen(trajectory(8));
  const session = await openSession({ store: "memory", trigger: { tokens: 1_000 }, summarize: summariser() });
  await session.append(...turns);
  assert.equal(session.format, "react");
  const { messages } = await session.prepare();
  assert.equal(messages.length, turns.length);
  messages.forEach((message, index) => {
    const { result, ...rest } = message;
    const { result: was, ...same } = turns[index];
    assert.deepEqual(rest, same, "with the app's own fields, a Date among them");
    assert.equal(result === was, index >= 4);
  });
  const [{ ref }] = session.explain();
  assert.equal(messages[0].result, `Tool result is at: ${ref}`);
  assert.equal(await session.read(ref), turns[0].result);
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

test("rt0_rt1_what is broken is named, and mended without taking a turn out", () => {
  const { result, ...unfinished } = trajectory(1)[0];
  const turns = frozen([unfinished, ...trajectory(2)]);
  const { problems } = validateHistory(turns);
  assert.deepEqual(problems.map(({ rule, index }) => [rule, index]), [["RT1", 0]]);
  const repaired = repairHistory(turns);
  assert.deepEqual(repaired.messages[0], { ...unfinished, result: "" });
  assert.equal(repaired.messages[2], turns[2]);
  const bad = [...trajectory(1), { thought: "Hm.", action: "Search[x]", result }];
  assert.throws(() => validateHistory(bad), fails("invalid_message", { index: 1, field: "action" }));
});
