/** Lessons about numbers: loops, budgets, counts, growth of work, the prompt cache. docs/lessons.md lists them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { buildSummaryPrompt, compact, estimateTokens, openSession, planCompaction } from "../support/offload.mjs";
import {
  anthropicExchange,
  chat,
  exchange,
  fails,
  frozen,
  openStore,
  runtime,
  summariser,
  SUMMARY,
} from "../support/api.mjs";

const user = (content) => ({ role: "user", content });
const assistant = (content) => ({ role: "assistant", content });
const WORDS = "The build of the parser fails on line 42. ";

/** Lets the waits between attempts pass at once, and resolves with `work`. */
async function passing(context, work) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  let over = false;
  const end = () => (over = true);
  work.then(end, end);
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve));
    context.mock.timers.tick(5_000);
  }
  return work;
}

// ---- compaction loop ------------------------------------------------------------------------------------------------

test("lesson: compaction loop: what cannot fit is said, with the sum that proves it, and no model is asked for it", async () => {
  const summarize = summariser();
  const systemPrompt = WORDS.repeat(400);
  const options = { contextWindow: 4_000, maxOutputTokens: 500, systemPrompt, summarize };
  const session = await openSession({ store: "memory", ...options });
  for (let step = 0; step < 20; step++) {
    await session.append(...chat(1, step));
    await assert.rejects(
      session.prepare(),
      fails("context_overflow", { message: /cannot go below \d+ tokens: fixed \d+ .*mandatory/ }),
    );
    const { proof, floor } = await session.context.plan();
    assert.ok(floor > 3_500 && proof.includes(`${floor}`), proof);
  }
  assert.equal(summarize.calls.length, 0);
});

test("lesson: compaction loop: one message that is too long is said too, step after step, without a call for each", async () => {
  const summarize = summariser();
  const session = await openSession({
    store: "memory",
    contextWindow: 4_000,
    maxOutputTokens: 500,
    keep: { messages: 1 },
    summarize,
  });
  await session.append(...chat(2), user(WORDS.repeat(600)));
  // It has to stay word for word.
  await session.pins.add(4);
  for (let step = 0; step < 10; step++) await assert.rejects(session.prepare(), fails("context_overflow"));
  assert.ok(summarize.calls.length <= 1, `${summarize.calls.length} calls`);
});

test("lesson: compaction loop: a tail that alone is above the trigger costs a call in five steps, not one in each", async () => {
  const summarize = summariser();
  const session = await openSession({
    store: "memory",
    compactAt: { tokens: 300 },
    keep: { messages: 4 },
    summarize,
  });
  await session.append(...chat(4));
  const sizes = [];
  for (let step = 0; step < 40; step++) {
    await session.append(...chat(1, step));
    const { result } = await session.prepare();
    if (result) sizes.push([result.previousTokens, result.currentTokens]);
  }
  assert.ok(summarize.calls.length >= 2 && summarize.calls.length <= 8, `${summarize.calls.length} calls`);
  for (const [before, after] of sizes) assert.ok(after < before, "every compaction made it smaller");
});

test("lesson: compaction loop: a summariser that fails is left alone for five steps", async () => {
  let calls = 0;
  const summarize = async () => {
    calls++;
    throw new Error("overloaded");
  };
  const session = await openSession({ store: "memory", compactAt: { tokens: 300 }, summarize: { call: summarize, attempts: 1 } });
  await session.append(...chat(6));
  for (let step = 0; step < 25; step++) {
    await session.append(...chat(1, step));
    const { messages } = await session.prepare();
    assert.equal(messages.length, 14 + 2 * step, "and the turn goes on with what there is");
  }
  assert.equal(calls, 5);
});

test("lesson: compaction loop: a summary that frees nothing is no success", async (context) => {
  const history = chat(6);
  const summarize = summariser(WORDS.repeat(200));
  const result = await passing(context, compact(history, { summarize }));
  assert.deepEqual([result.success, result.freedTokens, result.messages.length], [false, 0, 12]);
  fails("summary_rejected")(result.error);
});

test("lesson: compaction loop: a lone summary is not summarised again", async () => {
  const session = await openSession({ store: "memory", summarize: summariser() });
  await session.append(...chat(10));
  assert.equal((await session.compact()).llmCalls, 1);
  for (let again = 0; again < 3; again++) {
    const { llmCalls, freedTokens, reason } = await session.compact();
    assert.deepEqual([llmCalls, freedTokens], [0, 0]);
    assert.match(reason, /Nothing to compress/);
  }
});

