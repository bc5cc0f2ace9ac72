/**
 * For each option another value than its default, and what has to be said beside it so that it counts: a session with it
 * goes another way than one without it.
 */

import { compact, memoryStore, openSession } from "context-compactor";
import { runtime } from "./api.mjs";

/** Nothing waits for another attempt. */
const USUAL = { preset: "layered", contextWindow: 24_000, maxOutputTokens: 2_000, summarize: { attempts: 1 } };

/** All that an app can see of a session over `history()` that is prepared every four messages and compacted in the end. */
export async function outcome(library, { messages = history(), store = memoryStore, ...options }) {
  const seen = [];
  const call = async (request, { purpose, attempt }) => {
    seen.push(["asked", request, purpose, attempt]);
    await new Promise(setImmediate);
    seen.push(["answered", purpose]);
    return ANSWER;
  };
  const fetch = async (url, { headers, body }) => {
    seen.push(["sent", url, [...new Headers(headers)], body]);
    return Response.json({ error: { message: "no" } }, { status: 400 });
  };
  const told = {
    store: store(),
    onProgress: (progress) => seen.push(["progress", progress]),
    logger: (level, line) => seen.push(["log", level, line]),
    summarize: options.summarize?.provider ? { fetch } : { call },
    advanced: { runtime: runtime() },
  };
  let session;
  try {
    if (options.state) seen.push(["carried", await library.compact(messages, merged(merged(USUAL, { ...told, store: undefined }), options))]);
    if (options.state) return JSON.stringify(seen);
    session = await library.openSession(merged(merged(USUAL, told), options));
    for (let at = 0; at < messages.length; at += 4) {
      await session.append(...messages.slice(at, at + 4));
      seen.push(["prepared", await session.prepare()]);
    }
    seen.push(["plan", await session.context.plan()], ["compacted", await session.compact()]);
    for (let nth = 0; nth < 3; nth++) await session.snapshots.take();
    seen.push(["snapshots", await session.snapshots.list()], ["usage", session.context.usage()], ["id", session.id]);
    seen.push(["found", await session.recall.search("parser")]);
    // Not its history: the last message is missing.
    seen.push(["synced", await session.sync(messages.slice(0, -1))]);
  } catch (error) {
    if (!library.CompactionError.isInstance(error)) throw error;
    seen.push(["error", error.code, error.field, error.message]);
  }
  await session?.close();
  return JSON.stringify(seen);
}

/** One file, read twice; the second result is not sent before a prompt is made. */
function rereads() {
  const text = Array.from({ length: 60 }, (_, line) => `line ${line} of the parser`).join("\n");
  const read = (id, last) => [
    { role: "user", content: "Read it." },
    { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: { name: "read_file", arguments: '{"path":"a.ts"}' } }] },
    { role: "tool", tool_call_id: id, content: text },
    last,
  ];
  return [...read("call_1", { role: "assistant", content: "It is read." }), ...read("call_2", { role: "user", content: "Go on." })];
}

/** These options with the one of this path. */
export function withOption(options, path, value) {
  return merged(options, path.split(".").reduceRight((inner, name) => ({ [name]: inner }), value));
}

/** Options with others over them, group by group. */
function merged(options, over) {
  const isGroup = (value) => value instanceof Object && Object.getPrototypeOf(value) === Object.prototype;
  const members = Object.entries(over).map(([name, value]) => [name, isGroup(value) && isGroup(options[name]) ? merged(options[name], value) : value]);
  return { ...options, ...Object.fromEntries(members) };
}

const ANSWER = `## Current Status\nThe parser is being built. ${"It reads tokens of module 7 and fails in part_8. ".repeat(10)}`;

