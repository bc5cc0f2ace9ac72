/** Finds the records in the bytes of a journal, and says of each whether it is as it was written. */

import { asciiOf, has } from "./bytes.js";
import type { File } from "./files.js";
import { mendHead, readHead } from "./mend.js";
import { bodyLength, PRELUDE, trailer, TRAILER } from "./record.js";
import type { Record } from "./record.js";
import { crc32 } from "./sums.js";
import { Window } from "./window.js";

/** A whole record and where it is. */
export interface Found {
  record: Record;
  sum: string;
  at: number;
  /** Where its first value is. */
  body: number;
  end: number;
  /** Its values are what was written, as far as that must be checked. */
  sound: boolean;
  /** It was written since the journal was opened here. */
  live: boolean;
}

export class Reader {
  readonly #id: string;
  readonly #size: number;
  readonly #window: Window;
  readonly #vouched: number;
  readonly #opened: number;

  /**
   * Of the first `size` bytes of journal `id`. What ends before `vouched` was on the disk once: there a record counts
   * with a value that is damaged. Behind it values are checked, but for what ends behind `opened`: it was written since the
   * journal was opened here, so that no power cut can have been in between.
   */
  constructor(id: string, handle: File, size: number, vouched: number, opened: number) {
    this.#id = id;
    this.#size = size;
    this.#window = new Window(handle, size);
    this.#vouched = vouched;
    this.#opened = opened;
  }

  /** The record that begins at `at`, or else the next one that was meant to be where it is. */
  async next(at: number): Promise<Found | undefined> {
    return (await this.#recordAt(at)) ?? this.#recordPast(at, this.#size);
  }

  /** The whole record that begins at `at`. */
  async #recordAt(at: number): Promise<Found | undefined> {
    const read = (length: number) => this.#window.bytes(at, length);
    const head = (await readHead(this.#id, read)) ?? (await mendHead(this.#id, read));
    if (!head) return undefined;
    const { record, sum } = head;
    const body = at + head.length;
    const end = body + bodyLength(record) + TRAILER;
    if (end > this.#size) return undefined;
    const isVouched = record.base === true || end <= this.#vouched;
    const live = end > this.#opened;
    if (!has(await this.#window.bytes(end - TRAILER, TRAILER), trailer(sum))) {
      // It was torn, and another one is where it would end; or its own end is damaged.
      if (record.at !== at) return undefined;
      const isTorn = isVouched ? await this.#recordPast(at, end) : !live || (await this.#isBegunPast(at, end));
      if (isTorn) return undefined;
    }
    const sound = isVouched || live || (await this.#isSound(record, body));
    return { record, sum, at, body, end, sound, live };
  }

  async #isSound({ puts }: Record, body: number): Promise<boolean> {
    let at = body;
    for (const [, , bytes, crc] of puts) {
      if (crc32(await this.#window.bytes(at, bytes)) !== crc) return false;
      at += bytes;
    }
    return true;
  }

  /** The next record after `at` and before `end`, where no whole one begins, that was meant to be where it is. */
  async #recordPast(at: number, end: number): Promise<Found | undefined> {
    for (let next = at; ;) {
      next = await this.#start(next + 1, end);
      if (next < 0) return undefined;
      const found = await this.#recordAt(next);
      if (found && found.record.at === next) return found;
    }
  }

  /** Whether another record was begun after `at` and before `end`, of which a few bytes may be all that was written. */
  async #isBegunPast(at: number, end: number): Promise<boolean> {
    if ((await this.#window.find(this.#id, at + 1, end)) >= 0) return true;
    const last = asciiOf(await this.#window.bytes(end - this.#id.length, this.#id.length));
    return Array.from(this.#id, (_, nth) => this.#id.slice(0, nth + 1)).some((begin) => last.endsWith(begin));
  }

  /** Where a record may begin next, from `at` on: its id is there, or what it says of its place. -1 for nowhere. */
  async #start(at: number, end: number): Promise<number> {
    const id = await this.#window.find(this.#id, at, end);
    const until = (id < 0 ? end : id) + PRELUDE;
    for (let from = at + PRELUDE; ;) {
      const place = await this.#window.find('{"at":', from, until);
      if (place < 0) return id;
      const start = place - PRELUDE;
      const text = `{"at":${start},`;
      if (has(await this.#window.bytes(place, text.length), text)) return start;
      from = place + 1;
    }
  }
}
