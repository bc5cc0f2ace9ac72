/** `recordUsage`: the estimate of the whole prompt goes on from what the provider counted; estimates with bounds. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { estimateTokens, estimateTokensDetailed, memoryStore, openSession, ready } from "../support/offload.mjs";
import { chat, exchange, fails } from "../support/api.mjs";
import { transcripts } from "../support/transcripts.mjs";
import { replay, row } from "../../bench/usage.bench.mjs";

const options = (more) => ({ store: memoryStore(), contextWindow: 50_000, ...more });
const used = (session) => session.context.usage().usedTokens;

test("every provider's own usage object is understood", async () => {
  const usages = [
    { inputTokens: 5_000, outputTokens: 10, cacheReadTokens: 4_000 },
    { input_tokens: 5, cache_read_input_tokens: 4_000, cache_creation_input_tokens: 995, output_tokens: 10, service_tier: "x" },
    { input_tokens: 5_000, input_tokens_details: { cached_tokens: 4_000 }, output_tokens: 10 },
    { prompt_tokens: 5_000, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 4_000, audio_tokens: null } },
    { promptTokenCount: 5_000, cachedContentTokenCount: 4_000, candidatesTokenCount: 10, promptTokensDetails: [{ modality: "TEXT" }] },
  ];
  for (const usage of usages) {
    const session = await openSession(options());
    await session.append(...chat(2));
    await session.prepare();
    session.context.recordUsage(usage);
    assert.equal(used(session), 5_000, JSON.stringify(usage));
    await session.close();
  }
});

test("what was learned is stored by close, explained, and of one model", async () => {
  const store = memoryStore();
  const open = (model) => openSession(options({ store, id: "a", model }));
  const session = await open("gpt-5.1");
  await session.append(...chat(2));
  const { usage } = await session.prepare();
  assert.equal(usage.correction, undefined);
  session.context.recordUsage({ inputTokens: usage.usedTokens + 700, outputTokens: 1 });
  const { correction, categories } = session.context.usage();
  assert.deepEqual(correction, {
    model: "gpt-5.1",
    reports: 1,
    reported: usage.usedTokens + 700,
    estimated: usage.usedTokens,
    factor: 1,
    overhead: 700,
    anchored: true,
  });
  assert.equal(categories.find(({ name }) => name === "overhead").tokens, 700);
  await session.close();
  const again = await open("gpt-5.1");
  assert.equal(used(again), usage.usedTokens + 700);
  assert.deepEqual((await again.archive.verify()).problems, []);
  await again.prepare();
  again.context.recordUsage({ inputTokens: 9_000, outputTokens: 1 }, { model: "another" });
  assert.equal(used(again), 9_000);
  await again.close();
  const third = await open("gpt-5.1");
  assert.equal(used(third), usage.usedTokens + 700);
  await third.close();
});

test("P25: a prompt that was reported has no bounds, and what comes after it those of the session's reports", async () => {
  const store = memoryStore();
  const session = await openSession(options({ store, id: "a", model: "gpt-5.1" }));
  const bounds = ({ low, usedTokens, high }) => {
    assert.ok(low <= usedTokens && usedTokens <= high, `${low} ${usedTokens} ${high}`);
    return high - low;
  };
  assert.equal(bounds(session.context.usage()), 0);
  await session.append(...chat(20));
  const { usage } = await session.prepare();
  assert.ok(bounds(usage) > usage.usedTokens / 20);
  session.context.recordUsage({ inputTokens: usage.usedTokens + 700, outputTokens: 1 });
  assert.equal(bounds(session.context.usage()), 0);
  const widths = [];
  for (let nth = 0; nth < 12; nth++) {
    await session.append(...chat(2));
    const { usage } = await session.prepare();
    widths.push(bounds(usage));
    session.context.recordUsage({ inputTokens: usage.usedTokens + 1, outputTokens: 1 });
  }
  assert.ok(widths.every((width, nth) => width > 0 && (nth === 0 || width <= widths[nth - 1])), widths.join());
  assert.ok(widths.at(-1) < (widths[0] * 2) / 3, widths.join());
  await session.append(...chat(2));
  const { low, high } = session.context.usage();
  await session.close();
  const again = await openSession(options({ store, id: "a", model: "gpt-5.1" }));
  assert.deepEqual([again.context.usage().low, again.context.usage().high], [low, high], "they are stored");
  await again.close();
});

test("a tokenCounter is never corrected", async () => {
  const session = await openSession(options({ tokenCounter: (messages) => messages.length * 10 }));
  await session.append(...chat(1));
  session.context.recordUsage({ inputTokens: 9_000, outputTokens: 1 });
  assert.equal(used(session), 20);
  await session.close();
});

test("what says nothing is refused, and what cannot be the prompt is passed over with a warning", async () => {
  const warnings = [];
  const logger = (level, message) => warnings.push(`${level}: ${message}`);
  const session = await openSession(options({ logger }));
  await session.append(...chat(5));
  const before = used(session);
  const cycle = {};
  cycle.self = cycle;
  for (const usage of [undefined, null, {}, "900", { inputTokens: -1 }, { inputTokens: NaN }, cycle]) {
    assert.throws(() => session.context.recordUsage(usage), fails("invalid_option", { field: "usage" }));
  }
  assert.throws(() => session.context.recordUsage({ inputTokens: 9 }, { model: 5 }), fails("invalid_option", { field: "model" }));
  assert.throws(() => session.context.recordUsage({ inputTokens: 9 }, { modle: "x" }), fails("invalid_option", { field: "modle" }));
  session.context.recordUsage({ inputTokens: 9, outputTokens: 1 });
  assert.equal(used(session), before);
  assert.match(warnings.join(), /warn: recordUsage/);
  await session.close();
  assert.throws(() => session.context.recordUsage({ inputTokens: 900 }), fails("closed"));
});

test("on pi's recorded session nine of ten prompts are within 2 %", async (t) => {
  const records = transcripts("full/anthropic/pi_mono");
  if (!records) return t.skip("the recorded sessions are not here (CC_DATA)");
  const usage = ({ input, cache_read, cache_write }) => ({
    input_tokens: input,
    cache_read_input_tokens: cache_read,
    cache_creation_input_tokens: cache_write,
  });
  const calls = ({ messages }) => messages.flatMap(({ role }, index) => (role === "assistant" ? [index] : []));
  const found = row("pi", await replay(records[0], { format: "anthropic", usage, calls }));
  t.diagnostic(JSON.stringify(found));
  assert.ok(found.calls > 400);
  assert.ok(found["calls within 2 % (%)"] >= 90, JSON.stringify(found));
  assert.ok(found["whole prompt, mean (%)"] <= 1, JSON.stringify(found));
  assert.ok(found["width, of the prompt (%)"] <= 1, JSON.stringify(found));
});

await Promise.all(["claude-sonnet-4-5", "claude-opus-4-8", "gemini-3-pro"].map((model) => ready({ model })));

test("estimateTokensDetailed has the estimate's tokens, bounds around them, roles and messages", () => {
  const messages = [...chat(20), ...exchange(1)];
  for (const model of ["gpt-5.1", "claude-opus-4-8", "gemini-3-pro"]) {
    const all = estimateTokensDetailed(messages, { model, format: "openai-chat" });
    assert.equal(all.tokens, estimateTokens(messages, { model, format: "openai-chat" }));
    assert.deepEqual(
      all.byMessage,
      messages.map((message) => estimateTokens(message, { model, format: "openai-chat" })),
    );
    assert.deepEqual(Object.keys(all.byRole).sort(), ["assistant", "tool", "user"]);
    assert.equal(Object.values(all.byRole).reduce((sum, tokens) => sum + tokens), all.tokens);
    assert.ok(all.low < all.tokens && all.tokens < all.high && all.high - all.low < all.tokens / 2, JSON.stringify(all));
  }
  const text = "The build fails with error E0502 on line 42. ".repeat(5_000);
  const { tokens, low, high, byRole, byMessage } = estimateTokensDetailed(text);
  assert.deepEqual([tokens, byRole, byMessage], [estimateTokens(text), {}, [tokens]]);
  assert.ok((high - low) / tokens < 0.08, `${low} to ${high} around ${tokens}`);
  assert.deepEqual(estimateTokensDetailed(""), { tokens: 0, low: 0, high: 0, family: "o200k", byRole: {}, byMessage: [0] });
  assert.deepEqual(estimateTokensDetailed([]), { tokens: 0, low: 0, high: 0, family: "o200k", byRole: {}, byMessage: [] });
  assert.equal(estimateTokensDetailed("a\ud800").tokens, estimateTokens("a\ufffd"));
  assert.throws(() => estimateTokensDetailed("x", { estimator: "exact" }), fails("invalid_option", { field: "estimator" }));
});

test("a picture costs by its size, a call of Claude by its arguments", () => {
  const png = (width, height) => {
    const header = Buffer.from("89504e470d0a1a0a0000000d494844520000000000000000", "hex");
    header.writeUInt32BE(width, 16);
    header.writeUInt32BE(height, 20);
    return `data:image/png;base64,${Buffer.concat([header, Buffer.alloc(5_000)]).toString("base64")}`;
  };
  const picture = (url, model) =>
    estimateTokens({ role: "user", content: [{ type: "image_url", image_url: { url } }] }, { model, format: "openai-chat" });
  assert.equal(picture(png(1_024, 1_024), "gpt-5.1"), 765 + 4);
  assert.equal(picture(png(200, 200), "claude-sonnet-4-5"), 53 + 4);
  assert.equal(picture(png(300, 300), "gemini-3-pro"), 258);
  const call = (model) => estimateTokens(exchange(1)[1], { model, format: "openai-chat" });
  assert.ok(call("claude-sonnet-4-5") >= call("gpt-5.1") + 30);
});
