/** One compaction of a history: what comes back, and what a summariser cannot do to it. */

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import {
  buildSummaryPrompt,
  compact,
  estimateTokens,
  extractiveSummary,
  openSession,
  validateHistory,
} from "../support/offload.mjs";
import {
  anthropicExchange,
  chat,
  deferred,
  exchange,
  fails,
  frozen,
  openStore,
  runtime,
  settled,
  summariser,
  RECORD,
  SUMMARY,
} from "../support/api.mjs";

/** Lets mocked waits pass until `promise` settles. */
async function passing(promise, step = 1_000) {
  let over = false;
  const end = () => (over = true);
  promise.then(end, end);
  while (!over) {
    await settled();
    mock.timers.tick(step);
  }
  return promise;
}

function mockTimers(context) {
  mock.timers.enable({ apis: ["setTimeout"] });
  context.after(() => mock.timers.reset());
}

test("s1_8_the new history is the summary and the preserved messages, the same objects", async () => {
  const history = frozen(chat(10));
  const summarize = summariser();
  const result = await compact(history, frozen({ summarize: { call: summarize, model: "small" }, model: "large", contextWindow: 200_000 }));
  assert.equal(result.success, true);
  assert.deepEqual(result.messages[0], { role: "user", content: `[Compressed History]\n\n${SUMMARY}${RECORD}` });
  const kept = result.messages.slice(1);
  assert.equal(kept.length, 5);
  kept.forEach((message, index) => assert.equal(message, history[15 + index]));
  assert.equal(result.summary, SUMMARY);
  assert.equal(result.trigger, "manual");
  assert.deepEqual([result.preservedCount, result.llmCalls, result.retiredRefs], [5, 1, []]);
  assert.equal(result.previousTokens, estimateTokens(history));
  assert.equal(result.currentTokens, estimateTokens(result.messages));
  assert.equal(result.freedTokens, result.previousTokens - result.currentTokens);
  assert.ok(!("error" in result) && !("reason" in result));
  assert.ok(result.durationMs >= 0);
  const [{ request, attempt, purpose, signal }] = summarize.calls;
  assert.deepEqual([attempt, purpose, request.model], [1, "history", "small"]);
  assert.ok(signal instanceof AbortSignal && !signal.aborted);
});

test("the ledger gives every message one fate, and the edit names what it touched", async () => {
  const { ledger, appliedEdits } = await compact(chat(10), { summarize: summariser() });
  assert.deepEqual(ledger.map(({ index }) => index), [...Array(20).keys()]);
  assert.ok(ledger.every(({ index, fate }) => fate === (index < 15 ? "summarized" : "verbatim")));
  assert.ok(ledger[0].checkpoint.startsWith("cp_"));
  assert.equal(appliedEdits.length, 1);
  assert.deepEqual([appliedEdits[0].kind, appliedEdits[0].indices], ["summarize", [...Array(15).keys()]]);
  assert.ok(appliedEdits[0].freedTokens > 0);
});

test("unknown fields and block types survive, and system messages stay in front", async () => {
  const system = { role: "system", content: "You are brief." };
  const odd = { role: "assistant", content: [{ type: "hologram", data: { a: [1] } }], _private: { cost: 0.5 } };
  const history = frozen([system, ...chat(10), odd]);
  const { messages } = await compact(history, { summarize: summariser() });
  assert.equal(messages[0], system);
  assert.equal(messages.at(-1), odd);
});

for (const [format, make] of [["openai-chat", exchange], ["anthropic", anthropicExchange]]) {
  test(`lesson: orphaned tool pairs; what comes back is valid in ${format}, wherever the cut is`, async () => {
    const history = frozen([...[1, 2, 3, 4].flatMap((nth) => make(nth)), { role: "user", content: "Go on." }]);
    for (let messages = 1; messages < history.length; messages++) {
      const result = await compact(history, { format, keep: { messages }, summarize: summariser() });
      assert.deepEqual((await validateHistory(result.messages, { format, strict: true })).problems, [], `keep ${messages}`);
    }
  });
}

