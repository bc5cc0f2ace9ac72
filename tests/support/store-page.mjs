/** What `tests/browser/store.test.mjs` runs inside the page: every entry of `globalThis.stores` is one step. */

import { CompactionError } from "../../js/errors.ts";
import { storeConformance } from "../../js/store/conformance.ts";
import { indexedDbStore } from "../../js/store/indexeddb.ts";

const opened = new Map();
const COUNTER = ["sessions", "counter"];
let suites = 0;

function open(name) {
  if (!opened.has(name)) opened.set(name, indexedDbStore({ name }));
  return opened.get(name);
}

const prefix = `suite-${Math.random()}-`;
const cases = storeConformance(async () => indexedDbStore({ name: `${prefix}${suites++}` }), {
  damage: (store, key) => changeRow(store.name, key, ({ version }) => ({ version, bytes: "no bytes" })),
});
const encryptedCases = storeConformance(
  async () => indexedDbStore({ name: `${prefix}${suites++}`, encryptionKey: await makeKey() }),
  {
    damage: (store, key) =>
      changeRow(store.name, key, ({ version, bytes }) => {
        bytes[bytes.length >> 1] ^= 1;
        return { version, bytes };
      }),
  },
);

/** Changes a row behind the back of the store that has it. */
function changeRow(name, [table, ...row], change) {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const tx = request.result.transaction(table, "readwrite");
      const rows = tx.objectStore(table);
      rows.get(row).onsuccess = ({ target: { result } }) => rows.put(change(result), row);
      tx.oncomplete = () => resolve(request.result.close());
      tx.onabort = () => reject(tx.error);
    };
  });
}

/** While `work` runs, the engine reads no page in which `isBad(row)` is true of one, as Firefox does of damaged rows. */
async function unreadable(isBad, work) {
  const { get } = Object.getOwnPropertyDescriptor(IDBRequest.prototype, "result");
  const result = function () {
    const found = get.call(this);
    if ([found].flat().some((row) => row && isBad(row))) throw new DOMException("made by the test", "InvalidStateError");
    return found;
  };
  Object.defineProperty(IDBRequest.prototype, "result", { configurable: true, get: result });
  try {
    return await work();
  } finally {
    Object.defineProperty(IDBRequest.prototype, "result", { configurable: true, get });
  }
}

function makeKey() {
  return crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}

/** A key that cannot be taken out, kept by the browser from one run to the next; made where there is none. */
function keptKey(id) {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("keys of the app", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("keys");
    request.onerror = () => reject(request.error);
    request.onsuccess = async () => {
      const made = await makeKey();
      const tx = request.result.transaction("keys", "readwrite");
      const table = tx.objectStore("keys");
      let kept;
      table.get(id).onsuccess = ({ target: { result } }) => {
        kept = result ?? made;
        table.put(kept, id);
      };
      tx.oncomplete = () => {
        request.result.close();
        resolve(kept);
      };
    };
  });
}

/** A store of an app that encrypts: `keys` name the kept keys, the one of before second. */
async function openEncrypted(name, [key, previous]) {
  const encryptionKey = await keptKey(key);
  const rotation = previous && { previousEncryptionKey: await keptKey(previous) };
  return indexedDbStore({ name, encryptionKey, ...rotation });
}

function number(bytes) {
  return bytes ? new DataView(bytes.buffer).getUint32(0) : 0;
}

function bytes(number, length = 4) {
  const made = new Uint8Array(length);
  new DataView(made.buffer).setUint32(0, number);
  return made;
}

async function code(action) {
  try {
    await action();
    return "ok";
  } catch (error) {
    return CompactionError.isInstance(error) ? error.code : String(error);
  }
}

/** Settles with the name of the event that ended an open or delete request. */
function ended(request) {
  return new Promise((resolve) => {
    for (const event of ["success", "error"]) request.addEventListener(event, () => resolve(event));
  });
}

