/** X5, X13: what a session may cost, and how many bytes its prompts may have. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, memoryStore, openSession } from "context-compactor";
import { langchain } from "context-compactor/formats";
import { compactionReceipts, verifyReceipt } from "context-compactor/receipts";
import { fails } from "../support/api.mjs";

const PRICES = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 };
/** 50,000 × 1 + 50,000 × 0.1 + 1,000 × 10 millionths of a dollar. */
const USAGE = { inputTokens: 100_000, outputTokens: 1_000, cacheReadTokens: 50_000 };

const opened = (options) => openSession({ contextWindow: 200_000, logger: () => {}, ...options });
const heard = (session) => {
  const warnings = [];
  session.on("warning", (warning) => warnings.push(warning));
  return warnings;
};

async function turn(session, nth, usage = USAGE) {
  await session.append({ role: "user", content: `question ${nth}` });
  await session.prepare();
  await session.append({ role: "assistant", content: `answer ${nth}` });
  session.context.recordUsage(usage);
}

test("X13: prepare refuses a prompt once the calls have cost limits.usd; the plan says how many are left", async () => {
  const session = await opened({ prices: PRICES, limits: { usd: 0.2, onExceed: "throw" } });
  const told = [];
  for (let nth = 0; nth < 4; nth++) {
    await turn(session, nth);
    const { spent, prompts } = (await session.context.plan()).limits.usd;
    told.push([Number(spent.toFixed(6)), prompts]);
  }
  assert.deepEqual(told, [[0.065, 3], [0.13, 2], [0.195, 1], [0.26, 0]]);
  await assert.rejects(session.prepare(), fails("limit_reached", { field: "limits.usd", message: /have cost \$0\.26, and limits\.usd is \$0\.20/ }));
  await session.append({ role: "user", content: "It can still be appended to." });
  await assert.rejects(session.step([{ role: "user", content: "question 0" }]), fails("limit_reached"));
  await session.close();
});

test("X13: by default it warns once each time the session is opened, and what was spent is stored", async () => {
  const store = memoryStore();
  const options = { id: "s", store, prices: PRICES, limits: { usd: 0.1 } };
  let session = await opened(options);
  const warnings = heard(session);
  for (let nth = 0; nth < 4; nth++) await turn(session, nth);
  assert.deepEqual(warnings.map(({ code }) => code), ["limit_reached"]);
  await session.close();
  session = await opened(options);
  const again = heard(session);
  assert.equal((await session.context.plan()).limits.usd.spent.toFixed(6), "0.260000");
  await session.prepare();
  assert.deepEqual(again.map(({ code }) => code), ["limit_reached"]);
  await session.close();
});

test("X13: prices come from the catalog, and a model without prices is refused when the session is opened", async () => {
  const session = await opened({ model: "gpt-4o", limits: { usd: 1 } });
  session.context.recordUsage({ prompt_tokens: 100_000, completion_tokens: 1_000, prompt_tokens_details: { cached_tokens: 0 } });
  // 2.50 and 10 USD per million.
  assert.equal((await session.context.plan()).limits.usd.spent.toFixed(4), "0.2600");
  await session.close();
  await assert.rejects(opened({ limits: { usd: 1 } }), fails("invalid_option", { field: "limits.usd", message: /give `prices`, or a `model`/ }));
  await assert.rejects(opened({ limits: { onExceed: "throw" } }), fails("invalid_option", { field: "limits.onExceed" }));
  await assert.rejects(compact([], { limits: { usd: 1 } }), fails("invalid_option", { field: "limits" }));
});

test("X13: calls for summaries count, and an app that reports nothing is told", async () => {
  const summarize = async () => ({ text: "## Current Status\nThe parser is built, as the user wants.", usage: { inputTokens: 20_000, outputTokens: 500 } });
  const session = await opened({ prices: PRICES, limits: { usd: 10 }, summarize });
  const warnings = heard(session);
  for (let nth = 0; nth < 6; nth++) {
    await session.append({ role: "user", content: `question ${nth} ${"about the parser ".repeat(200)}` });
    await session.prepare();
    await session.append({ role: "assistant", content: `answer ${nth} ${"about the parser ".repeat(200)}` });
  }
  assert.deepEqual(warnings.map(({ code }) => code), ["invalid_option"]);
  assert.match(warnings[0].message, /context\.recordUsage/);
  assert.equal((await session.compact()).success, true);
  assert.equal((await session.context.plan()).limits.usd.spent.toFixed(3), "0.025");
  await session.close();
});