test("s1_5_too few messages: nothing is done and no model is called", async () => {
  const history = frozen(chat(2));
  const result = await compact(history, { summarize: () => assert.fail("not asked") });
  assert.deepEqual([result.success, result.freedTokens, result.llmCalls], [true, 0, 0]);
  result.messages.forEach((message, index) => assert.equal(message, history[index]));
  assert.match(result.reason, /Nothing to compress/);
});

test("with neither summariser nor provider the built-in one writes the summary", async () => {
  const result = await compact(frozen(chat(20)));
  assert.deepEqual([result.success, result.llmCalls], [true, 0]);
  assert.ok(result.summary.includes("src/parser.rs"));
  assert.ok(result.currentTokens < result.previousTokens);
});

test("usage that the summariser reports is summed over the attempts", async (context) => {
  mockTimers(context);
  const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 10 };
  const summarize = async (_, { attempt }) => ({ text: attempt === 1 ? "" : SUMMARY, usage });
  const result = await passing(compact(chat(10), { summarize }));
  assert.deepEqual([result.llmCalls, result.usage.inputTokens, result.usage.outputTokens], [2, 200, 40]);
  assert.equal(result.usage.cacheReadTokens, 20);
});

test("usage out of any bounds stays a number that JavaScript has, summed over the attempts too", async (context) => {
  mockTimers(context);
  const most = Number.MAX_SAFE_INTEGER;
  for (const [inputTokens, expected] of [
    [1e300, most],
    [Infinity, most],
    [most, most],
    [-Infinity, 0],
    [Number.NaN, 0],
    [1.5, 1],
  ]) {
    const result = await compact(chat(10), {
      summarize: async () => ({ text: SUMMARY, usage: { inputTokens, outputTokens: 1 } }),
    });
    assert.equal(result.success, true, String(result.error));
    assert.equal(result.usage.inputTokens, expected);
  }
  let calls = 0;
  const summarize = async () => ({ text: calls++ ? SUMMARY : "", usage: { inputTokens: most, outputTokens: 1 } });
  const summed = await passing(compact(chat(10), { summarize }));
  assert.deepEqual([summed.success, summed.usage.inputTokens, summed.usage.outputTokens], [true, most, 2]);
  // What a provider claims is no better.
  const body = JSON.stringify({
    choices: [{ message: { role: "assistant", content: SUMMARY }, finish_reason: "stop" }],
    usage: { prompt_tokens: 0 },
  }).replace('"prompt_tokens":0', '"prompt_tokens":18446744073709551615');
  const { success, usage } = await compact(chat(10), {
    summarize: { provider: { kind: "openai", model: "m" }, fetch: async () => new Response(body) },
  });
  assert.deepEqual([success, usage.inputTokens], [true, most]);
});

test("usage that is junk is no usage", async () => {
  for (const usage of [null, "lots", { inputTokens: Number.NaN, outputTokens: "5" }, { inputTokens: -4 }]) {
    const result = await compact(chat(10), { summarize: async () => ({ text: SUMMARY, usage }) });
    assert.equal(result.success, true);
    assert.ok(result.usage === undefined || result.usage.inputTokens === 0);
  }
});

// ---- summarisers that misbehave -------------------------------------------------------------------------------------

const boom = new Error("the model is gone");
const plainThrown = { code: "aborted", message: "connection aborted" };
const odd = Object.create(null);
const unreadable = new Proxy({}, { get: () => { throw new Error("no"); } });
const long = "This summary is far too long for what it replaces. ".repeat(500);

