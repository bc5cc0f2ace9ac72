/** Which call takes which option: what a call has no use for, it refuses, and says what to do. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, importSession, memoryStore, openSession, planCompaction } from "context-compactor";
import { OPTIONS } from "../../pkg/dist/generated/options.js";
import { chat, fails, summariser } from "../support/api.mjs";

/** A value of each option that says something. */
const EVERY = {
  preset: "offload",
  presetOptions: {},
  format: "openai-chat",
  model: "gpt-4o",
  contextWindow: 50_000,
  maxOutputTokens: 2_000,
  reserveTokens: 100,
  prices: { input: 1, output: 2 },
  tokenCounter: (messages) => JSON.stringify(messages).length / 4,
  compactAt: { tokens: 40_000 },
  economy: false,
  keep: { messages: 3 },
  summarize: summariser(),
  pins: { match: () => false, proposals: "off" },
  redact: { secrets: false, text: (text) => text },
  digest: { minTokens: 100 },
  toolPolicies: { search: { maxTokens: 500 } },
  admit: { maxTokens: 5_000 },
  offload: { minChars: 100 },
  clear: { keepRecent: 2 },
  restoreFiles: { read: async () => "text" },
  goal: { id: "g", description: "Ship it." },
  signal: new AbortController().signal,
  onProgress: () => {},
  logger: () => {},
  advanced: { estimator: "chars4", prefixMismatchBehavior: "drop_block", runtime: { now: () => 1, id: () => "id" } },
};

/** Those that do nothing but in one preset. */
const OF_PRESET = {
  compress: ["react", { minChars: 4_000 }],
  checkpoints: ["checkpoint", { mergeCount: 3 }],
};

/** Those of a group. */
const SUMMARIZE = {
  call: summariser(),
  provider: { kind: "openai", model: "m" },
  forResults: summariser(),
  model: "gpt-4o-mini",
  contextWindow: 20_000,
  targetTokens: 900,
  detail: 2,
  instructions: "Be short.",
  mode: ["debugger", { detail: 1 }],
  longHistory: "clip",
  fallback: "extractive",
  attempts: 1,
  timeoutMs: 5_000,
  concurrency: 2,
};

/** Those of a session, and a word of the remedy where another call refuses it. */
const SESSION = {
  id: ["chat-1", /openSession/],
  store: [memoryStore(), /openSession/],
  systemPrompt: ["Be kind.", /reserveTokens/],
  background: [true, /openSession/],
  recall: [true, /openSession/],
  handoff: [{ atFraction: 0.8 }, /openSession/],
  limits: [{ storeTimeoutMs: 5_000, requestBytes: 20_000_000, onExceed: "throw" }, /openSession/],
  onDiverged: ["throw", /openSession/],
};
const CARRYING = { state: [{ when: "now" }, /give it to compact/] };
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
  planCompaction: async (options) => void (await planCompaction(chat(2), { contextWindow: 50_000, ...options })),
  openSession: (options) => closed(openSession({ store: memoryStore(), ...options })),
  importSession: (options) => closed(importSession(archive, { store: memoryStore(), ...options })),
};

for (const [name, value] of Object.entries(EVERY)) {
  test(`F14: ${name} is taken by every call`, async () => {
    for (const call of Object.values(CALLS)) await call({ [name]: value });
  });
}

for (const [name, [preset, value]] of Object.entries(OF_PRESET)) {
  test(`F14: ${name} is taken by every call, in its preset`, async () => {
    for (const call of Object.values(CALLS)) {
      await call({ preset, [name]: value });
      await assert.rejects(call({ [name]: value }), fails("invalid_option", { field: name, message: /has no effect in preset balanced/ }));
    }
  });
}

for (const [name, value] of Object.entries(SUMMARIZE)) {
  test(`F14: summarize.${name} is taken by every call`, async () => {
    const [given, beside] = Array.isArray(value) ? value : [value];
    for (const call of Object.values(CALLS)) await call({ summarize: { ...beside, [name]: given } });
  });
}

test("F14: the top of the table is all here", () => {
  const tops = OPTIONS.map(({ path }) => path).filter((path) => !path.includes("."));
  assert.deepEqual([...Object.keys(EVERY), ...Object.keys(OF_PRESET), ...Object.keys({ ...SESSION, ...OPENING, ...CARRYING })].sort(), tops.sort());
});

for (const [name, [value, remedy]] of Object.entries({ ...SESSION, ...OPENING, ...CARRYING })) {
  test(`F14: ${name} is refused by a call that has no use for it, with what to do instead`, async () => {
    const refusing = ["planCompaction"];
    refusing.push(...(name in CARRYING ? ["openSession", "importSession"] : ["compact"]), ...(name in OPENING ? ["importSession"] : []));
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

test("F14: a watermark is refused by what stores nothing, with what to do instead", async () => {
  const options = { advanced: { watermark: { get: () => undefined, set: () => {} } } };
  for (const call of ["compact", "planCompaction"]) {
    const message = new RegExp(`^advanced\\.watermark: ${call} has no use for it.*openSession`);
    await assert.rejects(CALLS[call](options), fails("invalid_option", { field: "advanced.watermark", message }));
  }
  for (const call of ["openSession", "importSession"]) await CALLS[call](options);
});

test("F14: fetch without provider is refused, and with it is what the request goes through", async () => {
  let calls = 0;
  const fetch = async () => {
    calls++;
    return Response.json({ choices: [{ message: { content: "The parser fails with E0502 in src/parser.rs." } }] });
  };
  for (const call of Object.values(CALLS)) {
    await assert.rejects(call({ summarize: { fetch } }), fails("invalid_option", { field: "summarize.fetch", message: /provider.*`call`/ }));
  }
  const provider = { kind: "openai", model: "m" };
  await compact(chat(10), { preset: "offload", summarize: { provider, fetch } });
  assert.equal(calls, 1);
});

test("F14: a plan that was called off is none", async () => {
  await assert.rejects(() => planCompaction(chat(2), { signal: AbortSignal.abort("no") }), fails("aborted"));
});
