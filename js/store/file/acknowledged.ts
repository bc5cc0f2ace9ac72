/**
 * How far the journal is known to be on the disk, in a file of its own. It is written after every sync and before the
 * acknowledgement, so what ends before it was damaged, and what is torn behind it was never acknowledged. It is not
 * synced each time: after a power cut it may say less than it could, never more.
 */

import type { FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
import type { Directory, Opened } from "./directory.js";

export interface Note {
  /** The journal's. */
  id: string;
  /** Where the last record ends that counts, and its number. */
  end: number;
  seq: number;
}

const BYTES = 72;
const DIGITS = 17;

export class Acknowledged {
  #handle: FileHandle | undefined;
  readonly #readOnly: boolean;

  private constructor(opened: Opened | undefined) {
    this.#handle = opened?.handle;
    this.#readOnly = opened?.readOnly !== undefined;
  }

  /** Opens the note of `directory`; without one it is empty. */
  static async open(directory: Directory): Promise<Acknowledged> {
    return new Acknowledged(await directory.acknowledged(false));
  }

  /** Makes the file where there is none. */
  async make(directory: Directory): Promise<void> {
    this.#handle ??= (await directory.acknowledged(true))?.handle;
  }

  async read(): Promise<Note | undefined> {
    if (!this.#handle) return undefined;
    const { bytesRead, buffer } = await this.#handle.read(Buffer.alloc(BYTES), 0, BYTES, 0);
    const text = buffer.toString("latin1", 0, bytesRead);
    const match = /^([a-z2-7]{26}) +(\d+) +(\d+) ([0-9a-f]{8})\n$/.exec(text);
    // One that is damaged claims nothing.
    if (!match || textOf(match[1]!, Number(match[2]), Number(match[3])) !== text) return undefined;
    return { id: match[1]!, end: Number(match[2]), seq: Number(match[3]) };
  }

  /** It only helps to find damage, so a failure is no failure of the commit. */
  async write({ id, end, seq }: Note): Promise<void> {
    if (this.#readOnly) return;
    await this.#handle?.write(textOf(id, end, seq), 0, "latin1").catch(() => {});
  }

  async close(): Promise<void> {
    if (!this.#readOnly) await this.#handle?.datasync().catch(() => {});
    await this.#handle?.close();
  }
}

function textOf(id: string, end: number, seq: number): string {
  const text = `${id} ${String(end).padStart(DIGITS)} ${String(seq).padStart(DIGITS)} `;
  return `${text}${crc32(text).toString(16).padStart(8, "0")}\n`;
}
