import assert from "node:assert/strict";
import { test } from "node:test";
import { diffContexts, diffText } from "../src/logic/context-diff.js";
import { overflowOf, wholeOf } from "../src/logic/forecast.js";
import { ImportError, isTranscript, parseHistory } from "../src/logic/import.js";
import { namesThatLeft } from "../src/logic/left.js";
import { marked } from "../src/logic/marked.js";
import { callsOf, isCall, isExchangeOpen, kindOf, previewOf, referencesOf, textOf } from "../src/logic/messages.js";
import { buildRequest, readAnswer } from "../src/logic/model-call.js";
import { linePath, stackedPaths, ticks } from "../src/logic/series.js";

const call = {
  role: "assistant",
  content: null,
  tool_calls: [{ id: "c1", type: "function", function: { name: "bash", arguments: '{"command":"ls -la"}' } }],
};
const tool = { role: "tool", tool_call_id: "c1", content: "a\nb" };

test("import: array, object, JSONL, byte order mark", () => {
  const user = { role: "user", content: "hi" };
  assert.deepEqual(parseHistory(JSON.stringify([user])), { messages: [user], source: "array" });
  assert.equal(parseHistory(`\uFEFF${JSON.stringify({ messages: [user] })}`).source, "object");
  assert.deepEqual(parseHistory(`${JSON.stringify(user)}\r\n\r\n${JSON.stringify(call)}\n`), {
    messages: [user, call],
    source: "jsonl",
  });
  assert.deepEqual(parseHistory(JSON.stringify(user)).messages, [user]);
});

test("import: errors name the line or the index", () => {
  assert.throws(
    () => parseHistory('{"role":"user"}\n{oops}'),
    (error) => error instanceof ImportError && error.line === 2,
  );
  assert.throws(
    () => parseHistory('[{"role":"user"}, 7]'),
    (error) => error instanceof ImportError && error.index === 1,
  );
  for (const text of ["", "[]", "7", '{"a":1}', "[1,", "hello"])
    assert.throws(() => parseHistory(text), ImportError);
});

test("messages: both formats read alike", () => {
  const use = {
    role: "assistant",
    content: [
      { type: "text", text: "look" },
      { type: "tool_use", id: "t1", name: "grep", input: { pattern: "x" } },
    ],
  };
  const answer = {
    role: "user",
    content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "found" }] }],
  };
  assert.deepEqual(callsOf(use), [{ id: "t1", name: "grep", input: '{"pattern":"x"}' }]);
  assert.equal(kindOf(answer), "tool");
  assert.equal(textOf(answer), "found");
  assert.equal(previewOf(call), "ls -la");
  assert.equal(isExchangeOpen([use]), true);
  assert.equal(isExchangeOpen([use, answer]), false);
  assert.equal(isExchangeOpen([call]), true);
  assert.equal(isExchangeOpen([call, tool]), false);
});

test("messages: references are read from tool results only, several from one message", () => {
  const [a, b] = ["a", "b"].map((letter) => `off_${letter.repeat(26)}`);
  const result = (id, ref) => ({
    type: "tool_result",
    tool_use_id: id,
    content: `Tool result is at: ${ref}`,
  });
  assert.deepEqual(referencesOf({ role: "user", content: [result("t1", a), result("t2", b)] }), [
    { ref: a, callId: "t1" },
    { ref: b, callId: "t2" },
  ]);
  assert.deepEqual(referencesOf({ ...tool, content: `Tool result is at: ${a}` }), [{ ref: a, callId: "c1" }]);
  assert.deepEqual(referencesOf({ role: "user", content: `Tool result is at: ${a}` }), []);
});

test("diff: a replaced result is one change, kept messages are counted", () => {
  const moved = { ...tool, content: "Tool result is at: off_x" };
  const tail = { role: "user", content: "go on" };
  const hunks = diffContexts([call, tool, tail], [call, moved, tail]);
  assert.deepEqual(
    hunks.map(({ kind }) => kind),
    ["same", "changed", "same"],
  );
  assert.deepEqual(
    diffText(tool, moved).map(({ kind }) => kind),
    ["removed", "removed", "added"],
  );
  const summary = { role: "user", content: "[Compressed History]" };
  assert.deepEqual(
    diffContexts([call, tool, tail], [summary, tail]).map(({ kind }) => kind),
    ["added", "removed", "same"],
  );
});

