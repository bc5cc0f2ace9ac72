/** Facts about models, from the catalogue that the package brings. No number of it is written here: what is asserted is
 *  that the package takes over what the catalogues themselves say. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { calcPrice } from "@pydantic/genai-prices";
import { compact, modelFacts, openSession, planCompaction } from "../support/offload.mjs";
import { resolve } from "llm-zoo";
import { chat, fails, frozen, summariser } from "../support/api.mjs";

const root = new URL("../../", import.meta.url);
const open = (options) => openSession({ store: "memory", ...options });
const buffer = ({ categories }) => categories.find(({ kind }) => kind === "buffer").tokens;

/** What a fresh process prints: there nothing was loaded before. */
async function fresh(code) {
  const script = `import * as library from "context-compactor"; ${code}`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
    cwd: fileURLToPath(new URL("tests", root)),
  });
  return stdout.trim();
}

test("the facts of a model are those of the catalogues", async () => {
  for (const name of ["claude-sonnet-5", "gpt-5.6-sol", "gemini-2.5-flash"]) {
    const facts = await modelFacts(name);
    const { model, model_price: price, provider } = calcPrice({}, name);
    assert.deepEqual([facts.model, facts.provider, facts.contextWindow], [model.id, provider.id, model.context_window]);
    assert.equal(facts.maxOutputTokens, resolve(name).maxOutputTokens);
    const base = (unit) => (typeof unit === "object" ? unit.base : unit);
    const { tiers, ...prices } = facts.prices;
    const expected = { input: base(price.input_mtok), output: base(price.output_mtok), cacheRead: base(price.cache_read_mtok) };
    if (price.cache_write_mtok) expected.cacheWrite = base(price.cache_write_mtok);
    assert.deepEqual(prices, expected);
    assert.ok(prices.cacheRead < prices.input && prices.input < prices.output);
    assert.equal(tiers !== undefined, typeof price.input_mtok === "object");
  }
});

test("tiers say what a larger prompt costs, as the catalogue reckons it", async () => {
  const { prices, contextWindow } = await modelFacts("gpt-5.6-sol");
  const [tier] = prices.tiers;
  assert.ok(tier.above > 0 && tier.above < contextWindow);
  for (const [input_tokens, price] of [[tier.above, prices], [tier.above + 1, tier]]) {
    const { input_price, output_price } = calcPrice({ input_tokens, output_tokens: 1_000 }, "gpt-5.6-sol");
    assert.ok(Math.abs(input_price - (input_tokens * price.input) / 1e6) < 1e-9);
    assert.ok(Math.abs(output_price - (1_000 * price.output) / 1e6) < 1e-9);
  }
});

test("a model is found by the names that providers and gateways have for it", async () => {
  const { source, ...plain } = await modelFacts("gpt-4o");
  for (const name of ["openai/gpt-4o", "openai:gpt-4o", "gpt-4o-2024-08-06", "GPT-4o"]) {
    const { source: same, ...facts } = await modelFacts(name);
    assert.deepEqual([facts, same], [plain, source], name);
  }
  const gemini = await modelFacts("gemini-2.5-pro");
  assert.deepEqual(await modelFacts("models/gemini-2.5-pro"), gemini);
  // Where one catalogue has no window the other has.
  assert.equal(calcPrice({}, "gemini-2.5-pro").model.context_window, undefined);
  assert.equal(gemini.contextWindow, resolve("gemini-2.5-pro").contextWindow);
});

test("the versions that the facts name are those that were installed", async () => {
  const { devDependencies } = JSON.parse(readFileSync(new URL("package.json", root), "utf8"));
  const named = ["@pydantic/genai-prices", "llm-zoo"].map((name) => `${name} ${devDependencies[name]}`).join(", ");
  assert.equal((await modelFacts("gpt-4o")).source, named);
});