/** A PNG of 1,280 × 720 pixels in base64 that no other is equal to. */
const png = (nth, bytes = 9_000) => `iVBORw0KGgoAAAANSUhEUgAABQAAAALQCAYAAAA${"A".repeat(bytes)}${String(nth).padStart(8, "0")}`;
const url = (nth, bytes) => `data:image/png;base64,${png(nth, bytes)}`;
const LIMIT = 80_000;

/** In each format: a question with a picture, and an answer. */
const FORMATS = {
  "openai-chat": {
    ask: (nth) => ({ role: "user", content: [{ type: "text", text: `Picture ${nth}?` }, { type: "image_url", image_url: { url: url(nth) } }] }),
    answer: (nth) => ({ role: "assistant", content: `It is ${nth}.` }),
    stub: ({ content: [, part] }) => part,
  },
  "openai-responses": {
    ask: (nth) => ({ type: "message", role: "user", content: [{ type: "input_text", text: `Picture ${nth}?` }, { type: "input_image", detail: "auto", image_url: url(nth) }] }),
    answer: (nth) => ({ role: "assistant", content: `It is ${nth}.` }),
    stub: ({ content: [, part] }) => part,
  },
  anthropic: {
    ask: (nth) => ({ role: "user", content: [{ type: "text", text: `Picture ${nth}?` }, { type: "image", source: { type: "base64", media_type: "image/png", data: png(nth) } }] }),
    answer: (nth) => ({ role: "assistant", content: `It is ${nth}.` }),
    stub: ({ content: [, part] }) => part,
  },
  gemini: {
    ask: (nth) => ({ role: "user", parts: [{ text: `Picture ${nth}?` }, { inlineData: { mimeType: "image/png", data: png(nth) } }] }),
    answer: (nth) => ({ role: "model", parts: [{ text: `It is ${nth}.` }] }),
    stub: ({ parts: [, part] }) => part,
  },
  "ai-sdk": {
    ask: (nth) => ({ role: "user", content: [{ type: "text", text: `Picture ${nth}?` }, { type: "image", image: new Uint8Array(6_000).fill(nth), mediaType: "image/png" }] }),
    answer: (nth) => ({ role: "assistant", content: [{ type: "text", text: `It is ${nth}.` }] }),
    stub: ({ content: [, part] }) => part,
  },
  "ai-sdk, UI": {
    format: "ai-sdk",
    ask: (nth) => ({ id: `q${nth}`, role: "user", parts: [{ type: "text", text: `Picture ${nth}?` }, { type: "file", mediaType: "image/png", filename: `shot ${nth}.png`, url: url(nth) }] }),
    answer: (nth) => ({ id: `a${nth}`, role: "assistant", parts: [{ type: "text", text: `It is ${nth}.` }] }),
    stub: ({ parts: [, part] }) => part,
  },
  langchain: {
    format: langchain,
    ask: (nth) => ({ type: "human", data: { content: [{ type: "text", text: `Picture ${nth}?` }, { type: "image_url", image_url: { url: url(nth) } }] } }),
    answer: (nth) => ({ type: "ai", data: { content: `It is ${nth}.` } }),
    stub: ({ data, content }) => (data?.content ?? content)[1],
  },
};

for (const [name, { format = name, ask, answer, stub }] of Object.entries(FORMATS)) {
  test(`X5: old pictures of ${name} become a text in their place, and the log keeps them`, async () => {
    const store = memoryStore();
    const options = { id: "s", store, format, recall: true, limits: { requestBytes: LIMIT } };
    let session = await opened(options);
    const warnings = heard(session);
    const given = [];
    let [changes, before] = [0, []];
    for (let nth = 0; nth < 20; nth++) {
      given.push(ask(nth));
      await session.append(given.at(-1));
      const { messages } = await session.prepare();
      changes += before.every((message, at) => messages[at] === message) ? 0 : 1;
      before = messages;
      assert.equal(messages.length, given.length);
      assert.equal(messages.at(-1), given.at(-1), "the newest is the app's own");
      if (name !== "ai-sdk") assert.ok(Buffer.byteLength(JSON.stringify(messages)) <= LIMIT);
      given.push(answer(nth));
      await session.append(given.at(-1));
    }
    assert.ok(changes >= 2 && changes <= 10, `${changes} of 20 prompts have another beginning`);
    assert.deepEqual(warnings, []);
    const [entry] = await session.context.explain();
    assert.equal(entry.fate, "offloaded");
    const told = stub(before[0]).text;
    assert.ok(told.startsWith(`Image is at: ${entry.ref} (`), told);
    assert.match(told, /image\/png; .*\d KB; recall_read says what it was\)$/);
    assert.match(await session.recall.read(entry.ref), /^Image of message 0, left out to keep the request small \(.*image\/png/);
    const history = [];
    for await (const message of session.archive.history()) history.push(message);
    assert.deepEqual(history, given);
    assert.deepEqual(await session.archive.verify(), { ok: true, problems: [] });
    const bytes = (await session.context.plan()).limits.requestBytes;
    assert.deepEqual([bytes.limit, bytes.bytes <= LIMIT, bytes.after], [LIMIT, true, bytes.bytes]);
    await session.close();
    session = await opened(options);
    const again = (await session.prepare()).messages.slice(0, -1);
    // Of a format of its own the messages have another form when they are read back.
    if (typeof format === "string") assert.deepEqual(again, before);
    else assert.equal(stub(again[0]).text, told);
    await session.close();
  });
}