test("lesson: compaction loop: references are not moved out again", async () => {
  const session = await openSession({
    store: "memory",
    compactAt: { tokens: 10 },
    advanced: { minOffloadGain: 1 },
    summarize: { call: summariser("no"), attempts: 1 },
  });
  await session.append(...exchange(1, 4_000), ...chat(3));
  const first = await session.prepare();
  assert.deepEqual(
    first.edits.map(({ indices }) => indices),
    [[2]],
  );
  assert.deepEqual((await session.prepare()).edits, []);
});

// ---- the compaction request itself is too long ----------------------------------------------------------------------

for (const [name, history] of Object.entries({
  "a long history": chat(2_000),
  "one huge message": [user("x".repeat(3_000_000)), ...chat(5)],
  "one huge result": [...exchange(1, 3_000_000), ...chat(5)],
  "text without blanks, in a script of many tokens": [user("上下文压缩".repeat(100_000)), ...chat(5)],
})) {
  test(`lesson: compaction request overflows: ${name} is asked about within the summariser's window`, async () => {
    const window = 16_000;
    const summarize = summariser();
    const plan = await planCompaction(history, { contextWindow: window, summarize });
    const result = await compact(history, { contextWindow: window, summarize });
    assert.equal(result.success, true, String(result.error));
    for (const { request } of summarize.calls) {
      const { system, messages, maxTokens, truncated } = request;
      const size = estimateTokens([{ role: "system", content: system }, ...messages]);
      assert.ok(size + maxTokens <= window, `${size} + ${maxTokens}`);
      assert.equal(truncated, /left out|<omitted/.test(messages[0].content), "what is left out is said");
    }
    const purposes = summarize.calls.map(({ purpose }) => purpose);
    assert.equal(purposes.at(-1), "merge");
    // The plan takes answers to be as long as they may be; shorter ones are joined in fewer calls.
    const foretold = plan.edits.find(({ kind }) => kind === "summarize")?.llmCalls ?? Infinity;
    assert.ok(purposes.length <= foretold, `${purposes.length} ${foretold}`);
    assert.equal(summarize.calls.filter(({ request }) => request.truncated).length, name.startsWith("one huge") || name.startsWith("text") ? 1 : 0);
    const clipped = summariser();
    await compact(history, { contextWindow: window, summarize: { call: clipped, longHistory: "clip" } });
    assert.deepEqual([clipped.calls.length, clipped.calls[0].request.truncated], [1, true]);
  });
}

test("lesson: compaction request overflows: a model with a smaller window than it said gets less, and less again", async (context) => {
  const [refused, taken] = [[], []];
  const summarize = async ({ messages: [{ content }] }) => {
    const size = estimateTokens(content);
    (size > 12_000 ? refused : taken).push(size);
    if (size > 12_000) throw new Error("prompt is too long: 12001 tokens > 12000 maximum");
    return SUMMARY;
  };
  const { success } = await passing(context, compact(chat(400), { contextWindow: 30_000, summarize }));
  assert.equal(success, true, `${refused} ${taken}`);
  assert.ok(refused.some((size) => size > 20_000) && refused.some((size) => size < 20_000), `less, and less again: ${refused}`);
});

test("lesson: compaction request overflows: the size is counted here; no error of the provider is needed", async () => {
  for (const maxInputTokens of [2_000, 4_000, 12_000]) {
    const { system, messages } = await buildSummaryPrompt(chat(1_000), { maxInputTokens });
    assert.ok(estimateTokens([{ role: "system", content: system }, ...messages]) <= maxInputTokens);
  }
});

// ---- the output cap -------------------------------------------------------------------------------------------------

test("lesson: output cap wrong: the answer's room is never filled with messages", async () => {
  for (const [contextWindow, maxOutputTokens, reserveTokens] of [
    [8_000, 2_000, 0],
    [8_000, 4_000, 1_000],
    [8_000, undefined, 500],
  ]) {
    const options = { contextWindow, maxOutputTokens, reserveTokens, summarize: summariser() };
    const session = await openSession({ store: "memory", ...options });
    const room = contextWindow - (maxOutputTokens ?? contextWindow / 4) - reserveTokens;
    for (let step = 0; step < 40; step++) {
      await session.append(...exchange(step, 1_000));
      const { usage } = await session.prepare();
      assert.ok(usage.usedTokens <= room, `${usage.usedTokens} of ${room}`);
    }
  }
});

