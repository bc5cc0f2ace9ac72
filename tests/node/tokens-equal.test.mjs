/** Z16, P27: what the package estimates in JavaScript is what the engine estimates: the same integers, and the same errors. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { estimateTokens, estimateTokensDetailed, loadTokenizer, ready } from "context-compactor/tokens";
import { files, load } from "../conformance/vectors.mjs";
import { generator, samples } from "../support/corpus.mjs";
import { detailed, texts } from "../support/engine-tokens.mjs";
import { FORMATS, exchanges } from "../support/histories.mjs";
import { mutated } from "../support/mutated.mjs";
import { transcripts } from "../support/transcripts.mjs";
import { random as trouble } from "../support/unicode.mjs";

const MODELS = ["gpt-5", "gpt-4-turbo", "claude-3-5-haiku", "claude-opus-4-8", "gemini-3-pro", "llama-3.3-70b", "qwen3-coder"];
await Promise.all(MODELS.map((model) => ready({ model })));

/** What a call returns, or the error that it throws. */
function outcome(call) {
  try {
    return call();
  } catch (error) {
    if (error.name !== "CompactionError") throw error;
    const { code, index, field } = error;
    return { code, index, field };
  }
}

function sameAsEngine(input, options) {
  const [ours, theirs] = [estimateTokensDetailed, detailed].map((estimate) => outcome(() => estimate(input, options)));
  assert.deepEqual(ours, theirs, `${JSON.stringify(options)} ${JSON.stringify(input).slice(0, 2_000)}`);
  assert.deepEqual(Object.keys(ours.byRole ?? {}), Object.keys(theirs.byRole ?? {}));
  return ours;
}

const options = (random) => ({ ...(random(8) === 0 ? { estimator: "chars4" } : {}), model: MODELS[random(MODELS.length)] });

test("100,000 random texts", () => {
  const random = generator(16);
  let tokens = 0;
  for (let nth = 0; nth < 100_000; nth++) {
    const units = () => String.fromCharCode(...Array.from({ length: random(9) }, () => random(random(3) ? 0x10000 : 0x100)));
    const text = (nth % 2 === 0 ? trouble(random) : "") + (random(3) === 0 ? units() : "");
    tokens += sameAsEngine(text, options(random)).tokens;
  }
  assert.ok(tokens > 1_000_000, `${tokens} tokens`);
});

test("texts of every kind, whole and in slices, in every family", () => {
  for (const { text } of samples(660)) {
    for (const model of MODELS) {
      const { tokens } = sameAsEngine(text, { model });
      assert.equal(estimateTokens(text, { model }), tokens);
    }
    const joined = `${text.slice(0, 31)}${text.slice(99)}`;
    assert.equal(estimateTokens(joined), detailed(joined, {}).tokens);
  }
});

/** ASCII punctuation, and what rules and bars are drawn with. */
const SIGNS = [..."!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", ..."─━═█░…—★"];

test("P22: a run of one character is off by a tenth or two tokens, at every length up to 1,000", async () => {
  const tokenizer = await loadTokenizer(import("context-compactor-vocabularies/o200k_base"));
  const off = [];
  for (const sign of SIGNS) {
    for (let times = 1; times <= 1_000; times++) {
      const text = sign.repeat(times);
      const [exact, estimate] = [tokenizer.count(text), estimateTokens(text)];
      if (Math.abs(estimate - exact) > Math.max(2, exact / 10)) off.push(`${sign} x ${times}: ${estimate} for ${exact}`);
    }
  }
  assert.deepEqual(off, []);
});

test("P22: runs cost the same wherever they are, here and in the engine", () => {
  const random = generator(22);
  const signs = [...SIGNS, "\n", " ", "\0", "a", "7", "é", "字", "😀", "\ud800"];
  for (let nth = 0; nth < 20_000; nth++) {
    const runs = Array.from({ length: 1 + random(5) }, () => signs[random(signs.length)].repeat(1 + random(random(4) === 0 ? 200 : 12)));
    sameAsEngine(runs.join(""), { model: MODELS[random(MODELS.length)] });
  }
});

test("P27: short texts and long ones cost what the engine says, however the host keeps them", () => {
  const random = generator(277);
  const signs = ["a", "the ", "0123456789", "\n", "-", "é", "字", "─", "😀", "\ud800", "\udc00"];
  const part = (length) => {
    let text = "";
    while (text.length < length) text += signs[random(signs.length)].repeat(1 + random(random(9) === 0 ? 60 : 3));
    return text.slice(0, length);
  };
  const ways = [
    (text) => text,
    // A slice, a join that was never made one, and one that was.
    (text) => `xx${text}`.slice(2),
    (text) => text.slice(0, text.length >> 1) + text.slice(text.length >> 1),
    (text) => JSON.parse(JSON.stringify(text)),
    (text) => Object.keys({ [`${text}x`]: 1 })[0].slice(0, -1),
  ];
  // Where short ends, and around the ends of pieces, with half of a pair before, at and behind them.
  const lengths = [47, 48, 49, 16_383, 16_384, 16_385, 32_767, 32_768, 32_769];
  for (let nth = 0; nth < 900; nth++) {
    const text = part(nth < 450 ? lengths[nth % lengths.length] : 1 + random(100));
    sameAsEngine(ways[nth % ways.length](text), { model: MODELS[random(MODELS.length)] });
  }
  for (const before of ["a", "字"]) {
    for (let at = 16_380; at < 16_390; at++) sameAsEngine(`${before.repeat(at)}😀😀😀${"─".repeat(40)}\ud83d`, {});
  }
});