test("S5.12: an unknown model is an error that says what to do and names what is nearly called so", async () => {
  const unknown = fails("unknown_model", {
    field: "model",
    message: /^Model not found: cluade-sonnet-5\. Give contextWindow, or the name .*, such as claude-sonnet-5, /,
  });
  const model = "cluade-sonnet-5";
  await assert.rejects(modelFacts(model), unknown);
  await assert.rejects(open({ model }), unknown);
  await assert.rejects(compact(chat(10), { model }), unknown);
  await assert.rejects(() => planCompaction(chat(10), { model }), unknown);
  await assert.rejects(modelFacts("夜間モデル七号機試作"), fails("unknown_model", { message: /that the catalogue has$/ }));
  for (const wrong of ["", "  ", undefined, 7]) await assert.rejects(modelFacts(wrong), fails("invalid_option", { field: "model" }));
});

test("a session takes window and answer from the model", async () => {
  const { contextWindow, maxOutputTokens } = await modelFacts("gpt-4o");
  assert.ok(maxOutputTokens < 20_000, "the most that is kept free by default");
  const usage = (await open({ model: "gpt-4o" })).context.usage();
  assert.deepEqual([usage.maxTokens, buffer(usage)], [contextWindow, maxOutputTokens]);
  const own = (await open({ model: "gpt-4o", maxOutputTokens: 5_000 })).context.usage();
  assert.deepEqual([own.maxTokens, buffer(own)], [contextWindow, 5_000]);
  for (const [preset, kept] of [
    ["react", maxOutputTokens],
    ["layered", maxOutputTokens],
    ["factor3", maxOutputTokens],
    ["checkpoint", 1_000],
  ]) {
    const other = (await open({ model: "gpt-4o", preset })).context.usage();
    assert.deepEqual([other.maxTokens, buffer(other)], [contextWindow, kept], preset);
  }
});

test("S3.2: the threshold follows the model", async () => {
  const { contextWindow, maxOutputTokens } = await modelFacts("claude-haiku-4-5");
  assert.ok(maxOutputTokens > 20_000);
  const { threshold } = (await open({ model: "claude-haiku-4-5", preset: "layered" })).context.usage();
  assert.equal(threshold, contextWindow - 20_000 - 13_000);
});

test("compact and planCompaction take the window from the model too", async () => {
  const history = frozen(chat(400));
  const options = { preset: "factor3", model: "gpt-4o" };
  const { contextWindow } = await modelFacts("gpt-4o");
  const of = async (given) => (await planCompaction(history, { preset: "factor3", ...given })).limit;
  assert.equal(await of(options), await of({ contextWindow, maxOutputTokens: 1_000 }));
  assert.notEqual(await of(options), await of({}));
  const summarize = summariser();
  const result = await compact(history, { ...options, summarize });
  assert.deepEqual([result.success, summarize.calls[0].request.model], [true, "gpt-4o"]);
});

test("planCompaction loads the facts by itself", async () => {
  assert.equal(await fresh('console.log(typeof (await library.planCompaction([], { model: "gpt-4o" })).limit)'), "number");
});

test("with contextWindow nothing is looked up: any model will do, and the defaults are those of old", async () => {
  const usage = (await open({ model: "a-model-of-mine", contextWindow: 32_000 })).context.usage();
  assert.deepEqual([usage.maxTokens, buffer(usage)], [32_000, 8_000]);
  // The catalogue is not even loaded.
  const code = `const { register } = await import("node:module");
    register("data:text/javascript,export async function resolve(path, context, next) { if (path.endsWith('catalogue.js')) throw new Error('asked for'); return next(path, context); }");
    const options = { store: "memory", model: "a-model-of-mine", contextWindow: 32_000 };
    await library.openSession(options);
    await library.compact([{ role: "user", content: "Hello" }], { ...options, store: undefined });
    try { await library.planCompaction([], { model: "gpt-4o" }) } catch (error) { console.log(error.code) }`;
  assert.equal(await fresh(code), "unknown_model");
});

test("without model and contextWindow the window is the presets' own", async () => {
  const usage = (await open({})).context.usage();
  assert.deepEqual([usage.maxTokens, buffer(usage)], [200_000, 16_384]);
});

test("S5.12: profiles say what a model takes, so the catalogue is not asked", async () => {
  const profiles = [{ model: "llama3:7b", size: 200_000, share: 0.85 }];
  const usage = (await open({ preset: "checkpoint", model: "llama3:7b", presetOptions: { profiles } })).context.usage();
  assert.equal(usage.maxTokens, 170_000);
});