test("lesson: output cap wrong: a summary may be a fifth longer than its target, and no more is asked for", async () => {
  for (const targetTokens of [100, 1_000, 8_000]) {
    const summarize = summariser();
    await compact(chat(20), { summarize: { call: summarize, targetTokens } });
    const { request } = summarize.calls[0];
    assert.deepEqual([request.targetTokens, request.maxTokens], [targetTokens, Math.ceil(targetTokens * 1.2)]);
    assert.ok(
      request.system.includes(`approximately ${targetTokens} tokens`) ||
        request.messages[0].content.includes(`approximately ${targetTokens} tokens`),
    );
  }
});

for (const [name, body] of Object.entries({
  "reasoning that ate the cap": {
    choices: [
      { finish_reason: "length", message: { role: "assistant", content: "", reasoning_content: "First, …" } },
    ],
  },
  "a text that ends in the middle": {
    choices: [{ finish_reason: "length", message: { role: "assistant", content: SUMMARY.slice(0, -20) } }],
  },
})) {
  test(`lesson: output cap wrong: ${name} is a failed attempt, not a short summary`, async (context) => {
    let calls = 0;
    const fetch = async () => {
      calls++;
      return new Response(JSON.stringify(body));
    };
    const history = frozen(chat(10));
    const result = await passing(context, compact(history, { summarize: { provider: { kind: "openai", model: "m" }, fetch } }));
    assert.deepEqual([result.success, calls], [false, 3]);
    assert.deepEqual(result.messages, history);
  });
}

// ---- work that grows with the square of the history -----------------------------------------------------------------

/** Appends and prepares `turns` times; the bytes and rows that were written. */
async function written(turns) {
  const store = openStore();
  let [bytes, rows] = [0, 0];
  store.before = ({ puts }) => {
    rows += puts.length;
    bytes += puts.reduce((sum, [, value]) => sum + value.length, 0);
  };
  const session = await openSession({ store, id: "s", advanced: { runtime: runtime() } });
  for (let turn = 0; turn < turns; turn++) {
    await session.append(...chat(1, turn));
    await session.prepare();
  }
  return { bytes, rows };
}

test("lesson: quadratic storage / CPU: twice the history is twice the bytes", async () => {
  const [half, whole] = [await written(200), await written(400)];
  assert.ok(whole.bytes < half.bytes * 2.2, `${half.bytes} and ${whole.bytes} bytes`);
  assert.ok(whole.rows < half.rows * 2.2, `${half.rows} and ${whole.rows} rows`);
});

test("lesson: quadratic storage / CPU: a message is counted once, however often it is sent", async () => {
  const counted = new Map();
  const tokenCounter = ([message]) => {
    counted.set(message, (counted.get(message) ?? 0) + 1);
    return 10;
  };
  const session = await openSession({ store: "memory", tokenCounter });
  const history = chat(100);
  for (const message of history) {
    await session.append(message);
    await session.prepare();
    session.context.usage();
    (await session.context.plan());
  }
  assert.deepEqual(
    history.map((message) => counted.get(message)),
    history.map(() => 1),
  );
});

test("lesson: quadratic storage / CPU: handing over the whole history every turn stores each message once", async () => {
  const store = openStore();
  const session = await openSession({ store });
  const history = chat(60);
  for (let length = 2; length <= history.length; length += 2) await session.sync(history.slice(0, length));
  const stored = store
    .rows()
    .filter(([[table]]) => table === "log")
    .reduce((sum, [, value]) => sum + value.length, 0);
  assert.ok(stored < JSON.stringify(history).length * 2, `${stored} bytes`);
});

// ---- counts ---------------------------------------------------------------------------------------------------------

test("lesson: wrong counts: scripts that cost more are counted as more, and trigger as early as they must", async () => {
  for (const [name, text, least] of [
    ["Chinese", "在不丢失任何内容的前提下压缩上下文。", 0.5],
    ["Korean", "아무것도 잃지 않고 문맥을 압축합니다. ", 0.4],
    ["Arabic", "ضغط السياق دون فقدان أي شيء. ", 0.25],
  ]) {
    const characters = [...text.repeat(100)].length;
    assert.ok(estimateTokens(text.repeat(100)) > characters * least, name);
    const options = { compactAt: { tokens: 4_000 } };
    const history = Array.from({ length: 10 }, (_, nth) => [
      user(`${nth} ${text.repeat(20)}`),
      assistant(`${nth} ${text.repeat(20)}`),
    ]).flat();
    assert.equal(
      (await planCompaction(history, options)).tokens,
      estimateTokens(history),
      "the trigger counts as estimateTokens does",
    );
  }
});