/** Histories of each format that are valid, and some that are not. */
function seeds() {
  const vectors = files.flatMap((name) => load(name).map(({ messages, format }) => ({ messages, format })));
  const agents = FORMATS.map((format) => ({ format, messages: exchanges(format, 2) }));
  return [...vectors, ...agents].filter(({ messages }) => Array.isArray(messages) && messages.length > 0);
}

test("every conformance vector, with its format and without", () => {
  assert.ok(seeds().length > 200, `${seeds().length}`);
  for (const { messages, format } of seeds()) {
    for (const model of MODELS) {
      sameAsEngine(messages, { model });
      for (const given of [format, ...FORMATS]) sameAsEngine(messages, { model, ...(given === undefined ? {} : { format: given }) });
    }
    for (const message of messages) sameAsEngine(message, {});
  }
});

test("messages of which anything was changed, in every format and in none", () => {
  const random = generator(27);
  const all = seeds();
  const seen = new Map();
  for (let nth = 0; nth < 60_000; nth++) {
    const { messages } = mutated(all[random(all.length)], all[random(all.length)], random);
    const format = random(2) === 0 ? {} : { format: FORMATS[random(FORMATS.length)] };
    const { code = "counted" } = sameAsEngine(messages, { ...options(random), ...format });
    seen.set(code, (seen.get(code) ?? 0) + 1);
  }
  for (const code of ["counted", "invalid_message", "unknown_format"]) assert.ok(seen.get(code) > 3_000, `${code}: ${seen.get(code)}`);
});

test("an exact count of messages has the engine's texts, and its rules for the rest", async () => {
  const tokenizer = await loadTokenizer(import("context-compactor-vocabularies/o200k_base"));
  const exactly = (messages, options) => {
    const found = texts(messages, options);
    return found.texts.reduce((sum, text) => sum + tokenizer.count(text), found.byRule);
  };
  const random = generator(5);
  const all = seeds();
  for (let nth = 0; nth < 3_000; nth++) {
    const { messages } = nth < all.length ? all[nth] : mutated(all[random(all.length)], all[random(all.length)], random);
    const format = random(2) === 0 ? {} : { format: FORMATS[random(FORMATS.length)] };
    const [ours, theirs] = [tokenizer.countMessages, exactly].map((count) => outcome(() => count(messages, format)));
    assert.deepEqual(ours, theirs, JSON.stringify(messages));
  }
});

for (const kind of ["openai", "anthropic", "responses", "wire", "probes"]) {
  test(`every recorded message of ${kind}`, (context) => {
    const folder = new URL(`../../../shared/data/core/${kind}/`, import.meta.url);
    const names = listed(folder);
    if (names.length === 0) return context.skip("no recorded messages here");
    let messages = 0;
    for (const name of names) {
      for (const record of transcripts(`core/${kind}/${name}`)) {
        for (const history of historiesIn(record)) {
          messages += history.length;
          sameAsEngine(history, { model: MODELS[messages % MODELS.length] });
          for (const message of history) sameAsEngine(message, {});
        }
      }
    }
    assert.ok(messages > 0);
  });
}

function listed(folder) {
  try {
    return readdirSync(folder).filter((name) => name.endsWith(".jsonl.gz")).map((name) => name.slice(0, -9));
  } catch {
    return [];
  }
}

/** Lists of messages, wherever a record has them. */
function historiesIn(value) {
  if (typeof value !== "object" || value === null) return [];
  const isMessage = (item) => typeof item === "object" && item !== null && ("role" in item || "parts" in item || "type" in item);
  if (Array.isArray(value) && value.length > 0 && value.every(isMessage)) return [value];
  return Object.values(value).flatMap(historiesIn);
}

test("models are of the engine's families, and a name that says nothing is refused with the same names", () => {
  const random = generator(11);
  const words = "gpt- gpt claude claude- opus sonnet 4 -4 .5 -7 -6 -20250514 @ / o1 o3 o 0 9 3.5 -turbo llama llama- 2 3 -4 qwen gemini gemma anthropic/ us. mini instant text-embedding- phi phi- 4o İ K - _ . mistral v1:0 x".split(" ");
  for (let nth = 0; nth < 20_000; nth++) {
    const model = Array.from({ length: 1 + random(5) }, () => words[random(words.length)]).join("");
    const expected = outcome(() => detailed("", { model }).family);
    const found = outcome(() => estimateTokensDetailed("", { model }).family);
    assert.deepEqual(found, expected, model);
  }
  for (const model of ["gtp-4o", "cluade-sonnet-4-5", "gemni", "unknown-model-of-nobody", 'a"b', "o3mini", "x".repeat(99)]) {
    const [ours, theirs] = [estimateTokensDetailed, detailed].map((estimate) => {
      try {
        estimate("", { model });
      } catch ({ code, message }) {
        return [code, message];
      }
    });
    assert.deepEqual(ours, theirs, model);
  }
});