globalThis.stores = {
  code,
  cases: () => cases.length,

  async runCase(i) {
    const started = performance.now();
    const error = await cases[i].run().then(
      () => undefined,
      (error) => String(error?.stack ?? error),
    );
    return { name: cases[i].name, error, ms: Math.round(performance.now() - started) };
  },

  /** Names and errors of the cases that fail in an encrypted database. */
  async runAllEncrypted() {
    const failed = [];
    for (const { name, run } of encryptedCases) {
      await run().catch((error) => failed.push(`${name}: ${error?.stack ?? error}`));
    }
    return failed;
  },

  /** What a store in the clear and an encrypted one say when the other's database is opened. */
  async mixed(name, isEncrypted) {
    const begin = isEncrypted ? await openEncrypted(name, ["a"]) : indexedDbStore({ name });
    await begin.commit({ expect: [], puts: [[COUNTER, bytes(1)]], deletes: [], durability: "strict" });
    const other = isEncrypted ? indexedDbStore({ name }) : await openEncrypted(name, ["a"]);
    const codes = [await code(() => other.read([COUNTER])), await code(() => other.scan(["log"], { limit: 1, maxBytes: 1 }))];
    return { codes, count: number((await begin.read([COUNTER]))[0]) };
  },

  /** Writes the text, in the clear where there are no keys. */
  async write(name, text, keys) {
    const store = keys ? await openEncrypted(name, keys) : indexedDbStore({ name });
    const value = new TextEncoder().encode(text);
    const puts = [[["sessions", "s"], value], [["log", "s", 0], value], [["meta", "session", "n"], value]];
    await store.commit({ expect: [], puts, deletes: [], durability: "strict" });
    await store.close();
  },

  /** What was written, or the code of the error. */
  async written(name, keys) {
    const store = keys ? await openEncrypted(name, keys) : indexedDbStore({ name });
    try {
      const values = await store.read([["sessions", "s"], ["log", "s", 0], ["meta", "session", "n"]]);
      return values.map((value) => value && new TextDecoder().decode(value));
    } catch (error) {
      return error.code ?? String(error);
    } finally {
      await store.close();
    }
  },

  /** Why the store that is open says its rows are gone; `anew` asks another one. */
  async dataLoss(name, anew = false) {
    if (!anew) return (await open(name).dataLoss()) ?? null;
    const store = indexedDbStore({ name });
    const loss = await store.dataLoss();
    await store.close();
    return loss ?? null;
  },

  /** Names and errors of the cases that fail in a module worker. */
  runAllInWorker(script) {
    const source = `
      import ${JSON.stringify(new URL(script, location.href).href)};
      const failed = [];
      for (let i = 0; i < stores.cases(); i++) {
        const { name, error } = await stores.runCase(i);
        if (error) failed.push(name + ": " + error);
      }
      postMessage(failed);`;
    const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), {
      type: "module",
    });
    return new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => reject(new Error(event.message));
    });
  },

  /** What a store makes of ten rows of which the engine cannot read the fifth, or none; by then it has them open. */
  async unreadable(name, all) {
    const store = open(name);
    const key = (nth) => ["log", "s", nth];
    const puts = Array.from({ length: 10 }, (_, nth) => [key(nth), new Uint8Array([nth])]);
    await store.commit({ expect: [], puts, deletes: [], durability: "strict" });
    const isBad = ({ bytes }) => all || bytes?.[0] === 4;
    const kind = (value) => value?.damaged ?? value?.[0] ?? "none";
    return unreadable(isBad, async () => {
      const scan = (options) => store.scan(["log", "s"], { limit: 100, maxBytes: 1_000, ...options });
      const [read, found, some, few] = await Promise.all([
        store.read([...puts.map(([key]) => key), key(99)]),
        scan(),
        scan({ after: key(2), limit: 3 }),
        scan({ maxBytes: 6 }),
      ].map((reading) => reading.catch(({ code }) => code)));
      if (typeof read === "string") return [read, found];
      await store.commit({ expect: [], puts: [], deletes: [key(4)], durability: "strict" });
      const pages = [found, some, few, await scan()].map((page) => page.map(([key, value]) => [key[2], kind(value)]));
      return [read.map(kind), ...pages];
    });
  },

  async count(name) {
    return number((await open(name).read([COUNTER]))[0]);
  },

  /** Adds 1, `times` times, each by compare-and-set; returns the number of tries. */
  async increment(name, times) {
    const store = open(name);
    let tries = 0;
    for (let done = 0; done < times;) {
      tries++;
      const count = number((await store.read([COUNTER]))[0]);
      const expect = [{ key: COUNTER, version: count || null }];
      const puts = [[COUNTER, bytes(count + 1)]];
      const outcome = await code(() => store.commit({ expect, puts, deletes: [], durability: "relaxed" }));
      if (outcome === "ok") done++;
      else if (outcome !== "conflict") throw new Error(outcome);
    }
    return tries;
  },

  async upgrade(name, version) {
    const request = indexedDB.open(name, version);
    const result = await ended(request);
    request.result?.close();
    return result;
  },

  /** Opens a connection that never gives way. */
  hold(name, version) {
    const request = indexedDB.open(name, version);
    globalThis.held = request;
    return ended(request);
  },

  /** Whether IndexedDB answers this page at all. */
  answers: (ms) =>
    Promise.race([
      indexedDB.databases().then(() => true),
      new Promise((resolve) => setTimeout(() => resolve(false), ms)),
    ]),

  remove: (name) => ended(indexedDB.deleteDatabase(name)),

  async afterClose() {
    const store = indexedDbStore({ name: "closed" });
    await store.read([COUNTER]);
    await store.close();
    return code(() => store.read([COUNTER]));
  },

  /** Stores rows of `size` bytes until one is refused; then reads the rows back, deletes them and writes again. */
  async fill(name, size, limit) {
    const store = open(name);
    const key = (i) => ["blobs", "s", "b", i];
    const put = (i) =>
      store.commit({ expect: [], puts: [[key(i), noise(i, size)]], deletes: [], durability: "strict" });
    let stored = 0;
    let outcome = "ok";
    while (stored < limit && (outcome = await code(() => put(stored))) === "ok") stored++;
    const keys = Array.from({ length: stored }, (_, i) => key(i));
    const values = await store.read(keys);
    const intact = values.every(
      (value, i) => value && noise(i, size).every((byte, at) => byte === value[at]),
    );
    const unwritten = (await store.read([key(stored)]))[0] === undefined;
    await store.commit({ expect: [], puts: [], deletes: keys, durability: "strict" });
    // Engines free space a little later.
    let again = "none";
    for (let i = 0; i < 20 && again !== "ok"; i++) {
      again = await code(() => put(0));
      if (again !== "ok") await new Promise((resolve) => setTimeout(resolve, 250));
    }
    return { stored, code: outcome, intact: intact && unwritten, again: again === "ok" };
  },

  /** Starts `count` commits at once; returns how many settled and how. */
  async settleMany(name, count) {
    const store = open(name);
    const commits = Array.from({ length: count }, (_, i) => {
      const puts = [[["log", "s", i], bytes(i, 1_000)]];
      return code(() => store.commit({ expect: [], puts, deletes: [], durability: "strict" }));
    });
    const outcomes = await Promise.all(commits);
    return { settled: outcomes.length, codes: [...new Set(outcomes)] };
  },

  /** Appends records for ever: counter, log row and blob in one strict batch. Reports each once it is acknowledged. */
  async appendForEver(name) {
    const store = open(name);
    for (let count = number((await store.read([COUNTER]))[0]); ; count++) {
      await store.commit({
        expect: [{ key: COUNTER, version: count || null }],
        puts: [
          [COUNTER, bytes(count + 1)],
          [["log", "s", count], bytes(count, 100)],
          [["blobs", "s", "b", count], noise(count, 20_000)],
        ],
        deletes: [],
        durability: "strict",
      });
      await fetch("/ack", { method: "POST", body: `${count + 1}` });
    }
  },

  /** The counter, and the first way in which log or blobs do not match it. */
  async verifyLog(name) {
    const store = open(name);
    const head = number((await store.read([COUNTER]))[0]);
    for (const prefix of [
      ["log", "s"],
      ["blobs", "s", "b"],
    ]) {
      let seen = 0;
      let after;
      for (;;) {
        const page = await store.scan(prefix, { limit: 1_000, maxBytes: 4 << 20, ...(after && { after }) });
        if (page.length === 0) break;
        for (const [key, value] of page) {
          const wanted = prefix[0] === "log" ? bytes(seen, 100) : noise(seen, 20_000);
          if (key.at(-1) !== seen)
            return { head, problem: `${prefix[0]} has ${key.at(-1)} in place of ${seen}` };
          if (!wanted.every((byte, i) => byte === value[i]))
            return { head, problem: `${prefix[0]} ${seen} differs` };
          seen++;
        }
        after = page.at(-1)[0];
      }
      if (seen !== head) return { head, problem: `${seen} rows in ${prefix[0]}, the counter says ${head}` };
    }
    return { head };
  },
};

/** Bytes that do not compress, the same for the same seed. */
function noise(seed, size) {
  const made = new Uint8Array(size);
  for (let i = 0, state = seed + 1; i < size; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    made[i] = state >>> 24;
  }
  return made;
}