/** Name, summariser, code of the error, and the cause where there is one. */
const MISBEHAVING = [
  ["rejects", async () => { throw boom; }, "summary_failed", boom],
  ["throws at once", () => { throw boom; }, "summary_failed", boom],
  ["throws a text", async () => { throw "no"; }, "summary_failed", "no"],
  ["throws null", async () => { throw null; }, "summary_failed", null],
  ["throws an object with a code of ours", async () => { throw plainThrown; }, "summary_failed", plainThrown],
  ["throws an object without a prototype", async () => { throw odd; }, "summary_failed", odd],
  ["throws what cannot be looked into", async () => { throw unreadable; }, "summary_failed", unreadable],
  ["returns an empty text", async () => "", "summary_rejected"],
  ["returns blanks", async () => " \n\t ", "summary_rejected"],
  ["returns a word", async () => "ok", "summary_rejected"],
  ["returns a refusal", async () => "I'm sorry, but I can't help with that request.", "summary_rejected"],
  ["returns an error's text", async () => "Error: 500 internal server error", "summary_rejected"],
  ["returns more than it replaces", async () => long, "summary_rejected"],
  ["returns a number", async () => 42, "summary_failed", "TypeError"],
  ["returns null", async () => null, "summary_failed", "TypeError"],
  ["returns nothing", async () => {}, "summary_failed", "TypeError"],
  ["returns {}", async () => ({}), "summary_failed", "TypeError"],
  ["returns { text: 5 }", async () => ({ text: 5 }), "summary_failed", "TypeError"],
  ["returns an array", async () => [SUMMARY], "summary_failed", "TypeError"],
  ["hangs", () => new Promise(() => {}), "timeout", "CompactionError"],
];

for (const [name, summarize, code, cause] of MISBEHAVING) {
  test(`s1_10_a summariser that ${name}: the history is unchanged and the error has its cause`, async (context) => {
    mockTimers(context);
    const history = frozen(chat(10));
    let calls = 0;
    const counting = (...given) => (calls++, summarize(...given));
    const result = await passing(compact(history, { summarize: { call: counting, timeoutMs: 5_000 } }));
    assert.deepEqual([result.success, result.freedTokens, result.llmCalls, calls], [false, 0, 3, 3]);
    assert.equal(result.messages.length, history.length);
    result.messages.forEach((message, index) => assert.equal(message, history[index]));
    assert.equal(result.previousTokens, result.currentTokens);
    assert.deepEqual([result.appliedEdits, result.retiredRefs, result.summary], [[], [], undefined]);
    assert.equal(result.error.code, code);
    if (cause === "TypeError" || cause === "CompactionError") assert.equal(result.error.cause.name, cause);
    else assert.equal(result.error.cause, cause);
  });

  test(`a summariser that ${name}, with a fallback: the result says that it fell back`, async (context) => {
    mockTimers(context);
    const given = { summarize: { call: summarize, fallback: "extractive", timeoutMs: 5_000, attempts: 2 } };
    const result = await passing(compact(frozen(chat(20)), given));
    assert.deepEqual([result.success, result.llmCalls], [true, 2]);
    assert.match(result.reason, /the summarizer failed .*the built-in one was used/s);
    assert.equal(result.appliedEdits[0].detail, result.reason);
    assert.ok(result.currentTokens < result.previousTokens);
  });
}

test("an answer that came after its attempt had timed out is not used", async (context) => {
  mockTimers(context);
  const late = deferred();
  const signals = [];
  const summarize = (_, { attempt, signal }) => {
    signals.push(signal);
    return attempt === 1 ? late.promise : Promise.resolve(SUMMARY);
  };
  const work = compact(chat(10), { summarize: { call: summarize, timeoutMs: 5_000 } });
  await settled();
  mock.timers.tick(5_000);
  assert.equal(signals[0].aborted, true);
  assert.equal(signals[0].reason.code, "timeout");
  await settled();
  late.resolve(`${SUMMARY} Too late.`);
  const result = await passing(work);
  assert.deepEqual([result.success, result.summary, result.llmCalls], [true, SUMMARY, 2]);
});

