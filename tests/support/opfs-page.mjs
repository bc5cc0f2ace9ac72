/**
 * What `tests/browser/opfs.test.mjs` runs inside a dedicated worker (by `callInWorker`): stores in the private file system of the
 * origin, alone and as copies of a database. The page itself has what only a page can do.
 */

import { opfsStore } from "context-compactor/worker-thread";
import * as library from "./offload.mjs";
import { changeRows, code, open, pairSteps, removeDatabase, WHOLE } from "./pairs-page.mjs";

/** Bytes in front of the JSON of a record, and behind its values. */
const [HEAD, TRAILER] = [78, 34];

const stores = {
  opfs: (name) => opfsStore({ name }),
  small: (name) => opfsStore({ name, rewriteBytes: 20_000 }),
  database: (name) => library.indexedDbStore({ name }),
  pair: (name) => library.mirrorStore(stores.opfs(name), stores.database(name)),
  turned: (name) => library.mirrorStore(stores.database(name), stores.opfs(name)),
};

const copies = (name) => [stores.opfs(name), stores.database(name)];

let suites = 0;
const prefix = `suite-${Math.random()}-`;
/** Names of the stores of suites that are open. */
const names = new WeakMap();
function suite(kind) {
  const factory = async () => {
    const name = `${prefix}${suites++}`;
    const store = stores[kind](name);
    names.set(store, name);
    return store;
  };
  const damage = async (store, key) => {
    const name = names.get(store);
    const isMeant = (other) => JSON.stringify(other) === JSON.stringify(key);
    await changeFiles(name, isMeant);
    if (kind !== "opfs") await changeRows(name, key[0], (row) => isMeant([key[0], ...row]));
  };
  return library.storeConformance(factory, { damage });
}
const cases = { opfs: suite("opfs"), pair: suite("pair"), turned: suite("turned") };

async function folder(name) {
  return (await navigator.storage.getDirectory()).getDirectoryHandle(name);
}

/** Calls `work` with a file that is open, in the turn of whoever uses it. */
async function withFile(name, file, work) {
  return navigator.locks.request(`context-compactor/files/${name}`, async () => {
    const access = await (await (await folder(name)).getFileHandle(file)).createSyncAccessHandle();
    try {
      return work(access);
    } finally {
      access.close();
    }
  });
}

async function filesOf(name) {
  const found = [];
  for await (const file of (await folder(name)).keys()) found.push(file);
  return found.sort();
}

function wholeOf(access) {
  const bytes = new Uint8Array(access.getSize());
  access.read(bytes, { at: 0 });
  return bytes;
}

/** Where the values are of rows that are meant, in a journal. */
function valuesIn(bytes, isMeant) {
  const ascii = (from, to) => new TextDecoder("latin1").decode(bytes.subarray(from, to));
  const found = [];
  const [title] = /^.*\n/.exec(ascii(0, 200));
  for (let at = title.length; at < bytes.length; ) {
    const length = Number(ascii(at + HEAD - 9, at + HEAD - 1));
    const { puts } = JSON.parse(new TextDecoder().decode(bytes.subarray(at + HEAD, at + HEAD + length)));
    at += HEAD + length + 1;
    for (const [key, , size] of puts) {
      if (size > 0 && isMeant(key)) found.push(at);
      at += size;
    }
    at += TRAILER;
  }
  return found;
}

/** Flips a bit of each value that is meant, behind the back of the store that has it; their number. */
async function changeFiles(name, isMeant) {
  const journal = (await filesOf(name)).filter((file) => /^journal-\d+$/.test(file)).at(-1);
  return withFile(name, journal, (access) => {
    const bytes = wholeOf(access);
    const values = valuesIn(bytes, isMeant);
    for (const at of values) access.write(Uint8Array.of(bytes[at] ^ 1), { at });
    access.flush();
    return values.length;
  });
}

