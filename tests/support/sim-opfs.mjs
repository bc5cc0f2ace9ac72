/** The private file system of an origin in memory, with its locks: for workers of several tabs that a test can kill at any change. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle, mutation } from "./bundle.mjs";

const SOURCE = `
  export { storeConformance } from "./js/store/conformance.ts";
  export { opfsStore } from "./js/store/opfs/store.ts";
  export { crc32, sha256 } from "./js/store/file/sums.ts";
`;
const HOST = ["module", "globalThis", "navigator", "FileSystemFileHandle", "BroadcastChannel"];

/** The store as workers have it: what `worker(origin)` is given. Each of `changes`, `{ file, from, to }`, replaces a text that
 *  occurs once in a file of `js/store`. */
export async function loadOpfs(changes = []) {
  const path = await mkdtemp(join(tmpdir(), "context-compactor-"));
  try {
    const outfile = join(path, "bundle.cjs");
    await bundle(SOURCE, outfile, { format: "cjs", plugins: [mutation(changes, "js/store")] });
    return new Function(...HOST, await readFile(outfile, "utf8"));
  } finally {
    await rm(path, { recursive: true });
  }
}

const named = (name) => new DOMException(`simulated: ${name}`, name);
const never = new Promise(() => {});

/** What an origin has: directories of files, of which each has bytes, and those that are on the disk. */
export class Origin {
  folders = new Map();
  #locks = new Map();
  #channels = new Set();

  /** The power is cut: what was not flushed is gone. Everyone is dead. */
  cut() {
    for (const files of this.folders.values()) for (const file of files.values()) file.data = file.kept;
  }

  /** A worker, which a test may kill at its `killAt`th change: of a write half is done then. `died` resolves there. */
  worker(code, killAt = Infinity) {
    const owner = { dead: false, changes: 0 };
    owner.died = new Promise((resolve) => (owner.die = resolve));
    const change = (work, half = () => {}) => {
      if (owner.dead) throw named("AbortError");
      if (++owner.changes !== killAt) return work();
      half();
      this.#kill(owner);
      throw named("AbortError");
    };
    /** Nothing that a dead worker began ends. */
    const soon = async (work) => {
      await new Promise((go) => setImmediate(go));
      if (owner.dead) return never;
      try {
        return await work();
      } catch (error) {
        if (owner.dead) return never;
        throw error;
      }
    };
    const handleOf = (files, name) => ({
      name,
      createSyncAccessHandle: () =>
        soon(() => {
          const file = files.get(name);
          if (!file) throw named("NotFoundError");
          if (file.owner && !file.owner.dead) throw named("NoModificationAllowedError");
          file.owner = owner;
          return {
            getSize: () => file.data.length,
            read(into, { at }) {
              const bytes = file.data.subarray(at, at + into.length);
              into.set(bytes);
              return bytes.length;
            },
            write: (bytes, { at }) => {
              const put = (bytes) => {
                const data = new Uint8Array(Math.max(file.data.length, at + bytes.length));
                data.set(file.data);
                data.set(bytes, at);
                file.data = data;
                return bytes.length;
              };
              return change(() => put(bytes), () => put(bytes.subarray(0, bytes.length >> 1)));
            },
            flush: () => change(() => (file.kept = file.data)),
            close: () => file.owner === owner && (file.owner = undefined),
          };
        }),
    });
    const folderOf = (name) => {
      const files = this.folders.get(name);
      return {
        keys: async function* () {
          yield* [...files.keys()];
        },
        getFileHandle: (file, { create = false } = {}) =>
          soon(() => {
            if (!files.has(file) && !create) throw named("NotFoundError");
            if (!files.has(file)) change(() => files.set(file, { data: new Uint8Array(), kept: new Uint8Array() }));
            return handleOf(files, file);
          }),
        removeEntry: (file) =>
          soon(() => {
            const found = files.get(file);
            if (!found) throw named("NotFoundError");
            if (found.owner && !found.owner.dead) throw named("NoModificationAllowedError");
            change(() => files.delete(file));
          }),
      };
    };
    const storage = {
      getDirectory: () =>
        soon(() => ({
          getDirectoryHandle: (name) => soon(() => (this.folders.has(name) || this.folders.set(name, new Map()), folderOf(name))),
        })),
    };
    const navigator = { storage, locks: { request: (...args) => soon(() => this.#request(owner, ...args)) } };
    const origin = this;
    class Channel {
      constructor(name) {
        Object.assign(this, { name, owner });
        origin.#channels.add(this);
      }
      postMessage(data) {
        for (const other of origin.#channels) if (other !== this && other.name === this.name && !other.owner.dead) setTimeout(() => other.onmessage?.({ data }));
      }
      close() {
        origin.#channels.delete(this);
      }
    }
    const module = { exports: {} };
    code(module, { navigator }, navigator, class { createSyncAccessHandle() {} }, Channel);
    return { ...module.exports, owner };
  }

  #kill(owner) {
    owner.dead = true;
    owner.die();
    for (const queue of this.#locks.values()) {
      for (const asked of queue.filter((asked) => asked.owner === owner)) asked.end();
    }
  }

  async #request(owner, name, options, work) {
    const queue = this.#locks.get(name) ?? [];
    this.#locks.set(name, queue);
    if (options.ifAvailable && queue.length > 0) return work(null);
    const asked = { owner };
    asked.turn = new Promise((go) => (asked.go = go));
    asked.end = () => {
      queue.splice(queue.indexOf(asked), 1);
      queue[0]?.go();
    };
    queue.push(asked);
    if (queue[0] === asked) asked.go();
    await Promise.race([
      asked.turn,
      new Promise((_, reject) => options.signal?.addEventListener("abort", () => (queue[0] === asked || asked.end(), reject(named("AbortError"))))),
    ]);
    try {
      return await work({ name });
    } finally {
      if (!owner.dead) asked.end();
    }
  }
}