test("s1_7_the waits between attempts are 1,000 ms times the attempt", async (context) => {
  mockTimers(context);
  const starts = [];
  let time = 0;
  const summarize = async () => {
    starts.push(time);
    throw boom;
  };
  const work = compact(chat(10), { summarize: { call: summarize, attempts: 4 } });
  while (starts.length < 4) {
    await settled();
    mock.timers.tick(100);
    time += 100;
  }
  assert.equal((await work).llmCalls, 4);
  const waits = starts.slice(1).map((start, nth) => start - starts[nth]);
  waits.forEach((wait, nth) => assert.ok(Math.abs(wait - 1_000 * (nth + 1)) <= 200, `${waits}`));
});

test("what was wrong with an answer is told to the next attempt", async (context) => {
  mockTimers(context);
  const asked = [];
  const summarize = async (request, { attempt }) => {
    asked.push(JSON.stringify(request));
    return attempt === 1 ? "ok" : SUMMARY;
  };
  assert.equal((await passing(compact(chat(10), { summarize }))).success, true);
  assert.ok(!asked[0].includes("too short to be a summary") && asked[1].includes("too short to be a summary"));
});

test("lesson: the compaction request overflows; it is shrunk and sent again", async (context) => {
  mockTimers(context);
  const sizes = [];
  const history = chat(200);
  const summarize = async (request) => {
    const text = request.system + request.messages[0].content;
    sizes.push(estimateTokens(text));
    // As the openai package throws it; the message alone does not say it.
    if (sizes.length < 3) throw Object.assign(new Error("400 Bad request"), { status: 400, code: "context_length_exceeded" });
    assert.equal(request.truncated, true);
    return SUMMARY;
  };
  const result = await passing(compact(history, { summarize: { call: summarize, longHistory: "clip" }, contextWindow: 20_000 }));
  assert.equal(result.success, true);
  assert.ok(sizes[1] < sizes[0] && sizes[2] < sizes[1], `${sizes}`);
});

// ---- abort ----------------------------------------------------------------------------------------------------------

const reason = new Error("the user left");

test("aborted before: nothing is asked", async () => {
  const signal = AbortSignal.abort(reason);
  const summarize = () => assert.fail("not asked");
  await assert.rejects(compact(chat(10), { summarize, signal }), fails("aborted", { cause: reason }));
  await assert.rejects(compact(chat(10), { signal }), fails("aborted", { cause: reason }));
});

/** A signal as polyfills make them: no `AbortSignal`, and no more than the standard's first version had. */
function polyfilled() {
  const listeners = new Set();
  const signal = {
    aborted: false,
    reason: undefined,
    addEventListener: (_, listener) => listeners.add(listener),
    removeEventListener: (_, listener) => listeners.delete(listener),
  };
  const abort = () => {
    Object.assign(signal, { aborted: true, reason });
    listeners.forEach((listener) => listener());
  };
  return { signal, abort, listeners };
}

test("lesson: a polyfill's signal is no AbortSignal; it is listened to all the same", async () => {
  const waiting = (abort) => () => {
    setImmediate(abort);
    return new Promise(() => {});
  };
  const one = polyfilled();
  await assert.rejects(
    compact(chat(10), { summarize: waiting(one.abort), signal: one.signal }),
    fails("aborted", { cause: reason }),
  );
  await assert.rejects(compact(chat(10), { signal: one.signal }), fails("aborted", { cause: reason }));
  // A session may have two: of its options, and of a call.
  for (const which of ["always", "call"]) {
    const two = { always: polyfilled(), call: polyfilled() };
    const session = await openSession({
      store: "memory",
      signal: two.always.signal,
      summarize: waiting(two[which].abort),
    });
    await session.append(...chat(10));
    const { signal } = two.call;
    await assert.rejects(session.compact({ signal }), fails("aborted", { cause: reason }), which);
    assert.deepEqual([two.always.listeners.size, two.call.listeners.size], [0, 0], "listeners are left behind");
  }
  const done = { always: polyfilled(), call: new AbortController() };
  const session = await openSession({ store: "memory", signal: done.always.signal, summarize: summariser() });
  await session.append(...chat(10));
  assert.equal((await session.compact({ signal: done.call.signal })).success, true);
  assert.equal(done.always.listeners.size, 0);
});