test("X5: the bytes that count are those of the messages as JSON", async () => {
  const session = await opened({ format: "openai-chat", limits: { requestBytes: 1_000_000 } });
  await session.append(FORMATS["openai-chat"].ask(1), { role: "assistant", content: "Größe: 1 Bild – ≈ 🖼" }, { role: "user", content: 'Say "so".\n' });
  const { messages } = await session.prepare();
  const { bytes } = (await session.context.plan()).limits.requestBytes;
  assert.equal(bytes, Buffer.byteLength(JSON.stringify(messages)));
  await session.close();
});

test("X5: undo brings the pictures back, and a receipt is verified by the archive alone", async () => {
  const { ask, answer } = FORMATS.anthropic;
  const session = await opened({ format: "anthropic", limits: { requestBytes: LIMIT } });
  const given = [];
  for (let nth = 0; nth < 10; nth++) given.push(ask(nth), answer(nth));
  await session.append(...given);
  const { edits } = await session.prepare();
  assert.deepEqual(edits.map(({ kind }) => kind), ["media"]);
  assert.match(edits[0].detail, /^\d images or documents$/);
  const lines = await new Response(session.archive.jsonl()).text();
  const [receipt] = await compactionReceipts(lines);
  assert.deepEqual(receipt.steps, ["media"]);
  assert.deepEqual(await verifyReceipt(receipt, lines), { ok: true, problems: [] });
  await session.snapshots.undo();
  assert.deepEqual((await session.context.explain()).map(({ fate }) => fate), given.map(() => "verbatim"));
  await session.close();
});

test("X5: where the newest picture alone is too large, onExceed decides", async () => {
  for (const onExceed of ["warn", "throw"]) {
    const session = await opened({ format: "openai-chat", limits: { requestBytes: 5_000, onExceed } });
    const warnings = heard(session);
    await session.append(FORMATS["openai-chat"].ask(0));
    const prepared = session.prepare();
    if (onExceed === "throw") await assert.rejects(prepared, fails("limit_reached", { field: "limits.requestBytes", message: /9,\d{3} bytes as JSON, limits\.requestBytes is 5,000/ }));
    else assert.equal((await prepared).messages.length, 1);
    assert.deepEqual(warnings.map(({ code }) => code), onExceed === "warn" ? ["limit_reached"] : []);
    await session.close();
  }
});

test("X5: a session of screenshots that grows to 33 MB goes on below the provider's limit", async () => {
  // One task of the user, then a screenshot of 550 KB at each of 60 steps, as openai/codex#41338 has it.
  const session = await opened({ format: "openai-responses", recall: true, contextWindow: 400_000, limits: { requestBytes: 20_000_000, onExceed: "throw" } });
  const item = (fields) => session.append(fields);
  await item({ role: "user", content: "Click through the whole settings page and tell me what is broken." });
  let [sum, changes, before] = [0, 0, []];
  for (let nth = 0; nth < 60; nth++) {
    const shot = { type: "function_call_output", call_id: `call_${nth}`, output: [{ type: "input_text", text: `Page ${nth}` }, { type: "input_image", detail: "auto", image_url: url(nth, 550_000) }] };
    sum += JSON.stringify(shot).length;
    await item({ type: "function_call", call_id: `call_${nth}`, name: "screenshot", arguments: "{}" });
    await item(shot);
    const { messages } = await session.prepare();
    assert.ok(Buffer.byteLength(JSON.stringify(messages)) <= 20_000_000);
    assert.equal(messages.at(-1), shot, "the newest is shown");
    changes += before.every((message, at) => messages[at] === message) ? 0 : 1;
    before = messages;
  }
  assert.ok(sum > 33_000_000, String(sum));
  assert.ok(changes <= 4, `${changes} of 60 prompts have another beginning`);
  await session.close();
});
