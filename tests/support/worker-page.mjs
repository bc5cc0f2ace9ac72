/** What tests of `context-compactor/worker` run inside a page: every entry of `globalThis.sessions` is one step. */

import { deleteSession, listSessions, openSession } from "context-compactor/worker";

const open = new Map();
const changes = new Map();
const NUMBERS = { preset: "offload", contextWindow: 24_000, maxOutputTokens: 1_000, summarize: async () => SUMMARY };
const SUMMARY = "The user had twenty files read, one after the other, and each of them was read without an error.";
let own;

/** The worker of the page's own, as an app may have it. */
function workerOf(kind) {
  if (kind === "shared") return new SharedWorker("/thread/thread.js", { type: "module", name: "context-compactor" });
  return (own ??= new Worker("/thread/thread.js", { type: "module" }));
}

async function code(action) {
  try {
    await action();
    return "ok";
  } catch (error) {
    return error.code ?? String(error?.stack ?? error);
  }
}

/** Resolves to the longest time in which the page did nothing else while `work` ran, in ms. */
async function longestTask(work) {
  let [longest, last, ended] = [0, performance.now(), false];
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!ended) port2.postMessage(null);
  };
  port2.postMessage(null);
  const value = await work();
  ended = true;
  return { longest, value };
}

globalThis.sessions = {
  async open(id, kind = "default", options = {}) {
    const session = await openSession({ ...NUMBERS, id, ...options, ...(kind === "default" ? {} : { worker: workerOf(kind) }) });
    open.set(id, session);
    changes.set(id, []);
    session.on("change", (change) => changes.get(id).push(change));
    return session.archive.durability;
  },
  codeOfOpening: (id, kind) => code(() => globalThis.sessions.open(id, kind)),
  changes: (id) => changes.get(id),

  /** Appends exchanges and prepares: which of the messages are the page's own objects. */
  async exchange(id, count, chars) {
    const session = open.get(id);
    const given = Array.from({ length: count }, (_, nth) => [
      { role: "user", content: `Read file ${nth}.` },
      { role: "assistant", content: null, tool_calls: [{ id: `call_${nth}`, type: "function", function: { name: "read", arguments: "{}" } }] },
      { role: "tool", tool_call_id: `call_${nth}`, content: `${`${nth} `.repeat(chars / 2)}😀` },
      { role: "assistant", content: `File ${nth} was read.` },
    ]).flat();
    await session.append(...given);
    const { messages, usage } = await session.prepare();
    return { own: messages.filter((message) => given.includes(message)).length, total: messages.length, offloaded: usage.offloadCount, tokens: usage.usedTokens };
  },
  async texts(id) {
    const session = open.get(id);
    const ledger = await session.context.explain();
    return Promise.all(ledger.filter(({ ref }) => ref).map(({ ref }) => session.recall.read(ref)));
  },
  async compact(id) {
    const session = open.get(id);
    const { success, error } = await session.compact();
    const { messages } = await session.prepare();
    return { success, code: error?.code, first: messages[0].content, checkpoints: session.context.checkpoints().length };
  },
  async messages(id) {
    return (await open.get(id).prepare()).messages;
  },
  async logged(id) {
    const texts = [];
    for await (const { content } of open.get(id).archive.history()) texts.push(content);
    return texts;
  },
  async appendMany(id, mark, count) {
    const waits = [];
    for (let nth = 0; nth < count; nth++) {
      const begun = performance.now();
      await open.get(id).append({ role: "user", content: `${mark} ${nth}` });
      waits.push(performance.now() - begun);
    }
    return waits;
  },
  /** A long task, and then its compaction. */
  async longTask(id, turns, chars) {
    const session = await openSession({ preset: "offload", id, contextWindow: 1_000_000, summarize: "extractive" });
    const steps = { turn: 0, append: 0 };
    for (let nth = 0; nth < turns; nth++) {
      const { longest } = await longestTask(async () => {
        await session.append({ role: "user", content: `Line ${nth} of src/parser.rs fails with E0502. `.repeat(chars / 45) });
        await session.prepare();
      });
      steps.turn = Math.max(steps.turn, longest);
    }
    const { longest, value } = await longestTask(() => session.compact());
    return { turn: steps.turn, compaction: longest, success: value.success, tokens: value.previousTokens };
  },
  list: async () => (await listSessions()).map(({ id }) => id),
  close: (id) => open.get(id).close(),
  delete: (id) => deleteSession(id),
  terminate: () => own.terminate(),
  codeOfUse: (id) => code(() => open.get(id).prepare()),
  databases: async () => (await indexedDB.databases()).map(({ name }) => name),
  marks: () => Object.keys(localStorage),
};
