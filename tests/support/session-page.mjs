/**
 * What tests of sessions run inside a page or a module worker: every entry of `globalThis.sessions` is one step. Values
 * in and out are plain JSON.
 */

import * as library from "./offload.mjs";

/** Open sessions by name. */
const open = new Map();
/** What each of them told of others' changes, and when. */
const changes = new Map();
const PRESERVED = 5;

/** Numbers at which `prepare` offloads every result, and summarises nothing as long as there was one. */
const eager = {
  compactAt: { tokens: 1_000 },
  keep: { messages: PRESERVED },
  advanced: { offload: { scanFraction: 1 }, minOffloadGain: 1 },
};

/** Tells the test something and returns what it answers. */
export async function tell(path, body = null, signal) {
  const response = await fetch(path, { method: "POST", body: JSON.stringify(body), signal });
  return response.json();
}

/** As apps do: a page that freezes may never get the answer to what it asked before (seen in Chromium, 1 in 100). */
async function tellUntilAnswered(path, body) {
  for (;;) {
    const signal = AbortSignal.timeout(5_000);
    try {
      return await tell(path, body, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

async function code(action) {
  try {
    await action();
    return "ok";
  } catch (error) {
    return library.CompactionError.isInstance(error) ? error.code : String(error?.stack ?? error);
  }
}

/** A summary that leaves out no fact, so that nothing is appended to it. */
function answerTo(request, mark) {
  const facts = request.facts.map(({ text }) => `- ${text}`).join("\n");
  return `## Current Status\n${mark}\n\n## Key Decisions\n${facts}`;
}

/** What an app can see of a session: the context, every message's fate, and the texts of its offloads. */
async function seen(session) {
  const { messages } = await session.prepare();
  const ledger = await session.context.explain();
  const texts = {};
  for (const { ref } of ledger) {
    if (ref) texts[ref] = await session.recall.read(ref);
  }
  return { messages, ledger, texts };
}

/** One exchange of a tool with its result, in OpenAI chat. */
function exchange(id, result) {
  const call = { id, type: "function", function: { name: "read_file", arguments: `{"path":"src/${id}.rs"}` } };
  return [
    { role: "user", content: `请看 ${id} 👩‍👩‍👧` },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: id, content: result },
    { role: "assistant", content: `${id} is fine.` },
  ];
}

const steps = {
  async databases() {
    return (await indexedDB.databases()).map(({ name }) => name);
  },

  /** Opens a session whose summariser asks the test at `/summarise` first, and then writes `mark`. */
  async open(name, mark, { fallback, ...settings } = {}) {
    const summarize = async (request) => {
      await tellUntilAnswered("/summarise", mark);
      return answerTo(request, mark);
    };
    const asked = { call: summarize, attempts: 1, ...(fallback && { fallback }) };
    open.set(name, await library.openSession({ id: name, ...eager, summarize: asked, ...settings }));
  },

  /** Opens a session over a store of this `kind`, as `name`; from then on its changes are kept. */
  async openOver(name, id, kind) {
    const session = await library.openSession({ id, ...(kind === "default" ? {} : { store: await storeOf(kind) }) });
    const heard = [];
    session.on("change", (change) => heard.push({ ...change, at: Date.now() }));
    open.set(name, session);
    changes.set(name, heard);
  },

  /** What was told of changes, once there are `count` of them, or after a while. */
  async changes(name, count = 0) {
    for (const until = Date.now() + 5_000; changes.get(name).length < count && Date.now() < until; ) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return changes.get(name);
  },

  /** Appends a text of the user; when it was durable. */
  async append(name, content) {
    await open.get(name).append({ role: "user", content });
    return Date.now();
  },

  /** Appends `count` texts one after the other: how long each took in ms, and the codes of those that failed. */
  async appendMany(name, from, count) {
    const [waits, failed] = [[], []];
    for (let nth = 0; nth < count; nth++) {
      const begun = performance.now();
      const outcome = await code(() => steps.append(name, `${from} ${nth}`));
      waits.push(performance.now() - begun);
      if (outcome !== "ok") failed.push(outcome);
    }
    return { waits, failed };
  },

  /** The texts of the log. */
  async logged(name) {
    const texts = [];
    for await (const { content } of open.get(name).archive.history()) texts.push(content);
    return texts;
  },

  /** A session with a result of `size` characters, which becomes a reference: what is logged of its engine, and whether it goes on
   *  with the app's own objects. */
  async outgrow(name, size) {
    const logged = [];
    const logger = (_, line) => logged.push(line);
    const session = await library.openSession({ id: name, ...eager, contextWindow: 100_000_000, logger });
    const result = "a line of a result\n".repeat(size / 19);
    const given = [...exchange("call_1", result), ...exchange("call_2", "short"), ...exchange("call_3", "short")];
    await session.append(...given);
    await session.prepare();
    const { messages } = await session.prepare();
    const { ref } = (await session.context.explain()).find(({ fate }) => fate === "offloaded");
    const isThere = (await session.recall.read(ref)) === result;
    const { ok } = await session.archive.verify();
    await session.close({ delete: true });
    return { logged: logged.filter((line) => line.includes("fresh engine")), same: given.map((message, at) => message === messages[at]), isThere, ok };
  },

  prepared: async (name) => (await open.get(name).prepare()).messages.map(({ content }) => content),
  count: (name) => open.get(name).archive.metadata().totalMessages,
  close: (name) => open.get(name).close(),

  /** As in browsers that have no channels. */
  hideChannels() {
    delete globalThis.BroadcastChannel;
  },

  /** Counts the channels that are open from now on, and what is said on them. */
  watchChannels() {
    channels.open = 0;
    const { BroadcastChannel } = globalThis;
    globalThis.BroadcastChannel = class extends BroadcastChannel {
      constructor(name) {
        super(name);
        channels.open++;
        channels.names.add(name);
      }
      postMessage(message) {
        channels.said.push(message);
        super.postMessage(message);
      }
      close() {
        channels.open--;
        super.close();
      }
    };
  },
  channels: () => ({ ...channels, names: [...channels.names] }),

  /** Takes the lock of every session that is written from now on, as a tab does that is stopped in a commit. */
  holdLocks() {
    const { request } = LockManager.prototype;
    LockManager.prototype.request = function (name, ...rest) {
      return request.call(this, name, ...rest.slice(0, -1), () => new Promise(() => {}));
    };
  },

  codeOfOpening: (name) => code(() => steps.open(name, "", { contextWindow: 32_000 })),
  /** The same with a store that the app passes. */
  codeOfOpeningOwn: (name) => code(() => steps.open(name, "", { store: library.indexedDbStore() })),
  codeOfUse: (name) => code(() => open.get(name).prepare()),

  /** What an append of this session survives, and whether a warning says that it survives nothing. */
  async durable(name) {
    const told = [];
    open.get(name).on("warning", (warning) => told.push([warning.code, warning.durable]));
    await null;
    return { durable: open.get(name).archive.durability, told };
  },

  /** A session on a store that asks to keep its data, and how often the browser was asked while it is used. */
  async usePersisted(name, times) {
    let asked = 0;
    const storage = { persist: () => (asked++, new Promise(() => {})) };
    Object.defineProperty(navigator, "storage", { value: storage, configurable: true });
    for (let nth = 0; nth < times; nth++) {
      const store = library.indexedDbStore({ name });
      const session = await library.openSession({ id: `${nth}`, store });
      await session.append({ role: "user", content: "hello" });
      await session.close();
    }
    return asked;
  },

  /** What a session says of its store's persistence, where the browser answers `before` until it is asked, and then `answer`. */
  async persistence(name, { before, answer, persist }) {
    let asked = 0;
    const storage = { persisted: async () => before, persist: async () => (asked++, answer) };
    Object.defineProperty(navigator, "storage", { value: storage, configurable: true });
    const session = await library.openSession({ id: "one", contextWindow: 32_000, store: library.indexedDbStore({ name, persist }) });
    const warnings = [];
    session.on("warning", ({ code }) => warnings.push(code));
    const turn = () => new Promise((resolve) => setTimeout(resolve, 50));
    await turn();
    const opened = { persisted: session.archive.persisted, warnings: [...warnings] };
    for (let nth = 0; nth < 2; nth++) {
      await session.append({ role: "user", content: "hello" });
      await turn();
    }
    const used = { persisted: session.archive.persisted, warnings, asked };
    await session.close();
    return { opened, used };
  },

  /**
   * Appends texts of `size` to a session until there is no space left, deletes another session, and appends the refused
   * text again. Returns what was acknowledged and how each of it ended.
   */
  async fillAndFree(kept, other, size, limit) {
    const session = await library.openSession({ id: kept });
    const filler = await library.openSession({ id: other });
    const body = (nth) => ({ role: "user", content: `${nth} ${noise(nth, size)}` });
    await session.append(body(0));
    for (let nth = 0; nth < 2; nth++) await filler.append(body(1_000 + nth));
    let acknowledged = 1;
    let refusal = "none";
    while (acknowledged < limit && refusal === "none") {
      const outcome = await code(() => session.append(body(acknowledged)));
      if (outcome === "ok") acknowledged++;
      else refusal = outcome;
    }
    const read = (await session.archive.markdown()).length > size * acknowledged;
    const deleted = await code(() => filler.close({ delete: true }));
    let again = "none";
    // Engines free space a little later.
    for (let tries = 0; tries < 40 && again !== "ok"; tries++) {
      again = await code(() => session.append(body(acknowledged)));
      if (again !== "ok") await new Promise((resolve) => setTimeout(resolve, 250));
    }
    if (again === "ok") acknowledged++;
    await session.close();
    const reopened = await library.openSession({ id: kept });
    let intact = 0;
    for await (const { content } of reopened.archive.history()) if (content === body(intact).content) intact++;
    return { acknowledged, refusal, read, deleted, again, intact };
  },

  appendExchange: (name, id, result) => open.get(name).append(...exchange(id, result)),
  seen: (name) => seen(open.get(name)),
  delete: (name) => open.get(name).close({ delete: true }),

  /** Texts of the user, each in a commit of its own; `slowly` with a moment between them. */
  async say(name, texts, slowly = false) {
    for (const content of texts) {
      // Timers of tabs in the background wait for a second at least.
      if (slowly) await tell("/moment");
      await open.get(name).append({ role: "user", content });
    }
  },

  /** How a compaction ended. */
  async compact(name) {
    try {
      const { success, error, messages } = await open.get(name).compact();
      return { success, code: error?.code ?? null, messages };
    } catch (error) {
      return { success: false, code: error.code ?? String(error) };
    }
  },

  /** What a session holds, without changing it; whether its log is `history`, when that is given. */
  async view(name, history) {
    const session = await library.openSession({ id: name });
    try {
      const found = await seen(session);
      return history ? { ...found, synced: await session.sync(history) } : found;
    } finally {
      await session.close();
    }
  },

  /** As where there is no IndexedDB at all. */
  hideIndexedDb() {
    Object.defineProperty(globalThis, "indexedDB", { value: undefined, configurable: true });
  },

  /** As on a disk that cannot be read. */
  failIndexedDb() {
    IDBFactory.prototype.open = () => {
      const request = new EventTarget();
      request.error = new DOMException("Internal error opening backing store for indexedDB.open.", "UnknownError");
      queueMicrotask(() => request.onerror(new Event("error")));
      return request;
    };
  },

  /**
   * A turn of a session and a compaction that the page does not live through: it is reloaded at `moment`. Tells the
   * test the context before, the summary's text, and each append that was acknowledged.
   */
  async compactAndReload(name, round, moment) {
    let answered = false;
    const session = await library.openSession({
      id: name,
      ...eager,
      summarize: { call: async (request) => {
        const answer = answerTo(request, `round ${round}`);
        const late = { role: "user", content: `appended while round ${round} was summarised` };
        await session.append(late);
        await tell("/acknowledged", [late]);
        await tell("/asked", { summary: answer });
        if (moment.at === "asked") return endless(() => end(moment));
        answered = true;
        if (moment.at === "answered") setTimeout(() => end(moment), moment.ms);
        return answer;
      }, attempts: 1 },
    });
    const result = `result of round ${round}: ${"数据 data 😀 ".repeat(700)}`;
    const said = ["a", "b"].map((nth) => exchange(`call_${round}${nth}`, `${nth}, ${result}`));
    for (const message of said.flat()) {
      await session.append(message);
      await tell("/acknowledged", [message]);
    }
    const { messages } = await session.prepare();
    const { boundary } = await library.splitMessages(messages, { keep: { messages: PRESERVED } });
    await tell("/before", { messages, boundary });
    atCommit(moment, () => answered);
    await session.compact();
    if (moment.at === "ended") end(moment);
  },
};

const channels = { open: 0, names: new Set(), said: [] };

/** One store for all sessions of a page that are `shared`. */
let shared;

async function storeOf(kind) {
  if (kind === "shared") return (shared ??= library.indexedDbStore());
  if (kind === "own") return library.indexedDbStore();
  const bytes = new Uint8Array(32).fill(7);
  const key = await crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
  return library.indexedDbStore({ name: "encrypted", encryptionKey: key });
}

/** Ends the page: by itself, or by the test, which kills the browser. Lets it do nothing more for `block` ms. */
function end({ kill, block = 0 }) {
  if (kill) void tell("/kill");
  else location.reload();
  for (const until = performance.now() + block; performance.now() < until; );
}

function endless(action) {
  action();
  return new Promise(() => {});
}

/** Ends the page in the middle of the commit of the new context, which comes after the answer and after its own record. */
function atCommit(moment, isDue) {
  const { transaction } = IDBDatabase.prototype;
  let due = true;
  IDBDatabase.prototype.transaction = function (stores, mode, ...rest) {
    const mine = due && isDue() && mode === "readwrite" && stores.includes("views");
    if (mine) due = false;
    if (mine && moment.at === "begin") end(moment);
    const begun = transaction.call(this, stores, mode, ...rest);
    if (mine && moment.at === "written") queueMicrotask(() => end(moment));
    if (mine && moment.at === "complete") begun.addEventListener("complete", () => end(moment));
    return begun;
  };
}

/** Text that does not compress, the same for the same seed. */
function noise(seed, size) {
  let text = "";
  for (let state = seed + 1; text.length < size; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    text += String.fromCharCode(33 + (state >>> 24) % 90);
  }
  return text;
}

globalThis.sessions = steps;

if (typeof document === "undefined") {
  // In a module worker: the steps are called by message.
  addEventListener("message", async ({ data: { step, args } }) => {
    try {
      postMessage({ value: await steps[step](...args) });
    } catch (error) {
      postMessage({ error: String(error?.stack ?? error) });
    }
  });
} else {
  void tell("/loaded");
}