test("aborted while the summariser works: it sees the signal, and its answer is not waited for", async () => {
  const controller = new AbortController();
  let seen;
  const summarize = (_, { signal }) => {
    seen = signal;
    setImmediate(() => controller.abort(reason));
    return new Promise(() => {});
  };
  await assert.rejects(compact(chat(10), { summarize, signal: controller.signal }), fails("aborted", { cause: reason }));
  assert.equal(seen.reason, reason);
});

test("aborted by the summariser itself, which answers all the same: the answer is not used", async () => {
  const controller = new AbortController();
  const summarize = async () => {
    controller.abort(reason);
    return SUMMARY;
  };
  const store = openStore();
  const session = await openSession({ store, summarize });
  const history = chat(10);
  await session.append(...history);
  await assert.rejects(session.compact({ signal: controller.signal }), fails("aborted", { cause: reason }));
  const { messages } = await session.prepare();
  assert.equal(messages.length, 20);
  messages.forEach((message, index) => assert.equal(message, history[index]));
});

test("aborted during the wait between attempts", async (context) => {
  mockTimers(context);
  const controller = new AbortController();
  let calls = 0;
  const summarize = async () => {
    calls++;
    throw boom;
  };
  const work = compact(chat(10), { summarize: { call: summarize, fallback: "extractive" }, signal: controller.signal });
  const ended = assert.rejects(work, fails("aborted", { cause: reason }));
  await settled();
  mock.timers.tick(500);
  controller.abort(reason);
  await ended;
  assert.equal(calls, 1);
});

test("aborted during or after the commit: the result stands", async () => {
  const store = openStore();
  const controller = new AbortController();
  const session = await openSession({ store, id: "late", summarize: summariser() });
  await session.append(...chat(10));
  store.before = (batch) => {
    if (batch.puts.some(([key]) => key[0] === "views")) {
      controller.abort(reason);
      return settled();
    }
  };
  const result = await session.compact({ signal: controller.signal });
  assert.equal(result.success, true);
  const again = await openSession({ store, id: "late" });
  assert.deepEqual((await again.prepare()).messages, result.messages);
});

// ---- the app's own functions ----------------------------------------------------------------------------------------

test("tokenCounter is asked once for each message, with the app's own object, and for the candidate", async () => {
  const history = frozen(chat(10));
  const asked = [];
  const tokenCounter = (messages) => {
    assert.equal(messages.length, 1);
    asked.push(messages[0]);
    return history.includes(messages[0]) ? 100 : 7;
  };
  const result = await compact(history, { tokenCounter, summarize: summariser() });
  history.forEach((message) => assert.equal(asked.filter((other) => other === message).length, 1));
  const others = asked.filter((message) => !history.includes(message));
  assert.deepEqual(others, [result.messages[0]]);
  assert.deepEqual([result.previousTokens, result.currentTokens], [2_000, 507]);
});

test("redact sees what the summariser sees, and never changes what is kept", async () => {
  const secret = "sk-1234567890abcdef";
  const history = frozen([{ role: "user", content: `My key is ${secret}.` }, ...chat(10), { role: "user", content: secret }]);
  const summarize = summariser();
  const redact = (text) => text.replaceAll(secret, "[key]");
  const { messages } = await compact(history, { summarize, redact: { text: redact } });
  const asked = JSON.stringify(summarize.calls[0].request.messages);
  assert.ok(asked.includes("[key]") && !asked.includes(secret));
  assert.equal(messages.at(-1), history.at(-1));
  const store = openStore();
  const session = await openSession({ store, summarize, redact: { text: redact } });
  await session.append(...history);
  await session.compact();
  assert.ok(store.text().includes(secret) && !store.text().includes("[key]"));
});

