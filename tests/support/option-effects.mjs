/**
 * For each option of the types another value than its default, and what has to be said beside it so that it counts: a
 * session with it goes another way than one without it.
 */

import { runtime } from "./api.mjs";

/** Nothing waits for another attempt. */
const USUAL = { contextWindow: 24_000, maxOutputTokens: 2_000, retryCount: 1 };

/** All that an app can see of a session over `history()` that is prepared every four messages and compacted in the end. */
export async function outcome(library, options) {
  const seen = [];
  const summarize = (request, { purpose, attempt }) => {
    seen.push(["asked", request, purpose, attempt]);
    return ANSWER;
  };
  const told = {
    onProgress: (progress) => seen.push(["progress", progress]),
    logger: (level, line) => seen.push(["log", level, line]),
  };
  const { messages = history(), ...rest } = options;
  let session;
  try {
    session = await library.openSession({ store: "memory", runtime: runtime(), ...USUAL, summarize, ...told, ...rest });
    for (let at = 0; at < messages.length; at += 4) {
      await session.append(...messages.slice(at, at + 4));
      seen.push(["prepared", await session.prepare()]);
    }
    seen.push(["compacted", await session.compact()]);
    for (let nth = 0; nth < 3; nth++) await session.snapshots.take();
    seen.push(["snapshots", await session.snapshots.list()], ["usage", session.context.usage()]);
  } catch (error) {
    if (!library.CompactionError.isInstance(error)) throw error;
    seen.push(["error", error.code, error.field, error.message]);
  }
  await session?.close();
  return JSON.stringify(seen);
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

/** The groups of the presets: of each option the value, and what the group needs beside it. */
const small = { triggerShare: 0.2 };
const chunks = { singleResultThreshold: 3_000, strategies: false, chunkSize: 2_000 };
const levels = { compactAbove: 200_000, moderateAbove: 100_000 };
export const GROUPS = {
  offload: {
    offloadThreshold: [9_000],
    scanRatio: [0.1],
    minChars: [5_000],
    compactTriggerThreshold: [1, { offloadThreshold: 3_000, compactCooldownSteps: 0 }],
    compactCooldownSteps: [0, { offloadThreshold: 6_000, scanRatio: 0.1, compactTriggerThreshold: 100_000 }],
    preserveCount: [9],
    targetTokens: [300],
  },
  react: {
    singleEnabled: [false, chunks],
    singleResultThreshold: [3_000],
    chunkSize: [2_000, { singleResultThreshold: 3_000, strategies: false }],
    chunkRatio: [0.5, chunks],
    secondRatio: [0.5, { ...chunks, singleResultThreshold: 1_000, chunkSize: 500 }],
    globalEnabled: [false],
    globalCompressionThreshold: [0.3],
    modelContextLimit: [60_000],
    systemPromptLength: [20_000, { modelContextLimit: 60_000 }],
    instructionLength: [20_000, { modelContextLimit: 60_000 }],
    resultCompressionMinSize: [3_000],
    globalRatio: [0.5],
    strategies: [false],
    relianceRatio: [0.15],
  },
  layered: {
    clear: ["never"],
    cacheRead: [0.9, { clear: "break-even" }],
    cacheWrite: [0, { clear: "break-even" }],
    compactableTools: [["search"]],
    keepRecent: [1],
    clearMinTokens: [2_000],
    clearInputs: [true],
    outputReserve: [100],
    fixedReserve: [5_000],
    minSavings: [20_000, { fixedReserve: 12_000 }],
    largeOutputTokens: [500],
    previewChars: [300, { largeOutputTokens: 500 }],
    readTools: [["fetch"]],
    maxRestoreFiles: [1],
    maxRestoreTokensPerFile: [150],
    maxRestoreTokensTotal: [200],
    preserveCount: [9],
    targetTokens: [300],
  },
  factor3: {
    processTools: [{ search: ["note"] }],
    verbosity: ["debug"],
    minTokens: [2_000],
    structuredMinTokens: [2_500],
    snippetChars: [20],
    fileLines: [50],
    outlineLines: [5, { fileLines: 50 }],
    queryRows: [20],
    sampleRows: [3, { queryRows: 20 }],
    apiChars: [300],
    preserveCount: [9],
    targetTokens: [300],
    emergencyShare: [0.2],
  },
  checkpoint: {
    tier: ["TIER_1_MINIMAL"],
    promptBudget: [50],
    safetyMargin: [9_000],
    triggerShare: [0.3],
    preserveCount: [9],
    keepUserMessages: [1],
    compactAbove: [20_000],
    moderateAbove: [100_000, { compactAbove: 200_000 }],
    compactTokens: [30],
    moderateTokens: [50, { compactAbove: 200_000 }],
    detailedTokens: [60, levels],
    ageModerate: [1, { ...small, ...levels }],
    ageCompact: [2, { ...small, ...levels, ageModerate: 1 }],
    mergeCount: [2, { ...small, ageModerate: 1, ageCompact: 1 }],
    keepSnapshots: [1],
    profiles: [[{ model: "m", size: 24_000, share: 0.4 }], {}, { model: "m" }],
  },
};

/** All others: of each the value, and the options that it needs beside it, under preset `layered` where they name no other. */
const failing = { summarize: () => Promise.reject(new Error("no")) };
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
export const OTHERS = {
  preset: ["factor3"],
  format: ["anthropic"],
  model: ["claude-sonnet-4-5"],
  summaryModel: ["small"],
  summaryContextWindow: [3_000],
  longHistory: ["clip", { summaryContextWindow: 3_000 }],
  contextWindow: [30_000],
  maxOutputTokens: [5_000],
  trigger: [{ tokens: 8_000 }],
  prices: [{ input: 1, output: 500 }, { preset: "balanced" }],
  keep: [{ messages: 9 }],
  reserveTokens: [3_000],
  estimator: ["chars4"],
  summarize: [() => `${ANSWER} And more.`],
  summarizeResult: [() => "Shorter.", { preset: "react", react: chunks }],
  provider: [{ kind: "openai", model: "m", url: "http://127.0.0.1:9/v1" }, { summarize: undefined }],
  fallback: ["extractive", failing],
  retryCount: [2, { ...failing, messages: history().slice(0, 57) }],
  timeoutMs: [20, { summarize: () => new Promise((resolve) => setTimeout(resolve, 60, ANSWER)) }],
  tokenCounter: [(messages) => JSON.stringify(messages).length / 2],
  pinned: [(_, index) => index === 1],
  pinProposals: ["off"],
  readFile: [async (path) => `what ${path} holds now`],
  redactSecrets: [false, { messages: secret() }],
  redact: [(text) => text.replaceAll("parser", "[hidden]")],
  instructions: ["Be short."],
  prefixMismatchBehavior: ["drop_block", { messages: signed() }],
  mode: ["DEBUGGER", { preset: "checkpoint" }],
  goal: [{ id: "g", description: "Ship it." }],
  level: [3, { preset: "checkpoint" }],
};
