/** The files of a store in the private file system of an origin. */

import { CompactionError } from "../../errors.js";
import { ACKNOWLEDGED, KEPT, keptName, NAME, nameOf, numbers } from "../file/files.js";
import type { Directory, Fresh, Opened } from "../file/files.js";
import { randomId } from "../file/record.js";
import { ALONE, inTime, isNamed, opfsError } from "./faults.js";
import { OpfsFile } from "./file.js";
import { Turns } from "./turns.js";

const PIECE = 4 * 1024 * 1024;

export class OpfsDirectory implements Directory {
  readonly #handle: FileSystemDirectoryHandle;
  readonly #turns: Turns;

  private constructor(handle: FileSystemDirectoryHandle, lock: string) {
    this.#handle = handle;
    this.#turns = new Turns(lock);
  }

  /** Makes the directory where there is none. */
  static async open(name: string): Promise<OpfsDirectory> {
    checkPlatform();
    try {
      const root = await inTime(navigator.storage.getDirectory());
      const handle = await inTime(root.getDirectoryHandle(name, { create: true }));
      return new OpfsDirectory(handle, `context-compactor/files/${name}`);
    } catch (error) {
      // What is a name differs between engines.
      if (error instanceof TypeError) throw new CompactionError("invalid_option", `name: is none that this browser takes (${error.message})`, { field: "name", cause: error });
      throw opfsError(error);
    }
  }

  turn<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.take(work);
  }

  within<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.join(work);
  }

  close(): Promise<void> {
    return this.#turns.close();
  }

  async look(): Promise<{ journals: number[]; kept: number[]; used: boolean }> {
    return this.within(async () => {
      const names = await this.#names();
      const [journals, used] = [numbers(names), names.includes(ACKNOWLEDGED)];
      const [last, before] = [journals.at(-1), journals.at(-2)];
      // Where a journal was, one is left: the first may be none only before anything was acknowledged.
      if (last !== undefined && (before !== undefined || !used) && !(await this.#isPublished(last))) journals.pop();
      return { journals, kept: numbers(names, KEPT), used };
    });
  }

  async journal(number: number): Promise<Opened | undefined> {
    return this.#existing(nameOf(number), number);
  }

  async kept(number: number): Promise<Opened> {
    return { handle: new OpfsFile(this.#turns, await this.#file(keptName(number))) };
  }

  async acknowledged(make: boolean): Promise<Opened | undefined> {
    return make ? { handle: new OpfsFile(this.#turns, await this.#file(ACKNOWLEDGED, true)) } : this.#existing(ACKNOWLEDGED);
  }

  async fresh(number: number): Promise<Fresh> {
    const name = `${nameOf(number)}.${randomId()}.new`;
    const handle = new OpfsFile(this.#turns, await this.#file(name, true));
    const discard = async () => this.#remove(name).catch(() => {});
    const publish = async () => {
      await this.within(async () => {
        const { journals } = await this.look();
        if (!journals.some((other) => other >= number)) await this.#copy(name, nameOf(number));
      });
      await discard();
    };
    return { handle, publish, discard };
  }

  /** Copied: a file has one name. */
  async keep(number: number): Promise<void> {
    await this.#copy(nameOf(number), keptName(number));
  }

  removeKept(number: number): Promise<void> {
    return this.#remove(keptName(number));
  }

  /** Names are the engine's. */
  async sync(): Promise<void> {}

  /** Without the names that those have in Node: nobody publishes while others do. */
  async clean(number: number): Promise<void> {
    await this.within(async () => {
      for (const name of await this.#names()) {
        const [, digits, isNew] = NAME.exec(name) ?? [];
        const other = Number(digits);
        if (isNew ? other <= number : other < number) await this.#remove(name);
      }
    });
  }

  async #names(): Promise<string[]> {
    const list = async () => {
      const names: string[] = [];
      for await (const name of this.#handle.keys()) names.push(name);
      return names;
    };
    return inTime(list()).catch((error: unknown) => Promise.reject(opfsError(error)));
  }

  /** The file `name`. What it throws where there is none has the name of what the browser threw. */
  #file(name: string, create = false): Promise<FileSystemFileHandle> {
    return inTime(this.#handle.getFileHandle(name, { create })).catch((error: unknown) => Promise.reject(opfsError(error)));
  }

  async #existing(name: string, number?: number): Promise<Opened | undefined> {
    const isLate = number === undefined ? undefined : async () => (await this.look()).journals.some((other) => other > number);
    try {
      return { handle: new OpfsFile(this.#turns, await this.#file(name), isLate) };
    } catch (error) {
      if (isNamed((error as CompactionError).cause, "NotFoundError")) return undefined;
      throw error;
    }
  }

  async #remove(name: string): Promise<void> {
    await this.within(async () => {
      await this.#turns.shut(name);
      await inTime(this.#handle.removeEntry(name)).catch((error: unknown) => {
        if (!isNamed(error, "NotFoundError")) throw opfsError(error);
      });
    });
  }

  /** Whether all of a journal was copied: see `#copy`. */
  async #isPublished(number: number): Promise<boolean> {
    const begin = new Uint8Array(1);
    await new OpfsFile(this.#turns, await this.#file(nameOf(number))).read(begin, 0, 1, 0);
    return begin[0] !== 0;
  }

  /** A file under another name. The first byte comes last: who is killed meanwhile leaves a file without it, which is no journal.
   *  Not every engine can give a file another name. */
  async #copy(from: string, to: string): Promise<void> {
    await this.within(async () => {
      await this.#remove(to);
      const [source, target] = await Promise.all([this.#file(from), this.#file(to, true)]);
      try {
        const [old, copy] = await Promise.all([this.#turns.open(from, source), this.#turns.open(to, target)]);
        const size = old.getSize();
        const take = (at: number, end: number) => {
          const bytes = new Uint8Array(end - at);
          old.read(bytes, { at });
          if (copy.write(bytes, { at }) < bytes.length) throw new DOMException("no room for all of it", "QuotaExceededError");
        };
        for (let at = 1; at < size; at += PIECE) take(at, Math.min(size, at + PIECE));
        copy.flush();
        take(0, 1);
        copy.flush();
      } catch (error) {
        await this.#remove(to).catch(() => {});
        throw opfsError(error);
      }
    });
  }
}

/** Throws where a browser has no such files, or not here. */
function checkPlatform(): void {
  const { storage, locks } = (globalThis.navigator ?? {}) as Partial<Navigator>;
  const unavailable = (what: string) => new CompactionError("store_unavailable", `opfsStore: ${what}: ${ALONE}`);
  if (!storage?.getDirectory) throw unavailable("this browser has no private file system of the origin (WebKitGTK has none, nor has a page without HTTPS)");
  const isWorker = typeof FileSystemFileHandle !== "undefined" && "createSyncAccessHandle" in FileSystemFileHandle.prototype;
  if (!isWorker) throw unavailable("only a dedicated worker can use the files of this origin, no page and no SharedWorker");
  if (!locks) throw unavailable("this browser has no Web Locks");
}