const steps = {
  ...pairSteps(stores, copies, cases),
  codeOfAppend: (name, content) => code(() => open.get(name).session.append({ role: "user", content })),
  damageTable: (name, at, table) => (at === 1 ? changeRows(name, table) : changeFiles(name, (key) => key[0] === table)),
  remove: async (name, at) => (at === 0 ? (await navigator.storage.getDirectory()).removeEntry(name, { recursive: true }) : removeDatabase(name)),

  files: filesOf,
  /** The bytes of every file, as text. */
  async bytes(name) {
    const found = {};
    for (const file of await filesOf(name)) found[file] = await withFile(name, file, (access) => Array.from(wholeOf(access), (byte) => String.fromCharCode(byte)).join(""));
    return found;
  },
  /** Puts a text into a file: all of it. */
  async put(name, file, text) {
    const handle = await (await folder(name)).getFileHandle(file, { create: true });
    const access = await handle.createSyncAccessHandle();
    access.truncate(0);
    access.write(Uint8Array.from(text, (letter) => letter.charCodeAt(0)), { at: 0 });
    access.close();
  },

  /** How the first call of a store ends, as text. */
  async refusal(options) {
    try {
      const store = opfsStore(options);
      await store.read([["meta", "a"]]);
      await store.close();
      return "ok";
    } catch ({ code, message }) {
      return `${code}: ${message}`;
    }
  },
  /** A store after it was closed, and one whose files are removed under it. */
  async ends(name) {
    const batch = (text) => ({ expect: [], puts: [[["meta", text], new Uint8Array(4)]], deletes: [], durability: "strict" });
    const [closed, kept] = [opfsStore({ name: `${name} closed` }), opfsStore({ name })];
    await closed.commit(batch("a"));
    await closed.close();
    await kept.commit(batch("a"));
    // A file that is open cannot be removed, but by the browser.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await (await navigator.storage.getDirectory()).removeEntry(name, { recursive: true });
    const found = [await code(() => closed.read([["meta", "a"]])), await code(() => kept.commit(batch("b"))), await code(() => kept.read([["meta", "a"]]))];
    await kept.close();
    const again = opfsStore({ name });
    found.push(await code(() => again.commit(batch("c"))), (await again.scan(["meta"], WHOLE)).length);
    await again.close();
    return found;
  },
  /** Takes the lock of a store's files, and lets go of it when told. */
  async hold(name) {
    await new Promise((held) => void navigator.locks.request(`context-compactor/files/${name}`, () => new Promise((leave) => held((open.set("lock", leave), undefined)))));
  },
  letGo: () => open.get("lock")(),

  /** Appends until there is no room, then makes some. */
  async fill(name, size, limit) {
    const filler = opfsStore({ name, rewriteBytes: size });
    const put = (nth) => ({ expect: [], puts: [[["blobs", "s", nth], crypto.getRandomValues(new Uint8Array(65_536))]], deletes: [], durability: "strict" });
    let [stored, refusal] = [0, "none"];
    while (stored < limit && refusal === "none") {
      const outcome = await code(() => filler.commit(put(stored)));
      if (outcome === "ok") stored++;
      else refusal = outcome;
    }
    const values = (await filler.scan(["blobs"], WHOLE)).map(([, value]) => value.byteLength);
    await filler.close();
    const again = opfsStore({ name, rewriteBytes: size });
    const intact = (await again.scan(["blobs"], WHOLE)).filter(([, value]) => value.byteLength === 65_536).length;
    await again.close();
    return { stored, refusal, read: values.length, intact };
  },

  /** Archives of what can still be read. */
  async salvage(name) {
    const store = opfsStore({ name });
    const found = [];
    for await (const { id, gaps } of library.salvage(store)) found.push({ id, gaps: gaps.length });
    await store.close();
    return found;
  },

  /** Median times of an append, in ms, of each kind of store. */
  async times(count, text) {
    const found = {};
    for (const kind of ["database", "opfs", "pair", "turned"]) {
      const name = `times of ${kind}`;
      await steps.open(name, kind);
      await steps.texts(name, Array.from({ length: 5 }, () => text));
      const waits = await steps.texts(name, Array.from({ length: count }, () => text));
      found[kind] = waits.sort((a, b) => a - b)[count >> 1];
      await steps.close(name);
    }
    return found;
  },
};

globalThis.sessions = steps;

let worker;
/** Calls a step in a worker of this page, where no protocol can. */
steps.inWorker = (step, ...args) => {
  worker ??= new Worker("/js/sessions.js", { type: "module" });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { value, error } }) => (error ? reject(new Error(error)) : resolve(value));
    worker.postMessage({ step, args });
  });
};

if (typeof document !== "undefined") await import("./remote.mjs");
else {
  const answer = (port) => async ({ data: { step, args } }) => {
    try {
      port.postMessage({ value: await steps[step](...args) });
    } catch (error) {
      port.postMessage({ error: String(error?.stack ?? error) });
    }
  };
  if ("onconnect" in globalThis) addEventListener("connect", ({ ports: [port] }) => ((port.onmessage = answer(port)), port.start()));
  else addEventListener("message", answer(globalThis));
}
