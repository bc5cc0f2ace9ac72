/** The evaluator as the package has it: costs by replay, what compactions retain. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { compact } from "../../pkg/dist/entry/main.js";
import { baselines, CompactionError, recall, replay } from "../../pkg-evaluator/dist/entry/evaluator-inline.js";

const run = new URL("../../www/public/transcripts/invoicing-run.json", import.meta.url);
const messages = JSON.parse(readFileSync(run, "utf8"));
const transcript = { messages, id: "invoicing", stableTokens: 3_000 };
const prices = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
const cutting = { prefixTokens: 5_000, needs: 1 };

describe("replay", () => {
  test("policies cost what they cost alone, never less than the optimum of summaries", async () => {
    const { policies } = await baselines();
    const summaries = policies.filter(({ policy: { kind, clear } }) => kind !== "slide" && kind !== "clear" && !clear);
    const names = summaries.map(({ name }) => name);
    const reports = await replay(transcript, names, prices, { optimum: true });
    assert.equal(reports.length, names.length);
    for (const [nth, { optimum, ...report }] of reports.entries()) {
      assert.ok(optimum > 0 && report.cost >= optimum, names[nth]);
      assert.deepEqual(await replay(transcript, summaries[nth].policy, prices), report, names[nth]);
    }
    const none = reports[names.indexOf("none (endless window)")];
    assert.equal(none.compactions, 0);
    assert.equal(none.largestPrompt, none.steps.at(-1).tokens);
    const best = reports[names.indexOf("rent or buy")];
    assert.ok(best.compactions > 0 && best.cost < none.cost);
    assert.ok(reports.every(({ changedPrefixes }) => changedPrefixes === 0));
  });

  test("a function decides before every call", async () => {
    const moments = [];
    const own = await replay(
      transcript,
      (moment) => {
        moments.push(moment);
        return moment.tokens >= 20_000 ? { kind: "compact", keep: 2_000 } : undefined;
      },
      prices,
    );
    assert.deepEqual(own, await replay(transcript, { kind: "threshold", at: 20_000, keep: 2_000 }, prices));
    assert.equal(moments.length, own.calls);
    assert.deepEqual(Object.keys(moments[0]).sort(), ["cached", "call", "calls", "isTurn", "messages", "stable", "tokens"]);
    const thrown = new Error("the app's");
    const failing = () => {
      throw thrown;
    };
    await assert.rejects(replay(transcript, failing, prices), thrown);
  });

  test("with usage, sizes are what was counted, and the replay is held against what was billed", async () => {
    const content = "word ".repeat(400);
    const said = Array.from({ length: 6 }, (_, nth) => ({ role: nth % 2 ? "assistant" : "user", content }));
    const usage = [1, 3, 5].map((message, nth) => ({
      message,
      inputTokens: 5_000 + nth * 2_000,
      outputTokens: 1_000,
      ...(nth > 0 && { cacheReadTokens: 3_000 + nth * 2_000, cacheWriteTokens: 2_000 }),
    }));
    const { billed, steps } = await replay({ messages: said, usage }, "none (endless window)", prices);
    assert.deepEqual(steps.map(({ tokens }) => tokens), [5_000, 7_000, 9_000]);
    assert.deepEqual([billed.calls, billed.misses], [3, 0]);
    const expected = 5_000 * 3 + 2 * 2_000 * 3.75 + (5_000 + 7_000) * 0.3 + 3 * 1_000 * 15;
    assert.ok(Math.abs(billed.billed - expected / 1e6) < 1e-9);
    assert.ok(Math.abs(billed.simulated / billed.billed - 1) < 0.1);
  });

  test("every format costs about the same", async () => {
    const chat = [
      { role: "user", content: "Look at the log." },
      { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: { name: "read", arguments: "{}" } }] },
      { role: "tool", tool_call_id: "c", content: "line\n".repeat(500) },
      { role: "assistant", content: "It is fine." },
    ];
    const anthropic = [
      chat[0],
      { role: "assistant", content: [{ type: "tool_use", id: "c", name: "read", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: chat[2].content }] },
      chat[3],
    ];
    const [one, other] = await Promise.all([chat, anthropic].map((messages) => replay({ messages }, "balanced", prices)));
    assert.equal(one.calls, 2);
    assert.deepEqual([other.calls, other.compactions], [one.calls, one.compactions]);
    assert.ok(Math.abs(other.cost / one.cost - 1) < 0.02);
  });
});

describe("recall", () => {
  test("compactors by name, on the same cuts; a bag of names keeps no context", async () => {
    const { compactors } = await baselines();
    const reports = new Map();
    for (const { name } of compactors) reports.set(name, await recall(transcript, name, [0.05, 0.1], { cutting }));
    const { cuts } = reports.get("keep-layer");
    assert.ok(cuts.length > 0);
    for (const [name, report] of reports) {
      assert.deepEqual(report.cuts.map(({ scores, ...cut }) => cut), cuts.map(({ scores, ...cut }) => cut), name);
      for (const { tokens, scores } of report.cuts) {
        assert.ok(scores[0].tokens <= tokens * 0.05 && scores[1].tokens <= tokens * 0.1, name);
      }
      const [{ mention, context, referenced, recoverable }] = report.means;
      assert.ok(context <= mention && mention <= referenced && referenced <= recoverable && recoverable <= 1, name);
      assert.deepEqual(report.search, reports.get("keep-layer").search);
    }
    const context = (name) => reports.get(name).means[0].context;
    assert.ok(context("keep-layer") > context("tail") && context("keep-layer") > context("bag of names + tail"));
  });

  test("a compactor of the app gets its own messages and a budget, and gives text or messages", async () => {
    const calls = [];
    const all = await recall(
      transcript,
      (before, budget, cut) => {
        calls.push({ before, budget, cut });
        return before;
      },
      [0.05, 1],
      { cutting },
    );
    assert.equal(calls.length, all.cuts.length * 2);
    for (const { before, budget, cut } of calls) {
      assert.ok(before.every((message) => messages.slice(0, cut.at).includes(message) && message.role !== "system"));
      assert.ok(budget === Math.floor(cut.tokens * 0.05) || budget === cut.tokens);
    }
    assert.equal(all.means[1].mention, 1);
    assert.ok(all.means[0].mention < 1, "what does not fit is cut off");
    const text = await recall(transcript, async (before) => before.map(({ content }) => content ?? "").join("\n"), [1], { cutting });
    assert.ok(text.means[0].mention > 0.5);
    const lone = await recall(transcript, () => "lone \ud83d and 数", [1], { cutting });
    assert.equal(lone.means[0].mention, 0);
  });

  test("a compaction of this package, measured as its user would", async () => {
    const compactor = async (before, budget) => {
      const result = await compact(before, { keep: { tokens: Math.floor(budget / 2) }, contextWindow: Math.max(4_000, budget) });
      return result.success ? result.messages : "";
    };
    const { means } = await recall(transcript, compactor, [0.2], { cutting });
    const tail = await recall(transcript, "tail", [0.2], { cutting });
    assert.ok(means[0].mention > tail.means[0].mention, `${means[0].mention} ${tail.means[0].mention}`);
  });

  test("several transcripts: what all sources name is no need, a transcript too short is not cut", async () => {
    const two = [transcript, { ...transcript, id: "other", source: "other" }];
    const { cuts, means, search } = await recall([...two, { messages: messages.slice(0, 4) }], "tail", [0.1], {
      cutting: { ...cutting, needs: 0 },
    });
    const needs = (cuts) => cuts.reduce((sum, { needs }) => sum + needs, 0);
    const alone = await recall(transcript, "tail", [0.1], { cutting });
    assert.ok(cuts.every(({ transcript }) => transcript < 2));
    assert.ok(needs(cuts) < needs(alone.cuts) / 4, `${needs(cuts)} of ${needs(alone.cuts)}`);
    assert.ok(means.length === 1 && search.hits5 <= search.hits10);
    assert.deepEqual(await recall({ messages: messages.slice(0, 4) }, "tail", [0.1]), { cuts: [], means: [] });
  });
});

test("it tells how far it is, and can be aborted", async () => {
  const controller = new AbortController();
  const stages = [];
  const onProgress = ({ stage, done, total }) => {
    stages.push(stage);
    assert.ok(done <= total);
    if (stage === "optimum" && done > 3) controller.abort(new Error("enough"));
  };
  const running = replay(transcript, "balanced", prices, { optimum: true, signal: controller.signal, onProgress });
  await assert.rejects(running, ({ code, cause }) => code === "aborted" && cause.message === "enough");
  assert.deepEqual([...new Set(stages)], ["replay", "optimum"]);
  const aborted = AbortSignal.abort();
  await assert.rejects(recall(transcript, "tail", [0.1], { signal: aborted }), { code: "aborted" });
});

test("what is wrong is named, and the next evaluation goes on", async () => {
  const wrong = [
    [() => replay({ messages: [{ role: "user", content: 5 }], format: "openai-chat" }, "balanced", prices), "invalid_message", "content", 0],
    [() => replay({ messages: [{ role: "user", content: () => {} }] }, "balanced", prices), "unsupported_value", "content", 0],
    [() => replay({ messages, usage: 5 }, "balanced", prices), "invalid_option"],
    [() => replay({ messages, tokens: 5 }, "balanced", prices), "invalid_option", "tokens"],
    [() => replay({ messages: "none" }, "balanced", prices), "invalid_message"],
    [() => replay(undefined, "balanced", prices), "invalid_option", "transcript"],
    [() => replay(transcript, "nobody's", prices), "invalid_option", "policy"],
    [() => replay(transcript, { kind: "threshold", at: -1, keep: 0 }, prices), "invalid_option", "policy"],
    [() => replay(transcript, () => ({ kind: "slide" }), prices), "invalid_option", "policy"],
    [() => replay(transcript, 5, prices), "invalid_option", "policy"],
    [() => replay(transcript, "balanced"), "invalid_option", "prices"],
    [() => replay(transcript, "balanced", { ...prices, input: "3" }), "invalid_option", "prices.input"],
    [() => replay(transcript, "balanced", { ...prices, cached: 3 }), "invalid_option", "prices.cached"],
    [() => replay(transcript, "balanced", prices, { optimal: true }), "invalid_option", "optimal"],
    [() => recall(transcript, "nobody's", [0.1], { cutting }), "invalid_option", "compactor"],
    [() => recall(transcript, 5, [0.1]), "invalid_option", "compactor"],
    [() => recall(transcript, "tail", [5]), "invalid_option", "budgets"],
    [() => recall(transcript, "tail", [0.1], { cutting: { cut: 1 } }), "invalid_option", "cut"],
    [() => recall(transcript, "tail", [0.1], { cutting: { cuts: -1 } }), "invalid_option", "cutting"],
    [() => recall(transcript, () => 5, [0.1], { cutting }), "invalid_message"],
  ];
  for (const [nth, [run, code, field, index]] of wrong.entries()) {
    const error = await run().then(() => assert.fail(`${nth} is taken`), (error) => error);
    assert.ok(error instanceof CompactionError, `${nth}: ${error}`);
    assert.deepEqual([error.code, error.field, error.index], [code, field, index], `${nth}: ${error.message}`);
  }
  assert.equal((await replay(transcript, "balanced", prices)).currency, "USD");
});
