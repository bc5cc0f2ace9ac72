/** A file read in large pieces, of which small ones are taken. */

import type { MaybePromise } from "../../types.js";
import { indexOf } from "./bytes.js";
import type { File } from "./files.js";

const PIECE = 256 * 1024;

export class Window {
  readonly #handle: File;
  readonly #size: number;
  #start = 0;
  #bytes = new Uint8Array();

  /** Of the first `size` bytes. */
  constructor(handle: File, size: number) {
    this.#handle = handle;
    this.#size = size;
  }

  /** The bytes from `at` on, fewer where the file ends. They are not to be changed. At once where they are at hand. */
  bytes(at: number, length: number): MaybePromise<Uint8Array> {
    const end = Math.min(at + length, this.#size);
    const taken = () => this.#bytes.subarray(at - this.#start, Math.max(at, end) - this.#start);
    return at < this.#start || end > this.#start + this.#bytes.length ? this.#load(at, end).then(taken) : taken();
  }

  /** Where `text` (ASCII) is next, from `at` on and before `end`; -1 when it is not there. */
  async find(text: string, at: number, end: number): Promise<number> {
    for (let from = at; from < Math.min(end, this.#size); from += PIECE) {
      const length = Math.min(PIECE, end - from) + text.length - 1;
      const found = indexOf(await this.bytes(from, length), text);
      if (found >= 0) return from + found;
    }
    return -1;
  }

  async #load(at: number, end: number): Promise<void> {
    const wanted = Math.max(0, Math.min(Math.max(end, at + PIECE), this.#size) - at);
    const bytes = new Uint8Array(wanted);
    let read = 0;
    while (read < wanted) {
      const { bytesRead } = await this.#handle.read(bytes, read, wanted - read, at + read);
      if (bytesRead === 0) break;
      read += bytesRead;
    }
    this.#start = at;
    this.#bytes = bytes.subarray(0, read);
  }
}
