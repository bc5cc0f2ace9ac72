/** The calibrated estimator: one count, whoever counts, and a family of tokenizers for each model. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { estimateTokens, openSession } from "../support/offload.mjs";
import { chat, fails } from "../support/api.mjs";
import { generator, samples } from "../support/corpus.mjs";

/** A model of each family. */
const MODELS = {
  o200k: "gpt-5.1",
  cl100k: "gpt-4-turbo",
  claude3: "claude-sonnet-4-5-20250929",
  claude47: "claude-opus-4-8",
  gemini: "gemini-3-pro",
  llama3: "llama-3.3-70b",
  qwen3: "qwen3-coder",
};
const models = Object.values(MODELS);

/** The engine's count of a text, which is that of a message without the message's frame. */
function counted(text, model) {
  const tokens = (content) => estimateTokens({ role: "user", content }, { model, format: "openai-chat" });
  return tokens(text) - tokens("");
}

const sameAsCounted = (text, model) =>
  assert.equal(estimateTokens(text, { model }), counted(text, model), `${model}: ${JSON.stringify(text.slice(0, 99))}`);

test("a short text, which JavaScript counts, costs what the engine counts", () => {
  const random = generator(7);
  const ranges = [0x20, 0x80, 0x250, 0x800, 0x3100, 0xa000, 0x10000, 0x20000, 0x110000];
  for (let nth = 0; nth < 3_000; nth++) {
    const below = ranges[random(ranges.length)];
    const codes = Array.from({ length: 1 + random(16) }, () => random(random(3) ? below : 0x80));
    const text = String.fromCodePoint(...codes).slice(0, 32);
    sameAsCounted(text.replace(/\p{Surrogate}/gu, "\ufffd"), models[nth % models.length]);
  }
  for (const { text } of samples(660)) for (const model of models) sameAsCounted(text.slice(0, 31).trimEnd(), model);
});

test("a lone surrogate costs what U+FFFD costs, in short texts and long ones", () => {
  for (const text of ["\ud800", "a\udc00b", "\ud83d\ud83d\udc4d", "\udc4d\ud83d", "x\ud83d"]) {
    for (const long of [text, text.repeat(99)]) {
      const replaced = long.replace(/\p{Surrogate}/gu, "\ufffd");
      for (const model of models) assert.equal(estimateTokens(long, { model }), estimateTokens(replaced, { model }));
    }
  }
});

test("a long text comes to the engine in parts, and no part ends within a pair", () => {
  for (const unit of ["👍", "上下文 window ", "a"]) {
    for (const shift of ["", "x"]) {
      const text = shift + unit.repeat(150_000 / unit.length);
      for (const model of models.slice(0, 2)) sameAsCounted(text, model);
      assert.equal(estimateTokens(text, { estimator: "chars4" }), Math.floor(([...text].length + 2) / 4));
    }
  }
});

test("models are of families, and a name whose tokenizer is of none of them is of the default one", () => {
  const code = readFileSync(new URL(import.meta.url), "utf8");
  const sizes = new Set(models.map((model) => estimateTokens(code, { model })));
  assert.equal(sizes.size, models.length);
  for (const model of ["mistral-large", "openai/o4-mini", "o3"]) assert.equal(estimateTokens(code, { model }), estimateTokens(code));
  assert.ok(estimateTokens(code, { model: MODELS.claude47 }) > estimateTokens(code, { model: MODELS.claude3 }));
  assert.equal(estimateTokens(code, { estimator: "chars4", model: MODELS.claude47 }), Math.floor(([...code].length + 2) / 4));
  assert.throws(() => estimateTokens(code, { model: 5 }), fails("invalid_option", { field: "model" }));
  assert.throws(() => estimateTokens(chat(1), { model: 5 }), fails("invalid_option", { field: "model" }));
});

test("more models than are remembered", () => {
  for (let nth = 0; nth < 250; nth++) assert.equal(estimateTokens("Hello", { model: `gpt-5.${nth}` }), estimateTokens("Hello"));
});

test("a session counts as estimateTokens does for its model", async () => {
  for (const model of models) {
    const messages = chat(5);
    const session = await openSession({ store: "memory", model, contextWindow: 200_000 });
    await session.append(...messages);
    assert.equal(session.context.usage().usedTokens, estimateTokens(messages, { model, format: session.context.format }), model);
    await session.close();
  }
});

test("S3.11: chars4 is an estimator: a quarter of the characters, ties up, however long their encoding is", async () => {
  const tokens = (text) => estimateTokens(text, { estimator: "chars4" });
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6, 7, 8].map((length) => tokens("x".repeat(length))), [0, 0, 1, 1, 1, 1, 2, 2, 2]);
  for (const one of ["x", "字", "👍", "é"]) assert.equal(tokens(one.repeat(4_000)), 1_000, one);
  const used = async (content) => {
    const session = await openSession({ store: "memory", contextWindow: 32_000, advanced: { estimator: "chars4" } });
    await session.append({ role: "user", content });
    const { usedTokens } = session.context.usage();
    await session.close();
    return usedTokens;
  };
  assert.equal((await used("字".repeat(4_000))) - (await used("字".repeat(400))), 900, "in a session too");
});
