/**
 * A world of its own for the stores and the engine: one seed decides every order, every time and every fault. What a
 * process asks of it (a disk, a database, a timer) happens as a task, one after the other, each at a moment that the seed
 * chose; time goes on from task to task and nobody waits for it. Nothing that could happen next, while somebody waits, is
 * a call without an end.
 */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle, mutation, ROOT } from "./bundle.mjs";
import { generator } from "./random.mjs";

const real = createRequire(import.meta.url);
/** Lets every promise that is ready go on. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Where a call that never ends would wait for ever on something that does happen, as a timer. */
const MOST_TASKS = 300_000;

export class World {
  now = 1_790_000_000_000;
  #jumped = 0;
  #tasks = [];
  #order = 0;
  #count = 0;
  #failure;

  constructor(seed) {
    this.random = generator(seed);
  }

  /** True in one of `n` cases. */
  one(n) {
    return this.random(n) === 0;
  }

  pick(list) {
    return list[this.random(list.length)];
  }

  /** What clocks show: it may jump. */
  get clock() {
    return Math.floor(this.now) + this.#jumped;
  }

  jump(ms) {
    this.#jumped += ms;
  }

  /** Does `perform` in `ms`, and resolves to what it returned, unless `owner`, a process, is dead by then. */
  later(owner, perform, ms = this.random(100) / 50, torn) {
    return new Promise((resolve, reject) => {
      const run = async () => {
        try {
          resolve(await perform());
        } catch (error) {
          reject(error);
        }
      };
      this.#add({ owner, run, torn, due: this.now + ms });
    });
  }

  /** Calls `call` in `ms`; returns what takes it back. */
  timer(owner, call, ms) {
    return this.#add({ owner, run: call, due: this.now + Math.max(0, ms) });
  }

  cancel(task) {
    const at = this.#tasks.indexOf(task);
    if (at >= 0) this.#tasks.splice(at, 1);
  }

  /** Ends a process: nothing that it began ends, or is done by a part. */
  kill(owner) {
    owner.dead = true;
    const own = this.#tasks.filter((task) => task.owner === owner);
    this.#tasks = this.#tasks.filter((task) => task.owner !== owner);
    for (const { torn } of own) torn?.();
    for (const end of owner.ends.splice(0)) end();
  }

  /** What must not happen has happened, where nobody waits for it. */
  fail(error) {
    this.#failure ??= error;
  }

  /** Runs until `work` has ended. */
  async run(work) {
    let ended = false;
    const result = work().finally(() => (ended = true));
    result.catch(() => {});
    for (;;) {
      await settled();
      if (this.#failure) throw this.#failure;
      if (ended) return result;
      const task = this.#next();
      if (!task) throw new Error("a call never ends: nothing is left that could end it");
      if (++this.#count > MOST_TASKS) throw new Error("a call never ends");
      this.now = Math.max(this.now, task.due);
      await task.run();
    }
  }

  #add(task) {
    task.order = this.#order++;
    if (!task.owner?.dead) this.#tasks.push(task);
    return task;
  }

  #next() {
    let first;
    for (const task of this.#tasks) {
      if (!first || task.due < first.due || (task.due === first.due && task.order < first.order)) first = task;
    }
    if (first) this.#tasks.splice(this.#tasks.indexOf(first), 1);
    return first;
  }
}

/** The stores out of their sources, and the package: what a world needs to start processes. */
export class Program {
  #stores;
  #package;
  #wasm;
  #engine;
  #worlds = 0;
  /** Places for processes. Code that ran before is fast: a new process takes the place of a dead one. */
  #slots = [];

  /** Each of `changes`, `{ file, from, to }` with a path from `js/store` on, replaces a text that occurs once. */
  static async load(changes = []) {
    const program = new Program();
    program.#stores = await compiled(STORES, [mutation(changes, "js/store")]);
    program.#package = await compiled(PACKAGE);
    program.#wasm = await WebAssembly.compile(await readFile(join(ROOT, "pkg/core.wasm")));
    return program;
  }

