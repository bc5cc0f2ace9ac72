/** Recognising "the prompt was too long", as the clients of providers report it. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { CompactionError, isContextOverflow } from "context-compactor";
import { CODES, MESSAGES, OTHER } from "../../pkg/dist/generated/overflow.js";
import { generator } from "../support/random.mjs";

const error = (message, fields) => Object.assign(new Error(message), fields);
const openai = { message: "This model's maximum context length is 128000 tokens.", code: "context_length_exceeded" };
const anthropic = { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" };

const OVERFLOWS = {
  "the openai package": error(`400 ${openai.message}`, {
    status: 400,
    code: openai.code,
    type: "invalid_request_error",
    error: openai,
  }),
  "the openai package, by the code alone": error("400 Bad request", { status: 400, code: openai.code }),
  "the Anthropic SDK": error("400 …", { status: 400, error: { type: "error", error: anthropic } }),
  "the AI SDK": error("Bad Request", {
    name: "AI_APICallError",
    statusCode: 400,
    responseBody: JSON.stringify({ error: openai }),
    data: { error: openai },
  }),
  "the AI SDK after retries": error("Failed after 3 attempts.", {
    lastError: error("Bad Request", { statusCode: 400, data: { type: "error", error: anthropic } }),
  }),
  "an HTTP client": error("Request failed with status code 400", { response: { status: 400, data: { error: openai } } }),
  "AWS": error("Input is too long for requested model.", {
    name: "ValidationException",
    $metadata: { httpStatusCode: 400 },
  }),
  "a wrapping error": new Error("the agent failed", { cause: error("400", { status: 400, error: openai }) }),
  "Gemini, as text": '{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}',
  "a body": { error: openai },
  "a status of its own": { status: 413 },
};

for (const [name, thrown] of Object.entries(OVERFLOWS)) {
  test(`isContextOverflow recognises an error of ${name}`, () => {
    assert.equal(isContextOverflow(thrown), true);
  });
}

const itself = { status: 400, message: "bad" };
itself.cause = itself;
const OTHERS = {
  "a rate limit that speaks of tokens": error("Rate limit reached: too many tokens. Limit 30000 TPM", { status: 429 }),
  "a rate limit around an overflow's words": { status: 429, error: { message: "maximum context length" } },
  "a server's error": error("Internal error", { status: 500 }),
  "a wrong key": error("Incorrect API key", { status: 401, code: "invalid_api_key" }),
  "a network error": error("fetch failed", { cause: error("ECONNREFUSED", { code: "ECONNREFUSED" }) }),
  "an error of this library": new CompactionError("context_overflow", "the context window is exceeded"),
  "an error that causes itself": itself,
  "something that cannot be looked into": new Proxy({}, { get: () => { throw new Error("no"); } }),
  "undefined": undefined,
  "null": null,
  "a number": 413,
  "an empty text": "",
};

for (const [name, thrown] of Object.entries(OTHERS)) {
  test(`isContextOverflow does not take ${name} for one`, () => {
    assert.equal(isContextOverflow(thrown), false);
  });
}

test("F27: short texts are known, and an integration adds its own", () => {
  for (const text of ["Context limit exceeded", "Prompt too long", "Token limit reached", "Maximum context size exceeded"]) {
    assert.equal(isContextOverflow(text), true, text);
    assert.equal(isContextOverflow(error(text, { status: 400 })), true, text);
  }
  const own = { patterns: ["The page is full"] };
  assert.equal(isContextOverflow(error("the page is FULL")), false);
  assert.equal(isContextOverflow(error("the page is FULL"), own), true);
  assert.equal(isContextOverflow({ error: { message: "Bad: the page is full." } }, own), true);
  for (const patterns of ["full", [5], [""], [/full/]]) {
    assert.throws(() => isContextOverflow("x", { patterns }), { code: "invalid_option", field: "patterns" });
  }
});

test("Z16: what a page says without the engine is what the engine says", () => {
  // `overflow_texts.rs` holds the engine to the same rows.
  const random = generator(16);
  const one = (list) => list[random(list.length)];
  const cased = (text) => one([text, text.toUpperCase(), text.replace(/\b./g, (first) => first.toUpperCase())]);
  const words = [...MESSAGES.flat(), ...OTHER, "İstanbul", "ΣΑΣ", "\ufffd", "400", "tokens > 200000 maximum"];
  const text = () => Array.from({ length: random(4) }, () => cased(one(words))).join(one([" ", ": ", "", "\n"]));
  const rows = Array.from({ length: 1_000 }, () => {
    const status = one([0, 0, 400, 400, 413, 429, 499, 500, 503, 599, 600]);
    const code = one(["", "", cased(one(CODES)), one(CODES).slice(1), "rate_limit_exceeded"]);
    const message = one([text(), cased(one(MESSAGES).join(" and "))]);
    const patterns = random(8) === 0 ? [cased(one(words))] : [];
    return [status, code, message, patterns, isContextOverflow({ ...(status && { status }), code, message }, { patterns })];
  });
  const fixture = new URL("../fixtures/overflow.json", import.meta.url);
  if (process.env.BLESS === "1") writeFileSync(fixture, `[\n${rows.map((row) => JSON.stringify(row)).join(",\n")}\n]\n`);
  assert.deepEqual(rows, JSON.parse(readFileSync(fixture, "utf8")), "run with BLESS=1 and then the tests of the core");
  const said = rows.filter(([, , , , is]) => is).length;
  assert.ok(Math.min(said, rows.length - said) > 100, String(said));
});