test("lesson: wrong counts: system prompt and tools are part of what triggers", async () => {
  const tools = [{ type: "function", function: { name: "read", description: WORDS.repeat(200), parameters: {} } }];
  const summarize = summariser();
  const session = await openSession({
    store: "memory",
    compactAt: { tokens: 3_000 },
    systemPrompt: WORDS.repeat(100),
    summarize,
  });
  await session.append(...chat(8));
  assert.ok(estimateTokens(chat(8)) < 2_500);
  assert.ok((await session.prepare({ tools })).result?.success, "messages alone would not have fired");
});

test("lesson: wrong counts: what is sent is what is counted, after offloads and summaries too", async () => {
  for (const make of [exchange, anthropicExchange]) {
    const session = await openSession({ store: "memory", contextWindow: 8_000, summarize: summariser() });
    for (let step = 0; step < 30; step++) {
      await session.append(...make(step, 1_500));
      const { messages, usage } = await session.prepare();
      assert.equal(usage.usedTokens, estimateTokens(messages, { format: session.context.format }), `step ${step}`);
      assert.equal(session.context.usage().usedTokens, usage.usedTokens);
    }
  }
});

test("lesson: wrong counts: one counter decides about trigger, cut, progress and result", async () => {
  // A counter that disagrees with every estimate: a message is a token.
  const tokenCounter = (messages) => messages.length;
  const summarize = summariser();
  const session = await openSession({
    store: "memory",
    tokenCounter,
    compactAt: { tokens: 20 },
    keep: { tokens: 6 },
    advanced: { minOffloadGain: 50 },
    summarize,
  });
  await session.append(...chat(9));
  assert.equal((await session.prepare()).result, undefined, "18 of 20");
  await session.append(...chat(1));
  const { result, messages } = await session.prepare();
  assert.deepEqual([result.previousTokens, result.currentTokens, messages.length], [20, 8, 8]);
});

// ---- the prompt cache -----------------------------------------------------------------------------------------------

test("lesson: cache destroyed: between two compactions every prompt begins with the one before, to the byte", async () => {
  const session = await openSession({
    store: "memory",
    contextWindow: 12_000,
    maxOutputTokens: 1_000,
    advanced: { runtime: runtime() },
    summarize: summariser(),
  });
  let before = [];
  let breaks = 0;
  for (let step = 0; step < 80; step++) {
    await session.append(...exchange(step, 800));
    const { messages, edits } = await session.prepare();
    const now = messages.map((message) => JSON.stringify(message));
    const same = before.every((text, at) => text === now[at]);
    assert.equal(same, edits.length === 0, `step ${step}: a prefix changes with an edit, and only then`);
    breaks += same ? 0 : 1;
    before = now;
  }
  assert.ok(breaks >= 2 && breaks <= 16, `${breaks} of 80 prompts began anew`);
});

test("lesson: cache destroyed: results go in one batch at the threshold; none is moved for being a turn older", async () => {
  const session = await openSession({ store: "memory", contextWindow: 40_000, summarize: summariser() });
  const isLong = ({ role, content }) => role === "tool" && content.length > 100;
  let batches = 0;
  for (let step = 0; step < 60; step++) {
    await session.append(...exchange(step, 4_000));
    const { usedTokens, threshold } = session.context.usage();
    const { messages, edits } = await session.prepare();
    const moved = edits.filter(({ kind }) => kind === "offload");
    assert.ok(moved.length === 0 || usedTokens >= threshold, `step ${step}: ${usedTokens} of ${threshold}`);
    batches += moved.length;
    const older = messages.slice(0, messages.length / 2);
    if (moved.length > 0 && edits.length === 1)
      assert.ok(!older.some(isLong), `step ${step}: one was left for the next turn`);
  }
  assert.ok(batches > 2 && batches < 20, `${batches} batches in 60 turns`);
});

test("lesson: cache destroyed: the same session gives the same bytes in every process", async () => {
  const run = async () => {
    const store = openStore();
    const options = { store, id: "s", contextWindow: 8_000, summarize: summariser() };
    const session = await openSession({ ...options, advanced: { runtime: runtime() } });
    for (let step = 0; step < 20; step++) await session.append(...exchange(step, 1_500));
    const prepared = JSON.stringify((await session.prepare()).messages);
    const reopened = JSON.stringify((await (await openSession(options)).prepare()).messages);
    assert.equal(reopened, prepared, "after a restart");
    return prepared;
  };
  assert.equal(await run(), await run());
});