/** A long history of every kind of result. */
function history() {
  const messages = [{ role: "user", content: "Never push to main. Build the parser, and tell me what you find." }];
  const add = (nth, name, args, content) => {
    const id = `call_${nth}`;
    messages.push({ role: "user", content: `Step ${nth}: go on with the parser, and say what src/module${nth - 1}.rs does.` });
    messages.push({ role: "assistant", content: null, tool_calls: [{ id, type: "function", function: { name, arguments: JSON.stringify(args) } }] });
    messages.push({ role: "tool", tool_call_id: id, content });
    messages.push({ role: "assistant", content: `Step ${nth} is done: module ${nth} has ${nth * 3} functions, of which ${nth} fail.` });
  };
  const lines = (count, of) => Array.from({ length: count }, (_, line) => of(line)).join("\n");
  for (let nth = 1; nth <= 24; nth++) {
    const kind = nth % 6;
    if (kind === 0) add(nth, "read_file", { path: `src/module${nth}.rs` }, lines(120, (line) => (line % 8 ? `    let value_${line} = ${nth} + ${line};` : `pub fn part_${line}() {`)));
    if (kind === 1) add(nth, "search", { query: `parser ${nth}` }, JSON.stringify(Array.from({ length: 12 }, (_, hit) => ({ title: `Hit ${hit} of ${nth}`, url: `https://example.com/${nth}/${hit}`, snippet: `How a parser of kind ${hit} reads tokens. `.repeat(12) }))));
    if (kind === 2) add(nth, "query", { sql: `select * from t${nth}` }, JSON.stringify(Array.from({ length: 60 }, (_, row) => ({ id: row, name: `name ${row}`, total: row * nth }))));
    if (kind === 3) add(nth, "fetch", { url: `https://api.example.com/${nth}` }, JSON.stringify({ status: 200, data: Object.fromEntries(Array.from({ length: 80 }, (_, field) => [`field_${field}`, `value ${field} of ${nth}`])) }));
    if (kind === 4) add(nth, "bash", { command: `cargo test ${nth}`, script: `echo ${nth}; `.repeat(600) }, lines(90, (line) => `test part_${line} ... ok, in ${line * nth} ms`));
    if (kind === 5) add(nth, "note", { about: nth }, `The module ${nth} was read and what it does is plain prose that nobody has to count. `.repeat(60));
  }
  return messages;
}

const signed = () => {
  const messages = [];
  for (let nth = 0; nth < 24; nth++) {
    const [thinking, use] = [{ type: "thinking", thinking: `I read module ${nth}.`, signature: `signed${nth}` }, { type: "tool_use", id: `toolu_${nth}`, name: "read_file", input: { path: `${nth}` } }];
    messages.push({ role: "user", content: `Read module ${nth}.` }, { role: "assistant", content: [thinking, use] });
    messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: `${nth} reads tokens. `.repeat(400) }] });
    messages.push({ role: "assistant", content: [{ ...thinking, signature: `again${nth}` }, { type: "text", text: "Done." }] });
  }
  return messages;
};
const secret = () => history().map((message) => (message.role === "user" ? { ...message, content: `${message.content} The key is AKIAIOSFODNN7EXAMPLE.` } : message));
const under = (preset, options) => ({ preset, ...options });
const chunks = { compress: { resultChars: 3_000, structured: false }, advanced: { compress: { chunkChars: 2_000 } } };
const levels = { level1Above: 200_000, level2Above: 100_000 };
const aging = (more) => under("checkpoint", { advanced: { checkpoints: { triggerFraction: 0.2, ...more } } });
const provider = { kind: "openai", model: "m", url: "http://127.0.0.1:9/v1" };
const asked = { summarize: { provider } };
const priced = under("balanced", { economy: true, contextWindow: 64_000, prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } });
const failing = { summarize: { call: () => Promise.reject(new Error("no")) } };
/** Fails, and says of a second attempt whether it came soon. */
const timed = () => {
  let first;
  return (_, { attempt }) => {
    if (attempt === 1) first = performance.now();
    return Promise.reject(new Error(performance.now() - first < 400 ? "soon" : "late"));
  };
};
const slow = () => {
  const store = memoryStore();
  return { ...store, caps: store.caps, read: (keys) => new Promise((resolve) => setTimeout(() => resolve(store.read(keys)), 50)) };
};
/** Commits of a session that is in the store already. */
const earlier = [];
{
  const store = memoryStore();
  const commit = (batch) => (earlier.push(batch), store.commit(batch));
  const runtime = { now: () => 5, id: () => `earlier ${earlier.length}` };
  const session = await openSession({ ...USUAL, id: "earlier", store: { ...store, caps: store.caps, commit }, advanced: { runtime } });
  await session.append({ role: "user", content: "The parser of last week was slow." });
  await session.close();
}
const shared = () => {
  const store = memoryStore();
  for (const batch of earlier) void store.commit(batch);
  return store;
};
const carried = { state: {} };
/** What a call before left. */
const { state } = await compact(history(), { ...USUAL, state: null });
/** Says that a session was there. */
const gone = { get: () => `0000000000.0000000000000009.f2wjeqd7gu52wu2pmw3amd6bpy.${"0".repeat(64)}`, set: () => {} };

