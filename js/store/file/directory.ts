/** The files of a store in Node. No symbolic link is followed; files are for this user alone. */

import { constants } from "node:fs";
import { link, mkdir, open, readdir, realpath, rename, unlink } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { CompactionError } from "../../errors.js";
import { corrupt } from "./faults.js";
import { ACKNOWLEDGED, KEPT, keptName, NAME, nameOf, numbers } from "./files.js";
import type { Directory, Fresh, Opened } from "./files.js";
import { randomId } from "./record.js";

/** Windows has neither flag; a link there needs rights that few have. A pipe is not waited for. */
const GUARDS = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
/** So many sealed journals keep their names, empty: who wanted to make one of them an hour ago finds it made. */
const KEPT_NAMES = 8;

export class NodeDirectory implements Directory {
  readonly #base: string;

  private constructor(base: string) {
    this.#base = base;
  }

  /** Makes the directory where there is none. */
  static async open(path: string): Promise<NodeDirectory> {
    await make(resolve(path));
    return new NodeDirectory(await realpath(path));
  }

  async look(): Promise<{ journals: number[]; kept: number[]; used: boolean }> {
    const names = await readdir(this.#base);
    return { journals: numbers(names), kept: numbers(names, KEPT), used: names.includes(ACKNOWLEDGED) };
  }

  async journal(number: number): Promise<Opened | undefined> {
    return this.#existing(nameOf(number), constants.O_APPEND);
  }

  async kept(number: number): Promise<Opened> {
    return { handle: await this.#opened(keptName(number), constants.O_RDONLY) };
  }

  async acknowledged(make: boolean): Promise<Opened | undefined> {
    return make ? { handle: await this.#open(ACKNOWLEDGED, constants.O_CREAT) } : this.#existing(ACKNOWLEDGED, 0);
  }

  async fresh(number: number): Promise<Fresh> {
    const name = `${nameOf(number)}.${randomId()}.new`;
    const handle = await this.#open(name, constants.O_CREAT | constants.O_EXCL);
    const discard = async () => {
      await handle.close();
      await unlink(this.#path(name)).catch(() => {});
    };
    const publish = async () => {
      try {
        // Not `rename`: it would replace what another process published.
        await link(this.#path(name), this.#path(nameOf(number)));
      } catch (error) {
        // ENOENT: somebody who knows a later one cleaned this one away.
        if (!["EEXIST", "ENOENT"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
      } finally {
        await discard();
      }
      await this.sync();
    };
    return { handle, publish, discard };
  }

  async keep(number: number): Promise<void> {
    await link(this.#path(nameOf(number)), this.#path(keptName(number))).catch((error: NodeJS.ErrnoException) => {
      // Somebody else kept it, or put the next one in its place already.
      if (!["EEXIST", "ENOENT"].includes(error.code ?? "")) throw error;
    });
  }

  removeKept(number: number): Promise<void> {
    return unlink(this.#path(keptName(number)));
  }

  sync(): Promise<void> {
    return syncDirectory(this.#base);
  }

  async clean(number: number): Promise<void> {
    const names = await readdir(this.#base);
    for (const sealed of numbers(names).filter((other) => other < number)) {
      if (sealed < number - KEPT_NAMES) await unlink(this.#path(nameOf(sealed)));
      else await this.#empty(nameOf(sealed));
    }
    for (const name of names) {
      const match = NAME.exec(name);
      if (match?.[2] && Number(match[1]) <= number) await unlink(this.#path(name)).catch(() => {});
    }
  }

  async close(): Promise<void> {}

  /** Who comes first is decided by the file itself. */
  turn<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  within<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  /** Puts an empty file in place of `name`. Who has it open goes on reading the old one. */
  async #empty(name: string): Promise<void> {
    const handle = await this.#open(name, 0);
    const { size } = await handle.stat();
    await handle.close();
    if (size === 0) return;
    const other = `${name}.${randomId()}.new`;
    await (await this.#open(other, constants.O_CREAT | constants.O_EXCL)).close();
    await rename(this.#path(other), this.#path(name));
  }

  /** Opens a file for reading and writing, or for reading alone where this process may not write. */
  async #existing(name: string, flags: number): Promise<Opened | undefined> {
    try {
      return { handle: await this.#open(name, flags) };
    } catch (error) {
      const { code = "" } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") return undefined;
      if (!["EACCES", "EPERM", "EROFS"].includes(code)) throw error;
      return { handle: await this.#opened(name, constants.O_RDONLY), readOnly: error };
    }
  }

  #open(name: string, flags: number): Promise<FileHandle> {
    return this.#opened(name, constants.O_RDWR | flags);
  }

  async #opened(name: string, flags: number): Promise<FileHandle> {
    const path = this.#path(name);
    const handle = await open(path, flags | GUARDS, 0o600);
    try {
      if (!(await handle.stat()).isFile()) throw corrupt(`${name} is no file`);
      if ((await realpath(this.#base)) !== this.#base) {
        throw new CompactionError("store_unavailable", `${this.#base} was moved while the store was open: make a new one`);
      }
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  #path(name: string): string {
    return join(this.#base, name);
  }
}

/** Makes the directory at `path` where there is none. Its name is on the disk before anything is in it, whichever process
 *  made it: that one may have been killed before, or a sync failed. */
async function make(path: string): Promise<void> {
  const above = dirname(path);
  const missing = await realpath(path).then(() => false, (error) => isAny(error, "ENOENT"));
  if (missing && above !== path) {
    await make(above);
    await mkdir(path, { mode: 0o700 }).catch((error) => isAny(error, "EEXIST") || Promise.reject(error));
  }
  await syncDirectory(above).catch((error) => {
    // One that is there may be where this process may not read, or where nothing is ever written.
    if (missing || !isAny(error, "EACCES", "EPERM", "EROFS", "EINVAL")) throw error;
  });
}

function isAny({ code }: NodeJS.ErrnoException, ...codes: string[]): boolean {
  return code !== undefined && codes.includes(code);
}

/** Windows has no such thing, and needs none. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
