/** One measurement of `engine.bench.mjs` in a process of its own: `measure.mjs SCENARIO WAY SIZE [OPTIONS]` prints JSON. */

import { chat, langchain, turn } from "./conversation.mjs";
import { NAMES, WINDOW, clock, floor, ours, session } from "./sessions.mjs";

const [scenario, way, size] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const options = JSON.parse(process.argv[5] ?? "{}");
const peers = new URL("./peers/node_modules/", import.meta.url);
/** Turns are measured in blocks of so many; the first two thirds of the blocks do not count. */
const BLOCK = 25;
/** Blocks: enough for all code to have been compiled for speed by then, which takes a module longer than a script. */
const [BLOCKS, BLOCKS_OF_SCRIPTS] = [90, 9];
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

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const turns = (count, shape, first = 0) => Array.from({ length: count }, (_, nth) => shape(turn(first + nth)));
const brief = (count, shape) => Array.from({ length: count }, (_, nth) => shape(turn(nth, 40)));

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
      const messages = brief(size / 4, chat).flat().map(langchain(core));
      const limit = { maxTokens: 1_000_000_000, strategy: "last", tokenCounter: countTokensApproximately };
      return perTurn(BLOCKS_OF_SCRIPTS, async (nth) => {
        messages.push(new core[nth % 2 ? "AIMessage" : "HumanMessage"](turn(nth).question));
        countTokensApproximately(await core.trimMessages(messages, limit));
      });
    },
  },

  /** A whole session of `size` turns, with the options of `session`. */
  session: Object.fromEntries(NAMES.map((name) => [name, () => session(name, size, options)])),

  /** The least that a log of the same messages takes. */
  floor: { floor: () => floor(size, options) },

  /** A session of `size` messages that is opened again. */
  opening: {
    async engine() {
      const { memoryStore, openSession } = await import("context-compactor");
      const given = { store: memoryStore(), id: "bench", contextWindow: 1_000_000_000, compactAt: { fraction: 1 } };
      const session = await openSession(given);
      await fill(session, brief(size / 4, chat).flat());
      await session.close();
      const from = clock();
      const again = await openSession(given);
      const opened = clock() - from;
      const { messages } = await again.prepare();
      if (messages.length !== size) throw new Error(`${messages.length} messages of ${size}`);
      return { opened, prepared: clock() - from - opened };
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
