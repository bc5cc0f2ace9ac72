/** A file of a store in the private file system of an origin. It is open while a turn lasts, and may be another one in the next. */

import { CompactionError } from "../../errors.js";
import { bytesOf } from "../file/bytes.js";
import type { File } from "../file/files.js";
import { TITLE_BYTES } from "../file/record.js";
import { isNamed, opfsError } from "./faults.js";
import type { Access, Turns } from "./turns.js";

/** What begins with so many other bytes is another file: a flipped bit changes one. */
const OTHER = 8;

export class OpfsFile implements File {
  readonly #turns: Turns;
  readonly #handle: FileSystemFileHandle;
  /** Of a journal: whether there is a later one, which took its place. */
  readonly #isLate: (() => Promise<boolean>) | undefined;
  /** How it began when it was first read. */
  #begin: Uint8Array | undefined;
  /** The turn in which it was last seen to be the same file. */
  #seen: object | undefined;
  /** Bytes that it had when it was seen last. */
  #size = 0;

  constructor(turns: Turns, handle: FileSystemFileHandle, isLate?: () => Promise<boolean>) {
    [this.#turns, this.#handle, this.#isLate] = [turns, handle, isLate];
  }

  async read(into: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesRead: number }> {
    return this.#use((open) => ({ bytesRead: open.read(into.subarray(offset, offset + length), { at: position }) }));
  }

  async write(what: Uint8Array | string, from = 0): Promise<{ bytesWritten: number }> {
    return this.#use((open) => {
      const isText = typeof what === "string";
      const bytes = isText ? bytesOf(what) : what.subarray(from);
      const at = isText ? from : open.getSize();
      for (let written = 0; written < bytes.length; ) {
        const more = open.write(bytes.subarray(written), { at: at + written });
        // Some engines write as much as there is room for, and no more.
        if (more === 0) throw new DOMException("no room for all of it", "QuotaExceededError");
        written += more;
      }
      return { bytesWritten: bytes.length };
    });
  }

  async stat(): Promise<{ size: number; nlink: number; isReplaced?: boolean }> {
    return this.#turns.join(async () => {
      try {
        return await this.#use((open) => ({ size: (this.#size = open.getSize()), nlink: 1 }));
      } catch (error) {
        if (!(error instanceof Gone)) throw error;
        const isReplaced = (await this.#isLate?.()) ?? false;
        return { size: this.#size, nlink: 0, isReplaced };
      }
    });
  }

  async datasync(): Promise<void> {
    await this.#use((open) => open.flush());
  }

  sync(): Promise<void> {
    return this.datasync();
  }

  /** It is closed when the turn ends. */
  async close(): Promise<void> {}

  /** Calls `work` with the open file. Throws `Gone` where it is not there any more, or another one is. */
  async #use<T>(work: (open: Access) => T): Promise<T> {
    return this.#turns.join(async () => {
      try {
        const open = await this.#turns.open(this.#handle.name, this.#handle);
        if (this.#isLate && this.#seen !== this.#turns.now) this.#check(beginOf(open));
        return work(open);
      } catch (error) {
        throw isNamed(error, "NotFoundError") ? new Gone() : opfsError(error);
      }
    });
  }

  /** Another tab may have removed it and made one of the same name. */
  #check(begin: Uint8Array): void {
    if (this.#begin && isOther(this.#begin, begin)) throw new Gone();
    if (begin.length > 0) this.#begin ??= begin;
    this.#seen = this.#turns.now;
  }
}

/** A file that is not there any more, or is another one: what it had may be somewhere else. */
class Gone extends CompactionError {
  constructor() {
    super("store_unavailable", "The store's files were removed, or written anew by another tab: try again, or make a new store");
  }
}

function beginOf(open: Access): Uint8Array {
  const begin = new Uint8Array(TITLE_BYTES);
  return begin.slice(0, open.read(begin, { at: 0 }));
}

function isOther(before: Uint8Array, now: Uint8Array): boolean {
  return before.reduce((other, byte, at) => other + Number(byte !== now[at]), 0) >= OTHER;
}
