/**
 * Whole sessions, step by step, in the engine and in libraries that keep a context small. What each does by itself is
 * measured; the model's answer is at hand in all of them.
 */

import { createHash } from "node:crypto";
import { SUMMARY, chat, langchain, modelMessage, turn } from "./conversation.mjs";

const peers = new URL("./peers/node_modules/", import.meta.url);
/** Coding sessions that were recorded, of which every other is taken. */
export const RECORDED = "full/openai/claude_code_entire_cli";
/** Tokens of the window that every library is given. */
export const WINDOW = 128_000;

/** Processor time of this process, in ms: what others do on the machine is not in it. */
export function clock() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
}

/** A session over a store in memory. */
export async function ours(options) {
  const { memoryStore, openSession } = await import("context-compactor");
  return openSession({ store: memoryStore(), summarize: async () => SUMMARY, ...options });
}

/**
 * The libraries. Each says how it has a message, adds messages, and makes ready what a model is sent. `trigger` is the
 * count of tokens at which a library compacts where the app says it; the engine has a rule of its own.
 */
const ways = {
  async engine() {
    const { memoryStore } = await import("context-compactor");
    const options = { contextWindow: WINDOW, store: memoryStore(), id: "bench" };
    const session = await ours(options);
    const way = { compactions: 0, shape: (message) => message };
    session.on("compact", () => way.compactions++);
    // A summary that is not accepted is asked for again, later, and then made without a model: not what is measured.
    session.on("warning", ({ code, message }) => code === "summary_failed" && (way.refused = message));
    /** Opens the session again: that, its first prompt, and a summary, for which the log is read. */
    const again = async () => {
      await session.close();
      const laps = [clock()];
      const other = await ours(options);
      laps.push(clock());
      await other.prepare();
      laps.push(clock());
      const { success } = await other.compact();
      laps.push(clock());
      if (!success) throw new Error("not compacted");
      return laps.slice(1).map((lap, nth) => lap - laps[nth]);
    };
    return Object.assign(way, { append: (...messages) => session.append(...messages), ask: () => session.prepare(), again });
  },

  async langchain(trigger) {
    const core = await import(new URL("@langchain/core/dist/messages/index.js", peers));
    const { summarizationMiddleware } = await import(new URL("langchain/dist/index.js", peers));
    const model = { invoke: async () => new core.AIMessage(SUMMARY), profile: { maxInputTokens: WINDOW } };
    const middleware = summarizationMiddleware({ model, trigger: { tokens: trigger }, keep: { messages: 20 } });
    let state = [];
    const way = { compactions: 0, shape: langchain(core) };
    const ask = async () => {
      const update = await middleware.beforeModel({ messages: state }, { context: {} });
      if (!update) return;
      way.compactions++;
      state = update.messages.slice(1);
    };
    return Object.assign(way, { append: (...messages) => void state.push(...messages), ask });
  },

  async deepagents(trigger) {
    const core = await import(new URL("@langchain/core/dist/messages/index.js", peers));
    const { createSummarizationMiddleware } = await import(new URL("deepagents/dist/index.js", peers));
    const model = { invoke: async () => new core.AIMessage(SUMMARY), profile: { maxInputTokens: WINDOW } };
    // Where it offloads to: memory.
    const files = new Map();
    const backend = {
      downloadFiles: async (paths) => paths.map((path) => ({ path, content: files.get(path), error: null })),
      uploadFiles: async (given) => given.map(([path, content]) => (files.set(path, content), { path, error: null })),
      write: async (path, text) => (files.set(path, new TextEncoder().encode(text)), { path }),
    };
    for (const name of ["ls", "read", "readRaw", "grep", "glob", "edit"]) backend[name] = async () => ({});
    const middleware = createSummarizationMiddleware({
      model,
      backend,
      trigger: { type: "tokens", value: trigger },
      keep: { type: "messages", value: 20 },
    });
    const messages = [];
    let state = {};
    const way = { compactions: 0, shape: langchain(core) };
    const ask = async () => {
      const answer = await middleware.wrapModelCall({ messages, state, model }, async () => undefined);
      if (!answer?.update) return;
      way.compactions++;
      state = { ...state, ...answer.update };
    };
    return Object.assign(way, { append: (...added) => void messages.push(...added), ask });
  },

  /** Drops the calls and results of all but the newest messages, at each step, and counts what is left. */
  async "ai-sdk"() {
    const { pruneMessages } = await import(new URL("ai/dist/index.js", peers));
    const messages = [];
    const way = { compactions: 0, shape: modelMessage(), tokens: 0 };
    const ask = () => {
      const kept = pruneMessages({ messages, reasoning: "all", toolCalls: "before-last-2-messages" });
      const characters = ({ content }) => (typeof content === "string" ? content : JSON.stringify(content)).length;
      way.tokens = Math.ceil(kept.reduce((sum, message) => sum + characters(message), 0) / 4);
    };
    return Object.assign(way, { append: (...added) => void messages.push(...added), ask });
  },
};

