/** Which call takes which option: what a call has no use for, it refuses, and says what to do. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, importSession, memoryStore, openSession, planCompaction } from "context-compactor";
import { chat, fails, summariser } from "../support/api.mjs";

/** A value of each option that says something. */
const EVERY = {
  preset: "offload",
  format: "openai-chat",
  model: "gpt-4o",
  summaryModel: "gpt-4o-mini",
  summaryContextWindow: 20_000,
  longHistory: "clip",
  contextWindow: 50_000,
  maxOutputTokens: 2_000,
  trigger: { tokens: 40_000 },
  prices: { input: 1, output: 2 },
  keep: { messages: 3 },
  reserveTokens: 100,
  estimator: "chars4",
  summarize: summariser(),
  summarizeResult: summariser(),
  provider: { kind: "openai", model: "m" },
  fallback: "extractive",
  retryCount: 1,
  concurrency: 2,
  timeoutMs: 5_000,
  signal: new AbortController().signal,
  tokenCounter: (messages) => JSON.stringify(messages).length / 4,
  pinned: () => false,
  pinProposals: "off",
  readFile: async () => "text",
  onProgress: () => {},
  logger: () => {},
  runtime: { now: () => 1, id: () => "id" },
  redactSecrets: false,
  redact: (text) => text,
  instructions: "Be short.",
  prefixMismatchBehavior: "drop_block",
  offload: { minChars: 100 },
  react: { chunkSize: 40_000 },
  layered: { keepRecent: 2 },
  factor3: { snippetChars: 100 },
  checkpoint: { mergeCount: 3 },
  mode: "DEBUGGER",
  goal: { id: "g", description: "Ship it." },
  level: 2,
};

/** Those of a session, and a word of the remedy where another call refuses it. */
const SESSION = {
  id: ["chat-1", /openSession/],
  store: [memoryStore(), /openSession/],
  systemPrompt: ["Be kind.", /reserveTokens/],
  watermark: [{ get: () => undefined, set: () => {} }, /openSession/],
  background: [true, /openSession/],
  limits: [{ storeTimeoutMs: 5_000 }, /openSession/],
};
const OPENING = { parent: ["other", /openSession/], acceptDataLoss: [true, /openSession/], mustExist: [true, /openSession/] };

const archive = await (async () => {
  const session = await openSession({ store: "memory" });
  await session.append(...chat(2));
  const lines = await new Response(session.archive.jsonl()).text();
  await session.close();
  return lines;
})();

const closed = async (opened) => (await opened).close();
const CALLS = {
  compact: async (options) => void (await compact(chat(2), options)),
  planCompaction: async (options) => void planCompaction(chat(2), { contextWindow: 50_000, ...options }),
  openSession: (options) => closed(openSession({ store: memoryStore(), ...options })),
  importSession: (options) => closed(importSession(archive, { store: memoryStore(), ...options })),
};

for (const [name, value] of Object.entries(EVERY)) {
  test(`F14: ${name} is taken by every call`, async () => {
    for (const call of Object.values(CALLS)) await call({ [name]: value });
  });
}

for (const [name, [value, remedy]] of Object.entries({ ...SESSION, ...OPENING })) {
  test(`F14: ${name} is refused by a call that has no use for it, with what to do instead`, async () => {
    const refusing = ["compact", "planCompaction", ...(name in OPENING ? ["importSession"] : [])];
    for (const [call, run] of Object.entries(CALLS)) {
      // A parent that is not there, and no id of what must exist, are other errors, and say that the option was read.
      if (!refusing.includes(call)) {
        const others = { parent: "not_found", mustExist: "invalid_option" };
        await run({ [name]: value }).catch((error) => assert.equal(error.code, others[name] ?? "none"));
        continue;
      }
      await assert.rejects(run({ [name]: value }), (error) => {
        fails("invalid_option", { field: name })(error);
        assert.match(error.message, new RegExp(`^${name}: ${call} has no use for it`));
        assert.match(error.message, remedy);
        return true;
      });
    }
  });
}

test("F14: fetch without provider is refused, and with it is what the request goes through", async () => {
  let calls = 0;
  const fetch = async () => {
    calls++;
    return Response.json({ choices: [{ message: { content: "The parser fails with E0502 in src/parser.rs." } }] });
  };
  for (const call of Object.values(CALLS)) {
    await assert.rejects(call({ fetch }), fails("invalid_option", { field: "fetch", message: /provider.*summarize/ }));
  }
  const provider = { kind: "openai", model: "m" };
  await compact(chat(10), { preset: "offload", provider, fetch });
  assert.equal(calls, 1);
});

test("F14: a plan that was called off is none", () => {
  assert.throws(() => planCompaction(chat(2), { signal: AbortSignal.abort("no") }), fails("aborted"));
});
