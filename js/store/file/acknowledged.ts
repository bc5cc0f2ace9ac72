/**
 * How far the journal is known to be on the disk, in a file of its own. It is written after every sync and before the
 * acknowledgement, so what ends before it was damaged, and what is torn behind it was never acknowledged. It is not
 * synced each time: after a power cut it may say less than it could, never more.
 */

import type { FileHandle } from "node:fs/promises";
import type { Directory, Opened } from "./directory.js";

export interface Note {
  /** The journal's. */
  id: string;
  end: number;
}

const BYTES = 44;

export class Acknowledged {
  readonly #handle: FileHandle | undefined;
  readonly #readOnly: boolean;

  private constructor(opened: Opened | undefined) {
    this.#handle = opened?.handle;
    this.#readOnly = opened?.readOnly !== undefined;
  }

  /** Opens the note of `directory`; where none can be made it stays empty. */
  static async open(directory: Directory, make: boolean): Promise<Acknowledged> {
    return new Acknowledged(await directory.acknowledged(make));
  }

  async read(): Promise<Note | undefined> {
    if (!this.#handle) return undefined;
    const { bytesRead, buffer } = await this.#handle.read(Buffer.alloc(BYTES), 0, BYTES, 0);
    const match = /^([a-z2-7]{26}) +(\d+)\n$/.exec(buffer.toString("latin1", 0, bytesRead));
    return match ? { id: match[1]!, end: Number(match[2]) } : undefined;
  }

  /** It only helps to find damage, so a failure is no failure of the commit. */
  async write({ id, end }: Note): Promise<void> {
    if (this.#readOnly) return;
    const text = `${id} ${String(end).padStart(BYTES - id.length - 2)}\n`;
    await this.#handle?.write(text, 0, "latin1").catch(() => {});
  }

  async close(): Promise<void> {
    if (!this.#readOnly) await this.#handle?.datasync().catch(() => {});
    await this.#handle?.close();
  }
}