test("model call: the key is only in a header, tools are declared when the history has calls", () => {
  const endpoint = {
    kind: "anthropic",
    url: "https://example.com",
    key: "secret",
    model: "m",
    summaries: true,
  };
  const anthropic = buildRequest(endpoint, { system: "s", messages: [call], maxTokens: 10 });
  assert.equal(anthropic.headers["x-api-key"], "secret");
  assert.equal(JSON.stringify(anthropic.body).includes("secret"), false);
  assert.deepEqual(anthropic.body.tool_choice, { type: "none" });
  const openai = buildRequest(
    { ...endpoint, kind: "openai", key: "" },
    { messages: [{ role: "user", content: "x" }], maxTokens: 10 },
  );
  assert.equal("authorization" in openai.headers, false);
  assert.equal("tools" in openai.body, false);
  assert.equal(readAnswer("openai", { choices: [{ message: { content: "ok" } }] }), "ok");
  assert.throws(() => readAnswer("anthropic", { content: [] }), /without text/);
});

test("series: layers stack, ticks are round", () => {
  const points = [
    { x: 0, values: [1, 2] },
    { x: 1, values: [3, 4] },
  ];
  const same = (value) => value;
  assert.deepEqual(stackedPaths(points, same, same), ["M0 1L1 3L1 0L0 0Z", "M0 3L1 7L1 3L0 1Z"]);
  assert.equal(linePath([], same, same), "");
  assert.deepEqual(ticks(32_768, 4), [0, 10_000, 20_000, 30_000]);
  assert.deepEqual(ticks(15, 6), [0, 5, 10, 15]);
  assert.deepEqual(ticks(3, 6), [0, 1, 2, 3]);
});

test("forecast: what is ahead is known, and from which message on it does not fit", () => {
  const whole = wholeOf({ weights: [5, 1], sourceWeights: [5, 10, 20], cursor: 1 });
  assert.deepEqual(whole, [5, 6, 16, 36]);
  assert.deepEqual([overflowOf(whole, 10), overflowOf(whole, 36)], [3, undefined]);
});

test("what can be asked for left, and is nowhere in the context", () => {
  const log = ["see src/tax/round.ts and the word", "halfEvenRounding of invoices", "stays: priceCents"].map((content) => ({ role: "user", content }));
  const ledger = ["summarized", "offloaded", "verbatim"].map((fate, index) => ({ index, fate }));
  const context = [{ role: "user", content: "A summary names HALFEVENROUNDING." }, log[2]];
  assert.deepEqual(namesThatLeft(log, ledger, context), ["src/tax/round.ts", "invoices"]);
  assert.deepEqual(namesThatLeft(log, ledger, context, 1), ["src/tax/round.ts"]);
  assert.deepEqual(namesThatLeft(log, [], context), []);
});

test("marked: what was asked for is found as it is written", () => {
  assert.deepEqual(marked("a (B) a", ["(b)"]), [["a ", false], ["(B)", true], [" a", false]]);
  assert.deepEqual(marked("as it is", [""]), [["as it is", false]]);
});

test("import: lines of transcripts are told from messages", () => {
  assert.equal(isTranscript('{"type":"user","message":{"role":"user","content":"hi"}}\n{}'), true);
  for (const text of ['{"role":"user"}\n{}', '{"messages":[]}', '{"input":[]}', "[{}]", "hello", ""]) assert.equal(isTranscript(text), false, text);
  const items = [{ type: "message", role: "user", content: "hi" }];
  assert.deepEqual(parseHistory(JSON.stringify({ input: items })).messages, items);
});

test("messages: items of the Responses format read alike", () => {
  const use = { type: "function_call", call_id: "c1", name: "ls", arguments: "{}" };
  const answer = { type: "function_call_output", call_id: "c1", output: "Tool result is at: off_abcdefghijklmnopqrstuvwxyz" };
  assert.deepEqual([kindOf(use), kindOf(answer), kindOf({ type: "reasoning" })], ["assistant", "tool", "assistant"]);
  assert.deepEqual(callsOf(use), [{ id: "c1", name: "ls", input: "{}" }]);
  assert.deepEqual(referencesOf(answer), [{ ref: "off_abcdefghijklmnopqrstuvwxyz", callId: "c1" }]);
  assert.equal(isExchangeOpen([use]), true);
  assert.equal(isExchangeOpen([use, answer]), false);
  const two = [{ type: "reasoning" }, use, { ...use, call_id: "c2" }, answer, { ...answer, call_id: "c2" }, { role: "assistant", content: "done" }];
  assert.deepEqual([...two.keys()].filter((index) => isCall(two, index)), [0, 5]);
});
