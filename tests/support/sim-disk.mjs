/**
 * A disk in memory, as `node:fs/promises` of several processes. What was written and not synced is, after a power cut,
 * there or not, page by page; so are names. What a sync could not write is forgotten, though it can be read until then.
 */

import { constants } from "node:fs";
import * as paths from "node:path";

const PAGE = 4096;
/** What a disk writes at once. */
const SECTOR = 512;
const ROOM = 64;

const failure = (code, what) => Object.assign(new Error(`${code}: simulated, ${what}`), { code });

class File {
  data = Buffer.alloc(0);
  /** What is on the disk. */
  kept = Buffer.alloc(0);
  dirty = new Set();
  links = 0;
  /** Syncs that failed: each who has it open is told once. */
  failures = 0;
  /** Some of what can be read is not on the disk, and no sync brings it there. */
  isForgotten = false;

  constructor(id) {
    this.id = id;
  }

  write(bytes, at) {
    const end = at + bytes.length;
    if (end > this.data.length) this.data = grown(this.data, end);
    bytes.copy(this.data, at);
    for (let page = Math.floor(at / PAGE); page * PAGE < end; page++) this.dirty.add(page);
  }

  /** Writes the pages for which `isWritten` holds to the disk, as far as it has them; what is left is forgotten there. */
  flush(isWritten = () => true) {
    this.kept = this.kept.length > this.data.length ? this.kept.subarray(0, this.data.length) : grown(this.kept, this.data.length);
    for (const page of this.dirty) {
      if (!isWritten(page)) this.isForgotten = true;
      else this.data.copy(this.kept, page * PAGE, page * PAGE, (page + 1) * PAGE);
    }
    this.dirty.clear();
  }
}

/** A copy of `bytes` with `length`, zeros at the end. */
function grown(bytes, length) {
  const longer = Buffer.alloc(length);
  bytes.copy(longer);
  return longer;
}

class Folder {
  names = new Map();
  /** Those that are on the disk. */
  kept = new Map();
}

export class Disk {
  #world;
  #root = new Folder();
  #files = 0;
  /** No room for what is new. */
  full = false;
  /** One in so many uses fails, or does a part; 0 for none. */
  fails = 0;
  /** One in so many syncs fails. */
  failsToSync = 0;
  /** Called with how much was written, each time. */
  written;

  constructor(world) {
    this.#world = world;
  }