/** Of each option the value, and the options that it needs beside it, under preset `layered` where they name no other. */
export const EFFECTS = {
  preset: ["factor3"],
  format: ["anthropic"],
  model: ["claude-sonnet-4-5"],
  contextWindow: [30_000],
  maxOutputTokens: [5_000],
  reserveTokens: [3_000],
  "prices.input": [300, priced],
  "prices.output": [500, priced],
  "prices.cacheRead": [2.9, priced],
  "prices.cacheWrite": [0.3, { ...priced, recall: true }],
  "prices.ttlMs": [1, priced],
  "prices.tiers": [[{ above: 2_000, input: 300, output: 500 }], priced],
  tokenCounter: [(messages) => JSON.stringify(messages).length / 2],
  "compactAt.tokens": [8_000],
  "compactAt.fraction": [0.3],
  economy: [true, under("balanced", { contextWindow: 64_000 })],
  "keep.messages": [9],
  "keep.tokens": [4_000],
  "keep.fraction": [0.5],
  "keep.userMessages": [1, under("checkpoint")],
  "summarize.call": [() => `${ANSWER} And more.`],
  "summarize.provider.kind": ["anthropic", asked],
  "summarize.provider.model": ["n", asked],
  "summarize.provider.url": ["http://127.0.0.1:8/v1", asked],
  "summarize.provider.request": [{ temperature: 0.5 }, under("balanced", { ...asked, model: "m", contextWindow: 200_000 })],
  "summarize.provider.headers": [{ "x-tenant": "a" }, asked],
  "summarize.fetch": [async () => Response.json({}), asked],
  "summarize.forResults": [() => "Shorter.", under("react", chunks)],
  "summarize.model": ["small"],
  "summarize.contextWindow": [3_000],
  "summarize.targetTokens": [300],
  "summarize.detail": [3, under("checkpoint")],
  "summarize.instructions": ["Be short."],
  "summarize.mode": ["debugger", under("checkpoint")],
  "summarize.longHistory": ["clip", { summarize: { contextWindow: 3_000 } }],
  "summarize.fallback": ["extractive", failing],
  "summarize.attempts": [2, { ...failing, messages: history().slice(0, 57) }],
  "summarize.timeoutMs": [20, { summarize: { call: () => new Promise((resolve) => setTimeout(resolve, 60, ANSWER)) } }],
  "summarize.concurrency": [1, { summarize: { contextWindow: 3_000 } }],
  background: [true],
  "recall.tools": [true, under("balanced", { contextWindow: 64_000, prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 0.3 } })],
  "recall.scope": ["all", { store: shared }],
  "recall.embed": [async (texts) => texts.map((text) => [text.length, 1])],
  "pins.match": [(_, index) => index === 1],
  "pins.proposals": ["off"],
  "redact.secrets": [false, { messages: secret() }],
  "redact.text": [(text) => text.replaceAll("parser", "[hidden]")],
  "digest.tools.search": [["note"], under("factor3")],
  "digest.tools.files": [["bash"], under("factor3", { advanced: { digest: { fileLines: 50 } } })],
  "digest.tools.queries": [["search"], under("factor3", { advanced: { digest: { queryRows: 20 } } })],
  "digest.tools.apis": [["search"], under("factor3", { advanced: { digest: { apiChars: 300 } } })],
  "digest.minTokens": [2_000, under("factor3")],
  toolPolicies: [{ search: { maxTokens: 500 } }],
  "admit.maxTokens": [500],
  "admit.previewChars": [300, { admit: { maxTokens: 500 } }],
  "admit.rereads": [true, { messages: rereads() }],
  "offload.minChars": [5_000, under("offload")],
  "clear.when": ["break-even"],
  "clear.tools": [["search"]],
  "clear.keepRecent": [1],
  "clear.minTokens": [2_000],
  "clear.inputs": [true],
  "compress.resultChars": [3_000, under("react")],
  "compress.atFraction": [0.3, under("react")],
  "compress.minChars": [3_000, under("react")],
  "compress.structured": [false, under("react")],
  "checkpoints.maxTokens.compact": [30, under("checkpoint")],
  "checkpoints.maxTokens.moderate": [50, under("checkpoint", { advanced: { checkpoints: { level1Above: 200_000 } } })],
  "checkpoints.maxTokens.detailed": [60, under("checkpoint", { advanced: { checkpoints: levels } })],
  "checkpoints.promptTokens": [50, under("checkpoint")],
  "checkpoints.mergeCount": [2, aging({ level2Age: 1, level1Age: 1 })],
  "restoreFiles.read": [async (path) => `what ${path} holds now`],
  "restoreFiles.tools": [["fetch"]],
  "restoreFiles.maxFiles": [1],
  "restoreFiles.maxTokensPerFile": [150],
  "restoreFiles.maxTokens": [200],
  "handoff.atFraction": [0.5],
  "limits.requestBytes": [5_000],
  "limits.usd": [0, { prices: { input: 3, output: 15 } }],
  "limits.onExceed": ["throw", { limits: { requestBytes: 5_000 } }],
  "limits.storeTimeoutMs": [5, { store: slow }],
  "state.value": [state, carried],
  "state.when": ["now", { ...carried, contextWindow: 200_000 }],
  "state.maxBytes": [2_000, carried],
  "state.key": [new Uint8Array(32), carried],
  "state.id": ["chat-1", { state: { key: new Uint8Array(32) } }],
  goal: [{ id: "g", description: "Ship it." }],
  signal: [AbortSignal.abort()],
  onProgress: [() => {}],
  logger: [() => {}],
  "advanced.estimator": ["chars4"],
  "advanced.prefixMismatchBehavior": ["drop_block", { messages: signed() }],
  "advanced.runtime": [{ now: () => 5, id: () => crypto.randomUUID() }],
  "advanced.watermark": [gone, { id: "gone" }],
  "advanced.maxOutputReserve": [100],
  "advanced.promptReserve": [5_000],
  "advanced.minSavings": [20_000, { advanced: { promptReserve: 12_000 } }],
  "advanced.minOffloadGain": [1, under("offload", { compactAt: { tokens: 3_000 }, advanced: { cooldownSteps: 0 } })],
  "advanced.cooldownSteps": [0, under("offload", { compactAt: { tokens: 6_000 }, advanced: { minOffloadGain: 100_000, offload: { scanFraction: 0.1 } } })],
  "advanced.offload.scanFraction": [0.1, under("offload")],
  "advanced.emergencyFraction": [0.2, under("factor3")],
  "advanced.maxSnapshots": [1],
  "advanced.digest.structuredMinTokens": [2_500, under("factor3")],
  "advanced.digest.snippetChars": [20, under("factor3")],
  "advanced.digest.fileLines": [50, under("factor3")],
  "advanced.digest.outlineLines": [5, under("factor3", { advanced: { digest: { fileLines: 50 } } })],
  "advanced.digest.queryRows": [20, under("factor3")],
  "advanced.digest.sampleRows": [3, under("factor3", { advanced: { digest: { queryRows: 20 } } })],
  "advanced.digest.apiChars": [300, under("factor3")],
  "advanced.compress.chunkChars": [1_000, under("react", chunks)],
  "advanced.compress.chunkFraction": [0.5, under("react", chunks)],
  "advanced.compress.secondFraction": [0.5, under("react", { compress: { resultChars: 1_000, structured: false }, advanced: { compress: { chunkChars: 500 } } })],
  "advanced.compress.fraction": [0.5, under("react")],
  "advanced.compress.referencedFraction": [0.15, under("react")],
  "advanced.checkpoints.triggerFraction": [0.3, under("checkpoint")],
  "advanced.checkpoints.level1Above": [20_000, under("checkpoint")],
  "advanced.checkpoints.level2Above": [100_000, under("checkpoint", { advanced: { checkpoints: { level1Above: 200_000 } } })],
  "advanced.checkpoints.level2Age": [1, aging(levels)],
  "advanced.checkpoints.level1Age": [2, aging({ ...levels, level2Age: 1 })],
  "advanced.carry.verbatimFraction": [0.001, under("balanced", { advanced: { carry: { verbatimTokens: 0 } } })],
  "advanced.carry.verbatimTokens": [0, under("balanced", { advanced: { carry: { verbatimFraction: 0.001 } } })],
  "advanced.carry.factsFraction": [0.001, under("balanced")],
  "advanced.carry.factsMinTokens": [1_000, under("balanced")],
  "advanced.carry.factsMaxTokens": [100, under("balanced")],
  "advanced.retryWaitMs": [1, { summarize: { call: timed(), attempts: 2 } }],
  id: ["chat"],
  store: [slow, { limits: { storeTimeoutMs: 5 } }],
  systemPrompt: ["Be kind."],
  onDiverged: ["throw"],
  parent: ["none"],
  acceptDataLoss: [true, { id: "gone", advanced: { watermark: gone } }],
  mustExist: [true, { id: "none" }],
  "presetOptions.tier": ["TIER_1_MINIMAL", under("checkpoint")],
  "presetOptions.safetyMargin": [9_000, under("checkpoint", { maxOutputTokens: undefined })],
  "presetOptions.profiles": [[{ model: "m", size: 24_000, share: 0.4 }], under("checkpoint", { model: "m" })],
  "presetOptions.modelContextLimit": [60_000, under("react")],
  "presetOptions.systemPromptLength": [20_000, under("react", { presetOptions: { modelContextLimit: 60_000 } })],
  "presetOptions.instructionLength": [20_000, under("react", { presetOptions: { modelContextLimit: 60_000 } })],
};
