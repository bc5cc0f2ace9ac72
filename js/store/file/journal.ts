/**
 * One journal file: appended to by any number of processes, never changed in place, never cut.
 *
 * Nobody holds a lock. A record says where in the file it is to stand and which record it follows; the operating system
 * puts it behind whatever else was appended first, and there it is void. So the file itself decides who came first,
 * alike for everyone who reads it, and a process that was stopped for an hour can harm nothing when it goes on.
 */

import type { FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { CompactionError } from "../../errors.js";
import { corrupt, fileError, indeterminate } from "./faults.js";
import {
  bodyLength,
  encode,
  PRELUDE,
  readPrelude,
  readRecord,
  readTitle,
  SCHEMA,
  SCHEMA_END,
  TITLE_BYTES,
  trailer,
  TRAILER,
} from "./record.js";
import type { Encoded, Record } from "./record.js";
import type { Row, Rows } from "./rows.js";
import { Window } from "./window.js";

/** A whole record and where it is. */
interface Found {
  record: Record;
  sum: string;
  at: number;
  /** Where its first value is. */
  body: number;
  end: number;
}

/** Values that are this near to each other are read at once. */
const GAP = 16 * 1024;
const SPAN = 1024 * 1024;

export class Journal {
  readonly number: number;
  readonly id: string;
  readonly #handle: FileHandle;
  /** Why nothing can be appended; undefined when it can. */
  readonly readOnly: unknown;
  /** Of the last record that counts. */
  #seq = 0;
  #sum = "";
  #sealed = false;
  /** Where the last whole record ends. */
  #end: number;
  /** The size up to which everything was looked at; past `#end` it is what a writer left behind that was killed. */
  #seen: number;
  /** A sync failed: the system may have forgotten what it could not write. */
  suspect = false;
  readonly #users = new Set<Promise<unknown>>();

  private constructor(number: number, handle: FileHandle, readOnly: unknown, id: string, start: number) {
    this.number = number;
    this.#handle = handle;
    this.readOnly = readOnly;
    this.id = id;
    this.#end = this.#seen = start;
  }

  /** Reads the first line. Throws `schema_too_new` and `store_corrupt`; undefined for an empty file. */
  static async open(number: number, handle: FileHandle, readOnly?: unknown): Promise<Journal | undefined> {
    const { size } = await handle.stat();
    if (size === 0) return undefined;
    const found = readTitle(await new Window(handle, size).bytes(0, TITLE_BYTES));
    if (!found) throw corrupt(`journal ${number} was not written by this library`);
    const { schema, sound, id, bytes } = found;
    if (schema >= SCHEMA_END) {
      const range = `this release reads ${SCHEMA} to ${SCHEMA_END - 1}`;
      throw new CompactionError("schema_too_new", `The store has schema ${schema}, ${range}: update the app`);
    }
    if (!sound || schema < SCHEMA) throw corrupt(`the first line of journal ${number} is not what was written`);
    return new Journal(number, handle, readOnly, id, bytes);
  }

  get seq(): number {
    return this.#seq;
  }

  get end(): number {
    return this.#end;
  }

  get sealed(): boolean {
    return this.#sealed;
  }

  /**
   * Reads what was appended since, by whomever, into `rows`; returns the sums of the records that count. Values past
   * `trusted`, which nobody knows to be on the disk, are checked too. Throws `store_corrupt` for damage.
   */
  async advance(rows: Rows, trusted = Infinity): Promise<Set<string>> {
    const sums = new Set<string>();
    const { size, nlink } = await this.#handle.stat();
    if (size < this.#seen) throw corrupt(`journal ${this.number} is shorter than it was`);
    const window = new Window(this.#handle, size);
    while (size > this.#seen && this.#end < size && !this.#sealed) {
      const found =
        (await this.#recordAt(window, this.#end, trusted)) ?? (await this.#recordPast(window, this.#end, trusted));
      if (!found) break;
      if (this.#counts(found)) {
        this.#accept(found, rows);
        sums.add(found.sum);
      }
      this.#end = found.end;
    }
    this.#seen = size;
    if (nlink === 0 && !this.#sealed) {
      throw corrupt(`journal ${this.number} was removed while the store was open`);
    }
    return sums;
  }

  /** Records of what `changes` say, to be appended in one piece behind what was read last. */
  encode(changes: { change: Pick<Record, "puts" | "deletes" | "sealed" | "nonce">; values: Uint8Array[] }[]): Encoded[] {
    let [at, seq, prev] = [this.#seen, this.#seq, this.#sum];
    return changes.map(({ change, values }) => {
      const encoded = encode(this.id, { at, seq: ++seq, prev, ...change }, values);
      [at, prev] = [at + encoded.bytes.length, encoded.sum];
      return encoded;
    });
  }

  /** Appends and reads back; returns the sums of the records that count now, others' among them. */
  async append(records: Encoded[], rows: Rows): Promise<Set<string>> {
    if (this.readOnly) throw fileError(this.readOnly);
    const bytes = records.length === 1 ? records[0]!.bytes : Buffer.concat(records.map(({ bytes }) => bytes));
    const expected = this.#seen + bytes.length;
    let failure: unknown;
    // What a write leaves behind that ended early stays where it is: cutting it off could take another's record along.
    await this.#handle.write(bytes).catch((error: unknown) => (failure = error));
    try {
      const { size, nlink } = await this.#handle.stat();
      if (failure === undefined && size === expected && nlink > 0) {
        for (const { record, sum, body, bytes } of records) {
          this.#accept({ record, sum, at: record.at, body: record.at + body, end: record.at + bytes.length }, rows);
        }
        this.#end = this.#seen = size;
        return new Set(records.map(({ sum }) => sum));
      }
      const sums = await this.advance(rows);
      if (failure === undefined || records.some(({ sum }) => sums.has(sum))) return sums;
    } catch (error) {
      throw CompactionError.isInstance(error) ? error : indeterminate(error);
    }
    throw fileError(failure);
  }

  /** Resolves when everything so far is on the disk. */
  async sync(): Promise<void> {
    try {
      await this.#handle.datasync();
    } catch (error) {
      this.suspect = true;
      throw indeterminate(error);
    }
  }

  /** The values of `rows`, each in a buffer of its own. Throws `store_corrupt` for one that is not what was written. */
  async values(rows: (Row | undefined)[]): Promise<(Uint8Array | undefined)[]> {
    const values = rows.map((row) => row && new Uint8Array(row.bytes));
    const order = rows.flatMap((row, i) => (row ? [{ row, value: values[i]! }] : []));
    order.sort((a, b) => a.row.at - b.row.at);
    for (let i = 0; i < order.length;) {
      const start = order[i]!.row.at;
      const span = [order[i]!];
      let end = start + order[i]!.row.bytes;
      for (i++; i < order.length && order[i]!.row.at - end < GAP; i++) {
        const next = order[i]!.row.at + order[i]!.row.bytes;
        if (next - start > SPAN) break;
        span.push(order[i]!);
        end = Math.max(end, next);
      }
      const bytes = await new Window(this.#handle, end).bytes(start, end - start);
      for (const { row, value } of span) {
        value.set(bytes.subarray(row.at - start, row.at - start + row.bytes));
        if (crc32(value) !== row.crc) {
          throw corrupt(`the value of ${JSON.stringify(row.key)} is not what was written`);
        }
      }
    }
    return values;
  }

  /** Keeps the file open for `work`, which begins at once. */
  using<T>(work: () => Promise<T>): Promise<T> {
    const running = work();
    this.#users.add(running);
    return running.finally(() => this.#users.delete(running));
  }

  /** Closes the file when nobody uses it any more. */
  async retire(): Promise<void> {
    await Promise.allSettled(this.#users);
    await this.#handle.close();
  }

  /** Whether a record is where it was to stand. There it follows the last one that counts, or something is missing. */
  #counts({ record, at }: Found): boolean {
    if (record.at !== at) return false;
    if (record.seq === this.#seq + 1 && record.prev === this.#sum) return true;
    throw corrupt(`what journal ${this.number} has before byte ${at} is not what was written`);
  }

  #accept({ record, sum, body }: Found, rows: Rows): void {
    let at = body;
    for (const [key, version, bytes, crc] of record.puts) {
      rows.set({ key, version, at, bytes, crc });
      at += bytes;
    }
    for (const key of record.deletes) rows.delete(key);
    this.#seq = record.seq;
    this.#sum = sum;
    this.#sealed = record.sealed === true;
  }

  /** The whole record that begins at `at`. */
  async #recordAt(window: Window, at: number, trusted: number): Promise<Found | undefined> {
    const prelude = readPrelude(this.id, await window.bytes(at, PRELUDE));
    if (!prelude) return undefined;
    const { sum, length } = prelude;
    const json = await window.bytes(at + PRELUDE, length + 1);
    const record = readRecord(this.id, sum, json.subarray(0, length).toString());
    if (!record || json[length] !== 0x0a) return undefined;
    const body = at + PRELUDE + length + 1;
    const end = body + bodyLength(record) + TRAILER;
    if (!(await window.bytes(end - TRAILER, TRAILER)).equals(trailer(sum))) return undefined;
    if (end > trusted && !(await this.#sound(window, record, body))) return undefined;
    return { record, sum, at, body, end };
  }

  async #sound(window: Window, { puts }: Record, body: number): Promise<boolean> {
    let at = body;
    for (const [, , bytes, crc] of puts) {
      if (crc32(await window.bytes(at, bytes)) !== crc) return false;
      at += bytes;
    }
    return true;
  }

  /** The next record behind `at`, where no whole one begins, that was meant to stand where it stands. */
  async #recordPast(window: Window, at: number, trusted: number): Promise<Found | undefined> {
    for (let next = at; ;) {
      next = await window.find(this.id, next + 1);
      if (next < 0) return undefined;
      const found = await this.#recordAt(window, next, trusted);
      if (found && found.record.at === next) return found;
    }
  }
}
