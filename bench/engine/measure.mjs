/** One measurement of `engine.bench.mjs` in a process of its own: `measure.mjs SCENARIO WAY SIZE` prints JSON. */

import { chat, langchain, modelMessages, SUMMARY, turn } from "./conversation.mjs";

const [scenario, way, size] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const peers = new URL("./peers/node_modules/", import.meta.url);
/** Turns are measured in blocks of so many; the first two thirds of the blocks do not count. */
const BLOCK = 25;
/** Blocks: enough for all code to have been compiled for speed by then, which takes a module longer than a script. */
const [BLOCKS, BLOCKS_OF_SCRIPTS] = [90, 9];
/** Tokens at which every library compacts in the scenario `session`. */
const WINDOW = 128_000;

/** The engine's memory, as whoever instantiates a module sees it. */
let memory;
const { Instance } = WebAssembly;
WebAssembly.Instance = new Proxy(Instance, {
  construct(target, given) {
    const instance = Reflect.construct(target, given);
    memory ??= instance.exports.memory;
    return instance;
  },
});

/** Processor time of this process, in ms: what others do on the machine is not in it. */
function clock() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const turns = (count, shape, first = 0) => Array.from({ length: count }, (_, nth) => shape(turn(first + nth)));
const brief = (count, shape) => Array.from({ length: count }, (_, nth) => shape(turn(nth, 40)));

/** A session over a store in memory. */
async function ours(options) {
  const { memoryStore, openSession } = await import("context-compactor");
  return openSession({ store: memoryStore(), summarize: async () => SUMMARY, ...options });
}

/** Processor time of a turn: the median of blocks of them, for looking at that clock takes longer than some turns. */
async function perTurn(blocks, add) {
  const took = [];
  for (let block = 0; block < blocks; block++) {
    const from = clock();
    for (let nth = 0; nth < BLOCK; nth++) await add(block * BLOCK + nth);
    took.push((clock() - from) / BLOCK);
  }
  return { took: median(took.slice((blocks / 3) * 2)) };
}

/** Appends what there is in portions, as an app that is opened again hands it over. */
async function fill(session, messages) {
  for (let at = 0; at < messages.length; at += 1_000) await session.append(...messages.slice(at, at + 1_000));
}

/** What `work` takes of the processor, and the most of it in one block, in which nothing else could run. */
async function blocks(work) {
  let [last, longest, on] = [clock(), 0, true];
  const tick = () => {
    const now = clock();
    [longest, last] = [Math.max(longest, now - last), now];
    if (on) setImmediate(tick);
  };
  setImmediate(tick);
  await new Promise((resolve) => setImmediate(resolve));
  const from = (last = clock());
  longest = 0;
  const result = await work();
  const took = clock() - from;
  await new Promise((resolve) => setImmediate(resolve));
  on = false;
  return { result, took, longest };
}