export const NAMES = Object.keys(ways);

/** `turns` turns of the agent that is made up, or of recorded ones: what is appended before each prompt, and the answer. */
async function conversation(turns, source) {
  if (source === "recorded") return recorded(turns);
  return Array.from({ length: turns }, (_, nth) => {
    const [question, call, result, answer] = chat(turn(nth));
    return [[question], [call, result], [answer]];
  });
}

/** Recorded coding sessions one after the other, the ids of their calls made apart; a turn ends with an answer of the agent. */
async function recorded(turns) {
  const { transcripts } = await import("../../tests/support/transcripts.mjs");
  const records = transcripts(RECORDED).filter((_, nth) => nth % 2 === 1);
  const all = [];
  records.forEach(({ messages }, nth) => {
    const own = (id) => `${nth}_${id}`;
    let before = [];
    for (const message of structuredClone(messages)) {
      if (message.tool_call_id) message.tool_call_id = own(message.tool_call_id);
      for (const call of message.tool_calls ?? []) call.id = own(call.id);
      if (message.role !== "assistant") {
        before.push(message);
        continue;
      }
      all.push([before, [message]]);
      before = [];
    }
  });
  return all.slice(0, turns);
}

/** A session of so many turns: what it takes, and of that a turn without a compaction, and a compaction. */
export async function session(name, turns, { trigger = WINDOW * 0.8, source } = {}) {
  const way = await ways[name](trigger);
  const steps = (await conversation(turns, source)).map((turn) => turn.map((messages) => messages.map(way.shape)));
  const [plain, compacted] = [[], []];
  const from = clock();
  for (const batches of steps) {
    const [before, started] = [way.compactions, performance.now()];
    for (const [nth, messages] of batches.entries()) {
      await way.append(...messages);
      if (nth < batches.length - 1) await way.ask();
    }
    (way.compactions > before ? compacted : plain).push(performance.now() - started);
  }
  const took = clock() - from;
  if (way.refused) throw new Error(way.refused);
  const sum = (laps) => laps.reduce((a, b) => a + b, 0);
  // Laps are by the clock on the wall, which is the finer one; they share what the processor took.
  const share = took / (sum(plain) + sum(compacted));
  const perTurn = (sum(plain) / plain.length) * share;
  const perCompaction = way.compactions ? (sum(compacted) * share - compacted.length * perTurn) / way.compactions : undefined;
  return { took, perTurn, perCompaction, compactions: way.compactions, again: await way.again?.() };
}

/**
 * The least that an engine with a log does with each message of these turns: writes it as JSON into a buffer, counts its
 * tokens, hashes it after the one before, keeps it, and looks once for names in it.
 */
export async function floor(turns, { source } = {}) {
  const { estimateTokens } = await import("context-compactor/tokens");
  const messages = (await conversation(turns, source)).flat(2);
  const [buffer, encoder, rows] = [new Uint8Array(1 << 22), new TextEncoder(), new Map()];
  const name = /[\p{L}\p{N}_./-]{3,}/gu;
  let [hash, tokens, names] = ["", 0, 0];
  const from = clock();
  for (const [nth, message] of messages.entries()) {
    const text = JSON.stringify(message);
    const { written } = encoder.encodeInto(text, buffer);
    const bytes = buffer.slice(0, written);
    tokens += estimateTokens(text);
    hash = createHash("sha256").update(hash).update(bytes).digest("hex");
    rows.set(nth, bytes);
    names += text.match(name)?.length ?? 0;
  }
  return { took: clock() - from, tokens, names, rows: rows.size };
}