test("lesson: secrets; keys of a known shape are replaced by default, and never in what is kept", async () => {
  const secret = "sk-q7Zk2Wd9Xb4Mv8Rt3Ny6Hp5Jc1Lf0Gs7Tq2";
  const history = frozen([{ role: "user", content: `My key is ${secret}.` }, ...chat(10), { role: "user", content: secret }]);
  const told = "My key is [redacted: api-key 1].";
  for (const on of [undefined, true, false]) {
    const options = on === undefined ? {} : { redact: { secrets: on } };
    const summarize = summariser();
    const { messages } = await compact(history, { redact: { secrets: on }, summarize });
    const [{ content }] = summarize.calls[0].request.messages;
    assert.deepEqual([content.includes(told), content.includes(secret)], [on !== false, on === false]);
    assert.equal(messages.at(-1), history.at(-1));
    const prompt = JSON.stringify(await buildSummaryPrompt(history, options));
    assert.deepEqual([prompt.includes(told), prompt.includes(secret)], [on !== false, on === false]);
    assert.equal((await extractiveSummary(history, options)).includes(secret), on === false);
  }
  const session = await openSession({ store: "memory", summarize: { fallback: "extractive" } });
  await session.append(...history);
  const { summary } = await session.compact();
  assert.ok(summary.includes("[redacted: api-key 1]") && !summary.includes(secret));
});

test("lesson: secrets; facts and the built-in summary are redacted too", async () => {
  const secret = "https://example.org/hook/sk-1234567890abcdef";
  const history = [{ role: "user", content: `Always post to ${secret}.` }, ...chat(20)];
  const redact = (text) => text.replaceAll(secret, "[hook]");
  const summarize = summariser();
  await compact(history, { summarize, redact: { text: redact } });
  assert.ok(!JSON.stringify(summarize.calls[0].request).includes(secret));
  const { summary } = await compact(history, { redact: { text: redact } });
  assert.ok(!summary.includes(secret));
});

test("instructions reach the summariser", async () => {
  const summarize = summariser();
  await compact(chat(10), { summarize: { call: summarize, instructions: "Name every file." } });
  assert.ok(JSON.stringify(summarize.calls[0].request).includes("Name every file."));
});

test("onProgress and logger are told what happens; the counts add up", async (context) => {
  mockTimers(context);
  const progress = [];
  const lines = [];
  const summarize = async (_, { attempt }) => {
    if (attempt === 1) throw boom;
    return SUMMARY;
  };
  const onProgress = (given) => progress.push(given);
  const logger = (level, message) => lines.push(`${level}: ${message}`);
  const result = await passing(compact(chat(10), { summarize, onProgress, logger }));
  const stages = progress.map(({ stage }) => stage);
  assert.deepEqual(stages, ["read", "summarize", "summarize", "commit"]);
  for (const { done, total, previousTokens } of progress) {
    assert.ok(done <= total);
    assert.equal(previousTokens, result.previousTokens);
  }
  assert.equal(progress.at(-1).currentTokens, result.currentTokens);
  assert.ok(lines.some((line) => /^warn: .*attempt 1 of 3 failed.*the model is gone/i.test(line)), lines.join("\n"));
  assert.ok(lines.some((line) => /^info: /.test(line)));
});

// ---- determinism ----------------------------------------------------------------------------------------------------

test("the same input, clock and ids give the same bytes, results and store alike", async () => {
  const run = async () => {
    const store = openStore();
    const session = await openSession({ store, id: "same", advanced: { runtime: runtime() }, summarize: summariser(), contextWindow: 8_000 });
    await session.append(...Array.from({ length: 12 }, (_, nth) => exchange(nth, 2_000)).flat());
    const prepared = await session.prepare();
    const compacted = await session.compact();
    const once = await compact(chat(20), { advanced: { runtime: runtime() } });
    return JSON.stringify([prepared, compacted, once]) + store.text();
  };
  assert.equal(await run(), await run());
});