const scenarios = {
  /** From the import to a first result. */
  start: {
    async engine() {
      const [from, before] = [performance.now(), clock()];
      const { memoryStore, openSession } = await import("context-compactor");
      const { estimateTokens } = await import("context-compactor/tokens");
      const tokens = estimateTokens([{ role: "user", content: "How are you?" }]);
      const first = performance.now() - from;
      const cpu = clock() - before;
      const session = await openSession({ store: memoryStore() });
      await session.append({ role: "user", content: "How are you?" });
      await session.prepare();
      return { first, cpu, prepared: performance.now() - from, tokens };
    },
  },

  /** A message more in a history of `size` messages that needs no compaction. */
  turn: {
    async engine() {
      const session = await ours({ contextWindow: 1_000_000_000, compactAt: { fraction: 1 } });
      await fill(session, brief(size / 4, chat).flat());
      await session.prepare();
      return perTurn(BLOCKS, async (nth) => {
        await session.append({ role: nth % 2 ? "assistant" : "user", content: turn(nth).question });
        await session.prepare();
      });
    },

    async langchain() {
      const core = await import(new URL("@langchain/core/dist/messages/index.js", peers));
      const { countTokensApproximately } = await import(new URL("langchain/dist/agents/middleware/utils.js", peers));
      const messages = brief(size / 4, langchain(core)).flat();
      const limit = { maxTokens: 1_000_000_000, strategy: "last", tokenCounter: countTokensApproximately };
      return perTurn(BLOCKS_OF_SCRIPTS, async (nth) => {
        messages.push(new core[nth % 2 ? "AIMessage" : "HumanMessage"](turn(nth).question));
        countTokensApproximately(await core.trimMessages(messages, limit));
      });
    },
  },

  /** A whole session of `size` turns in a window of 128,000 tokens, the model's answer at hand. */
  session: {
    async engine() {
      const session = await ours({ contextWindow: WINDOW });
      const messages = turns(size, chat);
      let compactions = 0;
      session.on("compact", () => compactions++);
      // A summary that is not accepted is asked for again, later, and then made without a model: not what is measured.
      let refused;
      session.on("warning", ({ code, message }) => code === "summary_failed" && (refused = message));
      const from = clock();
      for (const [question, call, result, answer] of messages) {
        // A step of an agent: what is new is appended, and what fits is sent.
        await session.append(question);
        await session.prepare();
        await session.append(call, result);
        await session.prepare();
        await session.append(answer);
      }
      const took = clock() - from;
      if (refused) throw new Error(refused);
      return { took, compactions };
    },

    async langchain() {
      const core = await import(new URL("@langchain/core/dist/messages/index.js", peers));
      const { summarizationMiddleware } = await import(new URL("langchain/dist/index.js", peers));
      const model = { invoke: async () => new core.AIMessage(SUMMARY), profile: { maxInputTokens: WINDOW } };
      const middleware = summarizationMiddleware({ model, trigger: { tokens: WINDOW * 0.8 }, keep: { messages: 20 } });
      const steps = turns(size, langchain(core));
      let state = [];
      let compactions = 0;
      const beforeModel = async () => {
        const update = await middleware.beforeModel({ messages: state }, { context: {} });
        if (!update) return;
        compactions++;
        state = update.messages.slice(1);
      };
      const from = clock();
      for (const [question, call, result, answer] of steps) {
        state.push(question);
        await beforeModel();
        state.push(call, result);
        await beforeModel();
        state.push(answer);
      }
      return { took: clock() - from, compactions };
    },

    async deepagents() {
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
        trigger: { type: "tokens", value: WINDOW * 0.8 },
        keep: { type: "messages", value: 20 },
      });
      const steps = turns(size, langchain(core));
      const messages = [];
      let state = {};
      let compactions = 0;
      const call = async () => {
        const answer = await middleware.wrapModelCall({ messages, state, model }, async () => undefined);
        if (!answer?.update) return;
        compactions++;
        state = { ...state, ...answer.update };
      };
      const from = clock();
      for (const [question, request, result, answer] of steps) {
        messages.push(question);
        await call();
        messages.push(request, result);
        await call();
        messages.push(answer);
      }
      return { took: clock() - from, compactions };
    },

    async "ai-sdk"() {
      const { pruneMessages } = await import(new URL("ai/dist/index.js", peers));
      const steps = turns(size, modelMessages);
      const messages = [];
      let tokens = 0;
      const prune = () => {
        const kept = pruneMessages({ messages, reasoning: "all", toolCalls: "before-last-2-messages" });
        const characters = ({ content }) => (typeof content === "string" ? content : JSON.stringify(content)).length;
        tokens = Math.ceil(kept.reduce((sum, message) => sum + characters(message), 0) / 4);
      };
      const from = clock();
      for (const [question, call, result, answer] of steps) {
        messages.push(question);
        prune();
        messages.push(call, result);
        prune();
        messages.push(answer);
      }
      return { took: clock() - from, compactions: 0, tokens };
    },
  },

  /** A history of `size` tokens made short at once. */
  compaction: {
    async engine() {
      const session = await ours({ contextWindow: size * 2, compactAt: { fraction: 1 } });
      await fill(session, turns(size / 1_000, chat).flat());
      await session.prepare();
      const { result, took, longest } = await blocks(() => session.compact());
      if (!result.success || result.reason) throw new Error(`not compacted by the summary: ${result.reason}`);
      return { took, longest, freed: result.freedTokens };
    },
  },

  /** The engine's memory beside what it holds, and after `size` compactions. */
  memory: {
    async engine() {
      const session = await ours({ contextWindow: WINDOW });
      const held = turns(100, chat).flat();
      await fill(session, held);
      await session.prepare();
      const bytes = new TextEncoder().encode(JSON.stringify(held)).length;
      const peak = memory.buffer.byteLength;
      let tenth;
      for (let nth = 0; nth < size; nth++) {
        await session.append(...turns(4, chat, nth * 4).flat());
        await session.compact();
        if (nth + 1 === size / 10) tenth = memory.buffer.byteLength;
      }
      return { bytes, peak, tenth, last: memory.buffer.byteLength };
    },
  },
};

console.log(JSON.stringify(await scenarios[scenario][way]()));
process.exit(0);
