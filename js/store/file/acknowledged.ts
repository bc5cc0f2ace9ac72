/**
 * How far the journal is known to be on the disk, in a file of its own. It is written after every sync and before the
 * acknowledgement, so what ends before it was damaged, and what is torn after it was never acknowledged. It is not
 * synced each time: after a power cut it may say less than it could, never more. The place of a note in the file goes by
 * its `seq`, so that a process which comes late with an older one leaves the newer one of another as it is.
 */

import { asciiOf, bytesOf } from "./bytes.js";
import type { Directory, File, Opened } from "./files.js";
import { crc32 } from "./sums.js";

export interface Note {
  /** The journal's. */
  id: string;
  /** Where the last record ends that counts, and its number. */
  end: number;
  seq: number;
}

const BYTES = 72;
const DIGITS = 17;
/** Notes that the file has room for. */
const SLOTS = 16;

export class Acknowledged {
  #handle: File | undefined;
  readonly #readOnly: boolean;

  private constructor(opened: Opened | undefined) {
    this.#handle = opened?.handle;
    this.#readOnly = opened?.readOnly !== undefined;
  }

  /** Opens the note of `directory`; without one it is empty. */
  static async open(directory: Directory): Promise<Acknowledged> {
    return new Acknowledged(await directory.acknowledged(false));
  }

  /** Makes the file where there is none; true when it did. */
  async make(directory: Directory): Promise<boolean> {
    if (this.#handle) return false;
    this.#handle = (await directory.acknowledged(true))?.handle;
    return true;
  }

  /** All that can be read: of this journal and of earlier ones. */
  async read(): Promise<Note[]> {
    if (!this.#handle) return [];
    const bytes = new Uint8Array(SLOTS * BYTES);
    const { bytesRead } = await this.#handle.read(bytes, 0, bytes.length, 0);
    const texts = Array.from({ length: SLOTS }, (_, nth) => asciiOf(bytes, nth * BYTES, Math.min(bytesRead, (nth + 1) * BYTES)));
    return texts.flatMap((text) => {
      const match = /^([a-z2-7]{26}) +(\d+) +(\d+) ([0-9a-f]{8})\n$/.exec(text);
      // One that is damaged claims nothing.
      if (!match || textOf(match[1]!, Number(match[2]), Number(match[3])) !== text) return [];
      return [{ id: match[1]!, end: Number(match[2]), seq: Number(match[3]) }];
    });
  }

  /** It only helps to find damage, so a failure is no failure of the commit. */
  async write({ id, end, seq }: Note): Promise<void> {
    if (this.#readOnly) return;
    await this.#handle?.write(textOf(id, end, seq), (seq % SLOTS) * BYTES, "latin1").catch(() => {});
  }

  async close(): Promise<void> {
    if (!this.#readOnly) await this.#handle?.datasync().catch(() => {});
    await this.#handle?.close();
  }
}

/** The newest of `notes` that is of journal `id`. */
export function noteOf(notes: Note[], id: string): Note | undefined {
  return notes.filter((note) => note.id === id).sort((a, b) => b.seq - a.seq)[0];
}

function textOf(id: string, end: number, seq: number): string {
  const text = `${id} ${String(end).padStart(DIGITS)} ${String(seq).padStart(DIGITS)} `;
  return `${text}${crc32(bytesOf(text)).toString(16).padStart(8, "0")}\n`;
}