  /** The package for `world`. Sessions of processes that were killed stay in its memory, so it is begun anew at times. */
  async engine(world) {
    if (this.#worlds++ % WORLDS === 0) {
      this.#engine = { slot: new Slot() };
      this.#engine.library = this.#engine.slot.run(this.#package);
      await this.#engine.library.initialize(this.#wasm);
      await whole(this.#engine);
    }
    const { slot, library } = this.#engine;
    slot.enter(world, { dead: false, ends: [] });
    return library;
  }

  /** A process: `{ owner, stores }`. `host` makes what it has beside the language, of its owner: `globals` and `modules`. */
  start(world, host = {}) {
    let slot = this.#slots.find((slot) => slot.owner.dead || slot.world !== world);
    if (!slot) {
      this.#slots.push((slot = new Slot()));
      slot.stores = slot.run(this.#stores);
    }
    const owner = { dead: false, ends: [] };
    slot.enter(world, owner, { globals: host.globals?.(owner), modules: host.modules?.(owner) });
    return { owner, stores: slot.stores };
  }
}

const WORLDS = 50;

/** Loads all stages of the engine: nothing that happens outside of a world is waited for in it. */
async function whole({ slot, library }) {
  slot.enter(new World(0), { dead: false, ends: [] });
  const session = await library.openSession({ store: "memory", contextWindow: 8_000 });
  await session.context.plan();
  await session.archive.verify();
  await session.close();
}

const PACKAGE = `export { deleteSession, initialize, openSession } from "context-compactor/slim";`;
const STORES = `
  export { fileStore } from "./js/store/file/node.ts";
  export { durableObjectStore } from "./js/store/durable/store.ts";
  export { indexedDbStore } from "./js/store/indexeddb.ts";
  export { encryptedStore } from "./js/store/encrypted.ts";
  export { storeConformance } from "./js/store/conformance.ts";
`;

const GLOBALS = ["setTimeout", "clearTimeout", "Date", "Math", "crypto", "navigator", "indexedDB", "IDBKeyRange", "BroadcastChannel", "localStorage", "console"];

/** `source` as a function of what a module and a host have. */
async function compiled(source, plugins = []) {
  const path = await mkdtemp(join(tmpdir(), "context-compactor-"));
  try {
    const outfile = join(path, "bundle.cjs");
    await bundle(source, outfile, { platform: "node", format: "cjs", plugins });
    return new Function("module", "require", "globalThis", ...GLOBALS, await readFile(outfile, "utf8"));
  } finally {
    await rm(path, { recursive: true });
  }
}

/** Where code runs: what it finds around itself is that of the process that has entered. */
class Slot {
  /** Runs `code`, and returns what it exports. */
  run(code) {
    const slot = this;
    const host = (name) => slot.globals[name];
    const own = {
      setTimeout(call, ms = 0, ...args) {
        const { world, owner } = slot;
        return Object.assign(world.timer(owner, () => call(...args), ms), { unref() {} });
      },
      clearTimeout: (task) => task && slot.world.cancel(task),
      Date: class extends Date {
        constructor(...args) {
          super(...(args.length > 0 ? args : [slot.world.clock]));
        }
        static now() {
          return slot.world.clock;
        }
      },
      Math: Object.create(Math, { random: { value: () => slot.world.random(2 ** 32) / 2 ** 32 } }),
      crypto: cryptoOf(slot),
      navigator: Object.defineProperty({}, "locks", { get: () => host("locks") }),
      indexedDB: { open: (...args) => host("indexedDB").open(...args) },
      IDBKeyRange: { bound: (...args) => host("IDBKeyRange").bound(...args) },
      BroadcastChannel: class {
        constructor(name) {
          return new (host("BroadcastChannel"))(name);
        }
      },
      localStorage: {
        getItem: (name) => host("localStorage").getItem(name),
        setItem: (name, value) => host("localStorage").setItem(name, value),
      },
      // What nobody listens to would be shouted there.
      console: { ...console, warn() {}, error() {} },
    };
    const builtin = {
      "node:timers/promises": {
        setTimeout(ms) {
          const { world, owner } = slot;
          return new Promise((go) => world.timer(owner, go, ms));
        },
      },
      "node:crypto": { ...real("node:crypto"), randomBytes: (length) => Buffer.from(filled(slot.world, new Uint8Array(length))) },
      "node:fs/promises": Object.fromEntries(FILES.map((name) => [name, (...args) => slot.modules["node:fs/promises"][name](...args)])),
    };
    // Stores of Node need no more than what they import; the package looks for storage of its own here.
    const around = Object.create(globalThis, {
      crypto: { value: own.crypto },
      navigator: { value: own.navigator },
      indexedDB: { value: own.indexedDB },
      localStorage: { value: undefined },
      BroadcastChannel: { value: own.BroadcastChannel },
    });
    const module = { exports: {} };
    code(module, (name) => builtin[name] ?? real(name), around, ...GLOBALS.map((name) => own[name]));
    return module.exports;
  }

  enter(world, owner, { globals = {}, modules = {} } = {}) {
    Object.assign(this, { world, owner, globals, modules });
  }
}

const FILES = ["link", "mkdir", "open", "readdir", "realpath", "rename", "unlink"];

function filled({ random }, bytes) {
  for (let at = 0; at < bytes.length; at++) bytes[at] = random(256);
  return bytes;
}

/** WebCrypto, which takes its time as everything else does, so that answers come in an order that the seed decides. */
function cryptoOf(slot) {
  const { subtle } = crypto;
  const timed = (name) => (...args) => {
    const result = subtle[name](...args);
    result.catch(() => {});
    return slot.world.later(slot.owner, () => result);
  };
  return {
    getRandomValues: (bytes) => filled(slot.world, bytes),
    randomUUID: () => Buffer.from(filled(slot.world, new Uint8Array(16))).toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"),
    subtle: Object.fromEntries(["decrypt", "digest", "encrypt", "importKey"].map((name) => [name, timed(name)])),
  };
}