  /** `node:fs/promises` of a process. */
  modules = (owner) => {
    const use = (name, work) => (...args) =>
      this.#world.later(owner, () => {
        this.#mayFail(name);
        return work(...args);
      });
    const api = {
      link: use("link", (from, to) => {
        this.#checkRoom();
        const file = this.#find(from) ?? missing(from);
        const [folder, name] = this.#place(to);
        if (folder.names.has(name)) throw failure("EEXIST", `link ${to}`);
        file.links++;
        folder.names.set(name, file);
      }),
      mkdir: use("mkdir", (path) => {
        if (this.#find(path)) throw failure("EEXIST", `mkdir ${path}`);
        this.#checkRoom();
        const [folder, name] = this.#place(path);
        folder.names.set(name, new Folder());
      }),
      readdir: use("readdir", (path) => [...(this.#find(path) ?? missing(path)).names.keys()].sort()),
      realpath: use("realpath", (path) => (this.#find(path) ? path : missing(path))),
      rename: use("rename", (from, to) => {
        this.#checkRoom();
        const [folder, name] = this.#place(from);
        const file = folder.names.get(name) ?? missing(from);
        const [into, other] = this.#place(to);
        const before = into.names.get(other);
        if (before) before.links--;
        folder.names.delete(name);
        into.names.set(other, file);
      }),
      unlink: use("unlink", (path) => {
        const [folder, name] = this.#place(path);
        const file = folder.names.get(name) ?? missing(path);
        file.links--;
        folder.names.delete(name);
      }),
      open: use("open", (path, flags) => this.#open(owner, path, flags)),
    };
    return { "node:fs/promises": api };
  };

  #open(owner, path, flags) {
    const [folder, name] = this.#place(path);
    let file = path === "/" ? this.#root : folder.names.get(name);
    if (file && flags & constants.O_EXCL) throw failure("EEXIST", `open ${path}`);
    if (!file) {
      if (!(flags & constants.O_CREAT)) missing(path);
      this.#checkRoom();
      file = new File(this.#files++);
      file.links = 1;
      folder.names.set(name, file);
    }
    return this.#handle(owner, file, Boolean(flags & constants.O_APPEND));
  }

  #handle(owner, file, isAppended) {
    let [position, told] = [0, file.failures];
    const use = (name, work, torn) => (...args) =>
      this.#world.later(
        owner,
        () => {
          this.#mayFail(name);
          return work(...args);
        },
        undefined,
        torn && (() => torn(...args)),
      );
    const isFile = file instanceof File;
    const sync = () => {
      if (!isFile) {
        this.#mayFailToSync();
        file.kept = new Map(file.names);
        return;
      }
      if (this.failsToSync && this.#world.one(this.failsToSync)) {
        // The system forgets what it could not write.
        file.flush(() => this.#world.one(2));
        file.failures++;
      }
      if (told < file.failures) {
        told = file.failures;
        throw failure("EIO", "sync");
      }
      file.flush();
    };
    const put = (bytes, at) => {
      file.write(bytes, at);
      this.written?.(bytes.length);
      position = at + bytes.length;
      return { bytesWritten: bytes.length };
    };
    /** What a call of `write` writes, and where. */
    const meant = (what, given = 0) => {
      const isText = typeof what === "string";
      const bytes = isText ? Buffer.from(what, "latin1") : what.subarray(given);
      return [Buffer.from(bytes), isAppended ? file.data.length : isText ? given : position];
    };
    const write = (...args) => {
      const [bytes, at] = meant(...args);
      const isNew = at + bytes.length > file.data.length;
      if (this.full && isNew) {
        if (this.#world.one(2)) throw failure("ENOSPC", "write");
        // Some of it still has room.
        return put(bytes.subarray(0, Math.min(bytes.length, this.#world.random(ROOM))), at);
      }
      if (this.fails && this.#world.one(this.fails)) return put(bytes.subarray(0, this.#world.random(bytes.length + 1)), at);
      return put(bytes, at);
    };
    return {
      close: use("close", () => {}),
      datasync: use("sync", sync),
      sync: use("sync", sync),
      stat: use("stat", () => ({ size: isFile ? file.data.length : 0, nlink: isFile ? file.links : 2, isFile: () => isFile })),
      read: use("read", (buffer, offset, length, at) => {
        const bytesRead = Math.max(0, Math.min(length, file.data.length - at));
        file.data.copy(buffer, offset, at, at + bytesRead);
        return { bytesRead, buffer };
      }),
      write: use("write", write, (...args) => {
        const [bytes, at] = meant(...args);
        // A kill ends it between two pages, if at all.
        const pages = Math.ceil((at + bytes.length) / PAGE) - Math.floor(at / PAGE);
        const end = (Math.floor(at / PAGE) + this.#world.random(pages + 1)) * PAGE - at;
        if (end > 0) put(bytes.subarray(0, end), at);
      }),
    };
  }

  #mayFail(name) {
    if (this.fails && name !== "close" && this.#world.one(4 * this.fails)) throw failure("EIO", name);
  }

  #mayFailToSync() {
    if (this.failsToSync && this.#world.one(this.failsToSync)) throw failure("EIO", "sync of a directory");
  }

  #checkRoom() {
    if (this.full) throw failure("ENOSPC", "a new name");
  }

  #find(path) {
    return path.split("/").filter(Boolean).reduce((at, name) => at?.names?.get(name), this.#root);
  }

  #place(path) {
    return [this.#find(paths.dirname(path)) ?? missing(path), paths.basename(path)];
  }

  /** Every process is dead by now: what is left is what the next ones find. */
  cut() {
    const { one, random, pick } = bound(this.#world);
    // Each page and each name for itself, or all alike.
    const how = pick(["mixed", "mixed", "holes", "holes", "old", "new"]);
    const isNew = () => (how === "mixed" ? one(2) : how === "holes" ? !one(5) : how === "new");
    const cutFolder = (folder) => {
      for (const name of new Set([...folder.names.keys(), ...folder.kept.keys()])) {
        const [now, before] = [folder.names.get(name), folder.kept.get(name)];
        const left = now === before || isNew() ? now : before;
        if (left) folder.names.set(name, left);
        else folder.names.delete(name);
      }
      folder.kept = new Map(folder.names);
      for (const inner of folder.names.values()) {
        if (inner instanceof Folder) cutFolder(inner);
        else cutFile(inner, how, isNew, random);
      }
      const files = [...folder.names.values()].filter((file) => file instanceof File);
      for (const file of files) file.links = files.filter((other) => other === file).length;
    };
    cutFolder(this.#root);
  }

  /** Files that are not empty, by name. */
  files() {
    const found = [];
    for (const folder of this.#root.names.values()) {
      if (!(folder instanceof Folder)) continue;
      for (const [name, file] of folder.names) if (file.data.length > 0) found.push({ name, file });
    }
    return found;
  }

  /** Whoever opens the files now takes for stored what a failed sync forgot: nobody tells a process that began later. */
  get isForgetful() {
    return this.files().some(({ file }) => file.isForgotten);
  }

  /** Flips a bit of what is stored, anywhere. */
  flip() {
    const { random } = bound(this.#world);
    const files = this.files();
    let at = random(files.reduce((sum, { file }) => sum + file.data.length, 0) || 1);
    for (const { name, file } of files) {
      if (at < file.data.length) {
        const bit = 1 << random(8);
        const part = partOf(file.data, at);
        file.data[at] ^= bit;
        if (at < file.kept.length) file.kept[at] ^= bit;
        return `${name} byte ${at}, ${part}`;
      }
      at -= file.data.length;
    }
    return undefined;
  }

  /** A page that was meant for one place is at another one, and its own is as it was: nothing, or zeros. */
  misdirect() {
    const { random, pick } = bound(this.#world);
    const files = this.files().filter(({ name }) => name !== "acknowledged");
    if (files.length === 0) return undefined;
    const { name, file } = pick(files);
    const pages = Math.ceil(file.data.length / PAGE);
    const [from, to] = [random(pages), random(pages)];
    const page = Buffer.from(file.data.subarray(from * PAGE, (from + 1) * PAGE));
    for (const bytes of [file.data, file.kept]) {
      bytes.fill(0, Math.min(bytes.length, from * PAGE), Math.min(bytes.length, (from + 1) * PAGE));
      if (from !== to) page.copy(bytes, to * PAGE);
    }
    return `${name} page ${from} at ${to}`;
  }
}

const UNKNOWN = "around the values of another record";
/** Bytes behind the values of a record. */
const TRAILER_BYTES = 34;

/** What of a journal byte `at` is: a value of a table, or what is around the values of a record. One whose head is damaged is
 *  no record that is known. */
function partOf(data, at) {
  const text = data.toString("latin1");
  let record;
  for (const match of text.matchAll(/[a-z2-7]{26} [0-9a-f]{32} [0-9a-f]{8} [ \d]{8} (\{"at":(\d+),.*\})\n/g)) {
    if (match.index > at) break;
    if (match.index === Number(match[2])) record = match;
  }
  if (!record) return UNKNOWN;
  let end = record.index + record[0].length;
  const around = `around the values of the record at ${record.index}`;
  // What says where they are may be damaged itself.
  const puts = record[1].matchAll(/\[\["(\w+)"[^\]]*\],\d+,(\d+),\d+/g);
  if (at >= end) for (const [, table, bytes] of puts) if (at < (end += Number(bytes))) return `a value of ${table}`;
  return at < end + TRAILER_BYTES ? around : UNKNOWN;
}

function missing(path) {
  throw failure("ENOENT", path);
}

function bound(world) {
  return { one: (n) => world.one(n), random: (n) => world.random(n), pick: (list) => world.pick(list) };
}

/** What a power cut leaves of a file that was not synced. */
function cutFile(file, how, isNew, random) {
  const { data, kept } = file;
  const grows = Math.max(0, data.length - kept.length);
  const size = how === "old" ? kept.length : how === "new" || how === "holes" ? data.length : kept.length + [0, grows, random(grows + 1)][random(3)];
  const left = grown(kept.subarray(0, size), size);
  for (const page of file.dirty) {
    const [from, to] = [page * PAGE, Math.min((page + 1) * PAGE, size)];
    if (from >= to) continue;
    if (isNew()) data.copy(left, from, from, to);
    else if (how === "mixed" && random(2) === 0) data.copy(left, from, from, Math.min(to, from + SECTOR * random(PAGE / SECTOR)));
  }
  file.data = left;
  file.kept = Buffer.from(left);
  file.dirty = new Set();
  file.isForgotten = false;
}
