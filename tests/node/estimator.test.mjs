/** The calibrated estimator: one count, whoever counts, and a family of tokenizers for each model. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { estimateTokens, estimateTokensDetailed, openSession, ready } from "../support/offload.mjs";
import { chat, fails } from "../support/api.mjs";

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

test("Z16: a family whose table is not there is told with the call that loads it, and the default one is there at once", async () => {
  for (const model of models.slice(1)) {
    const refused = fails("not_ready", { field: "model", message: new RegExp(`await ready\\(\\{ model: "${model}" \\}\\)`) });
    for (const input of ["Hello", { role: "user", content: "Hello" }]) {
      assert.throws(() => estimateTokens(input, { model }), refused);
      assert.throws(() => estimateTokensDetailed(input, { model }), refused);
    }
    assert.equal(estimateTokens("Hello", { model, estimator: "chars4" }), 1);
  }
  await ready();
  await ready({ model: models[0] });
  assert.throws(() => estimateTokens("Hello", { model: models[1] }), fails("not_ready"));
  assert.equal(estimateTokensDetailed("Hello", { model: models[0] }).family, "o200k");
  await Promise.all(models.map((model) => ready({ model })));
  for (const [family, model] of Object.entries(MODELS)) assert.equal(estimateTokensDetailed("Hello", { model }).family, family);
  await assert.rejects(ready({ model: "gtp-4o" }), fails("unknown_model", { message: /gpt-4o/ }));
  await assert.rejects(ready({ model: 5 }), fails("invalid_option", { field: "model" }));
  await assert.rejects(ready({ modle: "gpt-4o" }), fails("invalid_option", { field: "modle" }));
});

test("a lone surrogate costs what U+FFFD costs, in short texts and long ones", () => {
  for (const text of ["\ud800", "a\udc00b", "\ud83d\ud83d\udc4d", "\udc4d\ud83d", "x\ud83d"]) {
    for (const long of [text, text.repeat(99)]) {
      const replaced = long.replace(/\p{Surrogate}/gu, "\ufffd");
      for (const model of models) assert.equal(estimateTokens(long, { model }), estimateTokens(replaced, { model }));
    }
  }
});

test("models are of families, and a name whose tokenizer is of none of them is of the default one", () => {
  const code = readFileSync(new URL(import.meta.url), "utf8").repeat(2);
  const sizes = new Set(models.map((model) => estimateTokens(code, { model })));
  assert.equal(sizes.size, models.length);
  for (const model of ["mistral-large", "openai/o4-mini", "o3"]) assert.equal(estimateTokens(code, { model }), estimateTokens(code));
  assert.ok(estimateTokens(code, { model: MODELS.claude47 }) > estimateTokens(code, { model: MODELS.claude3 }));
  assert.equal(estimateTokens(code, { estimator: "chars4", model: MODELS.claude47 }), Math.floor(([...code].length + 2) / 4));
  assert.throws(() => estimateTokens(code, { model: 5 }), fails("invalid_option", { field: "model" }));
  assert.throws(() => estimateTokens(chat(1), { model: 5 }), fails("invalid_option", { field: "model" }));
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
