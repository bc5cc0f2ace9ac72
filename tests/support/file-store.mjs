/** `fileStore` out of its sources, on a disk that a test can fail, stop, kill and cut the power of. */

import { link, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { constants, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundle, mutation } from "./bundle.mjs";

/** Where nothing waits for a real disk. */
const memory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** An empty folder until the test ends; `onDisk` for one that syncs reach. */
export async function folder(context, { onDisk = false } = {}) {
  const path = await mkdtemp(join(onDisk ? tmpdir() : memory, "context-compactor-files-"));
  context.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

const SHIM = `
  import * as real from "node:fs/promises";
  export const disk = { call: (name, args, perform) => perform(...args), handles: new Set() };
  const wrap = (name) => (...args) => disk.call(name, args, real[name]);
  export const [link, mkdir, readdir, realpath, rename, unlink] =
    ["link", "mkdir", "readdir", "realpath", "rename", "unlink"].map(wrap);
  const METHODS = ["close", "datasync", "read", "stat", "sync", "write"];
  export async function open(...args) {
    const handle = await disk.call("open", args, real.open);
    disk.handles.add(handle);
    const method = (name) => (...given) =>
      disk.call(name, given, (...used) => handle[name](...used), { path: args[0], handle });
    return Object.fromEntries(METHODS.map((name) => [name, method(name)]));
  }
`;

/**
 * The store as one process has it, with `disk`, whose `call(name, args, perform, file)` every use of the file system goes
 * through. Each of `changes`, `{ file, from, to }`, replaces a text that occurs once.
 */
export async function loadStore(changes = []) {
  const path = await mkdtemp(join(tmpdir(), "context-compactor-"));
  try {
    const outfile = join(path, "bundle.mjs");
    const source = `
      export { storeConformance } from "./js/store/conformance.ts";
      export { fileStore } from "./js/store/file/node.ts";
      export { disk } from "node:fs/promises";
    `;
    await bundle(source, outfile, { platform: "node", plugins: [shim, mutation(changes, "js/store/file")] });
    return await import(pathToFileURL(outfile).href);
  } finally {
    await rm(path, { recursive: true });
  }
}

/** Where one process waits for another, it is not for long. */
export const QUICK = { file: "store.ts", from: "const HELP_MS = 1_000;", to: "const HELP_MS = 20;" };

/** Dies before it removes what other processes were about to publish. */
export const UNTIDY = {
  file: "directory.ts",
  from: "if (match?.[2] && Number(match[1]) <= number) await unlink(",
  to: "if (match?.[2] && false) await unlink(",
};

/** Dies before it removes anything. */
export const LITTERING = { file: "store.ts", from: "await directory.clean(number).catch(() => {});", to: "" };

const shim = {
  name: "disk",
  setup(build) {
    build.onResolve({ filter: /^node:fs\/promises$/ }, ({ namespace }) => {
      return namespace === "disk" ? { path: "node:fs/promises", external: true } : { path: "disk", namespace: "disk" };
    });
    build.onLoad({ filter: /.*/, namespace: "disk" }, () => ({ contents: SHIM }));
  },
};

/** What changes the disk, or makes a change last. */
const CHANGES = new Set(["datasync", "link", "mkdir", "rename", "sync", "unlink", "write"]);

/** Takes all that was put between a store and its disk away. */
export function reset(disk) {
  disk.call = (name, args, perform) => perform(...args);
}

/** Closes the files of a process that is no more. */
export async function release(disk) {
  for (const handle of disk.handles) await handle.close();
  disk.handles.clear();
}

/**
 * Ends the process at its `at`th change of the disk, of which a write is done by half: nothing that it began or begins
 * later ever ends. Resolves at that moment.
 */
export function killAt(disk, at) {
  const before = disk.call;
  const never = new Promise(() => {});
  let [count, die] = [0];
  const died = new Promise((resolve) => (die = resolve));
  disk.call = async (name, args, perform, file) => {
    if (count === at) return never;
    if (CHANGES.has(name) && ++count === at) {
      if (name === "write" && typeof args[0] !== "string") await file.handle.write(args[0].subarray(0, args[0].length >> 1));
      die();
      return never;
    }
    const result = await before(name, args, perform, file);
    return count === at ? never : result;
  };
  return died;
}

/** Lets the `at`th use of the disk fail with `code`: of what may fail so. A write that ends early (`SHORT`) does half. */
export function failAt(disk, at, code) {
  const fails = (name) => (code === "SHORT" ? name === "write" : code === "ENOSPC" ? CHANGES.has(name) : name !== "close");
  const before = disk.call;
  let [count, failed] = [0];
  disk.call = (name, args, perform, file) => {
    if (!fails(name) || ++count !== at) return before(name, args, perform, file);
    failed = { name, path: file?.path };
    if (code === "SHORT" && typeof args[0] !== "string") {
      return before(name, [args[0].subarray(0, args[0].length >> 1)], perform, file);
    }
    return Promise.reject(Object.assign(new Error(`${code}: made by the test, ${name}`), { code }));
  };
  return { failed: () => failed };
}

/** Stops the process where `wanted(name, args, file)` first holds: `reached` resolves there, `go` lets it go on. */
export function stopAt(disk, wanted) {
  const before = disk.call;
  let reach, go;
  const reached = new Promise((resolve) => (reach = resolve));
  const going = new Promise((resolve) => (go = resolve));
  disk.call = async (name, args, perform, file) => {
    if (disk.call !== before && wanted(name, args, file)) {
      disk.call = before;
      reach();
      await going;
    }
    return before(name, args, perform, file);
  };
  return { reached, go };
}

/** What a power cut may leave of what was not synced: a share, all of it with zeros, or all but for a third. */
export const LEFT = [0, 0.5, 1, "zeros", "hole 0", "hole 1", "hole 2"];
/** The note of what was acknowledged is not synced: a power cut leaves it as it is, as it was before, or without a text. */
export const NOTES = ["kept", "before", "empty"];

/**
 * Knows what of `directory` a power cut leaves: names as of the last sync of the directory, files as of their own last
 * sync. What it returns makes a directory `into` of that, with what `left` and `note` say of what was not synced; names
 * that were removed or replaced since the last sync are so, and new ones are missing.
 */
export async function watchPower(disk, directory) {
  const before = disk.call;
  const names = `${directory}.names`;
  const synced = new Map();
  const notes = { empty: Buffer.alloc(0), before: Buffer.alloc(0) };
  const keepNames = async () => {
    await rm(names, { recursive: true, force: true });
    await mkdir(names);
    for (const name of await readdir(directory)) await link(join(directory, name), join(names, name));
  };
  await keepNames();
  disk.call = async (name, args, perform, file) => {
    const syncs = name === "sync" || name === "datasync";
    const { ino, size } = syncs ? await file.handle.stat() : {};
    if (name === "write" && file.path.endsWith("/acknowledged")) notes.before = await readFile(file.path);
    const result = await before(name, args, perform, file);
    if (name === "open" && args[1] & constants.O_EXCL) synced.delete((await stat(args[0])).ino);
    if (syncs && file.path === directory) await keepNames();
    else if (syncs) synced.set(ino, size);
    return result;
  };
  const files = async () =>
    Promise.all(
      (await readdir(names)).map(async (name) => {
        const path = (await stat(join(directory, name)).catch(() => undefined)) ? join(directory, name) : join(names, name);
        const [bytes, { ino }] = [await readFile(path), await stat(path)];
        return { name, bytes, sure: Math.min(synced.get(ino) ?? 0, bytes.length) };
      }),
    );
  async function cut(left, into, note = "kept") {
    await mkdir(into);
    let page = 0;
    for (const { name, bytes, sure } of await files()) {
      const own = page;
      if (name !== "acknowledged") page += pagesOf(bytes, sure);
      const isThere = (at) => left.has(own + at);
      const some = () => (left.has ? somePages(bytes, sure, isThere, left.isShort) : remaining(bytes, sure, left));
      await writeFile(join(into, name), name === "acknowledged" ? (notes[note] ?? bytes) : some(), { mode: 0o600 });
    }
  }
  /** How many pages are not synced, of all files together. */
  cut.pages = async () => {
    const journals = (await files()).filter(({ name }) => name !== "acknowledged");
    return journals.reduce((sum, { bytes, sure }) => sum + pagesOf(bytes, sure), 0);
  };
  return cut;
}

/** Smaller than a page of the system, and what a disk writes at once: a small journal has several. */
const PAGE = 256;

function pagesOf(bytes, sure) {
  return bytes.length > sure ? Math.ceil(bytes.length / PAGE) - Math.floor(sure / PAGE) : 0;
}

/** What remains of `bytes` where of the pages that are not synced those are there for which `isThere` holds. The others
 *  have zeros behind what is sure; `isShort`: those at the end were not even added to the file. */
function somePages(bytes, sure, isThere, isShort) {
  const first = Math.floor(sure / PAGE);
  let end = sure;
  for (let at = 0; at < pagesOf(bytes, sure); at++) {
    const [from, to] = [Math.max(sure, (first + at) * PAGE), Math.min(bytes.length, (first + at + 1) * PAGE)];
    if (isThere(at)) end = to;
    else bytes.fill(0, from, to);
  }
  return isShort ? bytes.subarray(0, end) : bytes;
}

/** What remains of `bytes`, of which so many are `sure`. */
function remaining(bytes, sure, left) {
  const part = (share) => sure + Math.floor((bytes.length - sure) * share);
  if (typeof left === "number") return bytes.subarray(0, part(left));
  const [, third] = /^hole (.)$/.exec(left) ?? [];
  return bytes.fill(0, third ? part(third / 3) : sure, third ? part((Number(third) + 1) / 3) : bytes.length);
}

/** Everything in a store, by key: texts, or why they are damaged. */
export async function contents(store) {
  const found = {};
  for (const table of ["meta", "sessions", "log", "blobs", "views", "jobs"]) {
    for (const [key, value] of await store.scan([table], { limit: Infinity, maxBytes: Infinity })) {
      found[JSON.stringify(key)] = value.damaged ? { damaged: value.damaged } : new TextDecoder().decode(value);
    }
  }
  return found;
}

/** A batch with what it needs; `puts` are texts. */
export function batch({ expect = [], puts = [], deletes = [], durability = "strict" }) {
  return { expect, puts: puts.map(([key, text]) => [key, new TextEncoder().encode(text)]), deletes, durability };
}

/** The name of the last journal in `directory`. */
export async function journalOf(directory) {
  const names = (await readdir(directory)).filter((name) => /^journal-\d+$/.test(name));
  return join(directory, names.sort().at(-1));
}

/** Changes the bytes of a file. */
export async function edit(path, change) {
  const bytes = await readFile(path);
  await writeFile(path, change(bytes) ?? bytes);
}
