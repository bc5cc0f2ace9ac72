/**
 * One journal file: appended to by any number of processes, never changed in place, never cut.
 *
 * There is no lock. A record says where in the file it must be and where the one that it follows ended; the
 * operating system puts it after whatever else was appended first, and there it is void. So the file itself decides who
 * came first, alike for everyone who reads it, and a process that was stopped for an hour can harm nothing when it goes on.
 *
 * Damage costs what is damaged. A wrong value is a damaged row. What was never known to be on the disk is void when a
 * value of it is wrong, and so is all that follows it; what was void stays so, for whoever appends next says where the last
 * record ended that counts. Records that cannot be read, of those that were on the disk, are a gap: it is reported, and what
 * follows it counts.
 */

import { CompactionError } from "../../errors.js";
import type { Damaged } from "../../types.js";
import { noteOf } from "./acknowledged.js";
import type { Note } from "./acknowledged.js";
import { asciiOf, joined } from "./bytes.js";
import { corrupt, fileError, indeterminate } from "./faults.js";
import { keptName } from "./files.js";
import type { File, Opened } from "./files.js";
import { mendTitle, readHead } from "./mend.js";
import { Reader } from "./reader.js";
import type { Found } from "./reader.js";
import { encode, PRELUDE, readTitle, SCHEMA, SCHEMA_END, title, TITLE_BYTES } from "./record.js";
import type { Encoded, Record } from "./record.js";
import type { Row, Rows } from "./rows.js";
import { crc32 } from "./sums.js";
import { Window } from "./window.js";

/** What a record says but for its place. */
export type Change = Omit<Record, "at" | "after" | "seq">;

/** Bytes of the file that count no more. */
interface Void {
  from: number;
  to: number;
}

/** Values that are this near to each other are read at once. */
const GAP = 16 * 1024;
const SPAN = 1024 * 1024;

export class Journal {
  readonly number: number;
  readonly id: string;
  readonly #handle: File;
  /** Why nothing can be appended; undefined when it can. */
  readonly readOnly: unknown;
  /** Where the first record begins. */
  readonly #start: number;
  /** Of the last record that counts: its number, and where it ends. */
  #seq = 0;
  #end: number;
  #sealed = false;
  /** Where to look for the next record. Bytes there that are no record are those of a killed writer. */
  #next: number;
  /** The size up to which everything was looked at. */
  #seen = 0;
  /** The size that it was opened with. */
  #opened = Infinity;
  /** What ends before was on the disk once, or counts for somebody who had it open then. */
  #vouched = 0;
  #voids: Void[] = [];
  #lost: string[] = [];
  /** In words, records that counted here and no more: another process could not read them, and went on without them. Only
   *  this one knows. */
  #voided: string[] = [];
  /** Records that counted cannot be read. */
  incomplete = false;
  /** A sync failed: the system may have forgotten what it could not write. */
  suspect = false;
  /** A batch of which nobody knows whether it was written can be read, and may not be on the disk. */
  unsure = false;
  readonly #users = new Set<Promise<unknown>>();

  private constructor(number: number, handle: File, readOnly: unknown, id: string, start: number) {
    this.number = number;
    this.#handle = handle;
    this.readOnly = readOnly;
    this.id = id;
    this.#start = this.#end = this.#next = start;
  }

  /**
   * Reads the whole journal into `rows`; `notes` say how far it is known to be on the disk. Undefined for an empty file.
   * With `salvaging` all of it was, where no note says how far, and its records say whose they are where nothing else does.
   * Throws `schema_too_new`, and `store_corrupt` where nothing can be read.
   */
  static async open(
    number: number,
    { handle, readOnly }: Opened,
    rows: Rows,
    notes: Note[],
    salvaging = false,
  ): Promise<Journal | undefined> {
    const { size } = await handle.stat();
    if (size === 0) return undefined;
    const window = new Window(handle, size);
    const start = await window.bytes(0, TITLE_BYTES);
    const found = readTitle(start);
    const titled = found?.sound ? found : mendTitle(start, notes.map(({ id }) => id));
    const { schema } = titled ?? found ?? {};
    if (schema !== undefined && schema >= SCHEMA_END) {
      const range = `this release reads ${SCHEMA} to ${SCHEMA_END - 1}`;
      throw new CompactionError("schema_too_new", `The store has schema ${schema}, ${range}: update the app`);
    }
    // Whose the records are is known elsewhere, too.
    const id = titled?.id ?? (salvaging ? await idIn(window, size) : undefined) ?? (await idOf(notes, handle, size));
    const nothing = corrupt(`journal ${number} was not written by this library, or its first line is not what was written`);
    if (id === undefined || (titled && titled.schema < SCHEMA)) throw nothing;
    const journal = new Journal(number, handle, readOnly, id, titled?.bytes ?? title(id).length);
    const ours = noteOf(notes, id);
    journal.#vouched = ours?.end ?? (salvaging ? size : 0);
    await journal.#open(rows);
    if (!titled && journal.#seq === 0) throw nothing;
    journal.#miss(rows, ours);
    return journal;
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

  /** In words, what is missing and not reported yet. */
  get lost(): readonly string[] {
    return [...this.#lost, ...this.#voided];
  }

  /** What of it nobody else can report. */
  get voided(): readonly string[] {
    return this.#voided;
  }

  /** What is missing was reported. */
  told(): void {
    this.#lost = this.#voided = [];
  }

  /** Reads what was appended since, by whomever, into `rows`. Where that is no record, `notes` say whether it was one: each
   *  time, as who wrote it may be about to acknowledge it. */
  async advance(rows: Rows, notes: () => Promise<Note[]>): Promise<void> {
    await this.#read(rows);
    if (this.#next >= this.#seen || this.#sealed) return;
    const ours = noteOf(await notes(), this.id);
    // What comes after that which was looked at may have been written since.
    if (!ours || ours.seq <= this.#seq || ours.end > this.#seen) return;
    // Another process wrote and acknowledged it, and it was damaged since: it is read as by who opens the journal now.
    [this.#vouched, this.#voids, this.#seen, this.#opened] = [ours.end, [], 0, Infinity];
    this.#restart(rows);
    await this.#open(rows);
    this.#miss(rows, ours);
  }

  async #open(rows: Rows): Promise<void> {
    await this.#read(rows);
    this.#opened = this.#seen;
  }

  /** Returns the sums of the records that count. */
  async #read(rows: Rows): Promise<Set<string>> {
    const sums = new Set<string>();
    const { size, nlink, isReplaced } = await this.#handle.stat();
    if (isReplaced) {
      this.#sealed = true;
      return sums;
    }
    if (size < this.#seen) throw corrupt(`journal ${this.number} is shorter than it was`);
    const reader = () => new Reader(this.id, this.#handle, size, this.#vouched, this.#opened);
    let reading = reader();
    while (size > this.#seen && this.#next < size) {
      const found = await reading.next(this.#next);
      if (!found) break;
      const taken = this.#take(found, rows);
      if (taken) sums.add(found.sum);
      else if (taken === undefined) {
        this.#restart(rows);
        sums.clear();
        reading = reader();
      }
    }
    this.#seen = size;
    if (this.#opened < Infinity && nlink === 0 && !this.#sealed) {
      throw corrupt(`journal ${this.number} was removed while the store was open`);
    }
    return sums;
  }

  /** Records of what `changes` say, to be appended in one piece after what was read last. */
  encode(changes: { change: Change; values: Uint8Array[] }[]): Encoded[] {
    let [at, after, seq] = [this.#seen, this.#end, this.#seq];
    return changes.map(({ change, values }) => {
      const encoded = encode(this.id, { at, after, seq: ++seq, ...change }, values);
      at = after = at + encoded.bytes.length;
      return encoded;
    });
  }

  /** Appends and reads back; returns the sums of the records that count now, others' among them. */
  async append(records: Encoded[], rows: Rows): Promise<Set<string>> {
    if (this.readOnly) throw fileError(this.readOnly);
    const bytes = records.length === 1 ? records[0]!.bytes : joined(records.map(({ bytes }) => bytes));
    const expected = this.#seen + bytes.length;
    let failure: unknown;
    // What a write leaves behind that ended early stays where it is: cutting it off could take another's record along.
    await this.#handle.write(bytes).catch((error: unknown) => (failure = error));
    try {
      const { size, nlink } = await this.#handle.stat();
      if (failure === undefined && size === expected && nlink > 0) {
        for (const { record, body, bytes } of records) {
          this.#accept(record, record.at + body, record.at + bytes.length, rows);
        }
        this.#seen = size;
        return new Set(records.map(({ sum }) => sum));
      }
      const sums = await this.#read(rows);
      if (failure === undefined || records.some(({ sum }) => sums.has(sum))) return sums;
    } catch (error) {
      this.unsure = true;
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
    this.unsure = false;
  }

  /** The values of `rows`, each in a buffer of its own, or why it is not what was written. */
  async values(rows: (Row | undefined)[]): Promise<(Uint8Array | Damaged | undefined)[]> {
    const values: (Uint8Array | Damaged | undefined)[] = rows.map((row) => row && this.#known(row));
    const order = rows.flatMap((row, i) => (row && !values[i] ? [{ row, i }] : []));
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
      for (const { row, i } of span) {
        const value = new Uint8Array(row.bytes);
        value.set(bytes.subarray(row.at - start, row.at - start + row.bytes));
        values[i] = crc32(value) === row.crc ? value : damaged(row, `is not what was written (journal ${this.number})`);
      }
    }
    return values;
  }

  /** What is known to be wrong with a row whatever its value is. */
  #known(row: Row): Damaged | undefined {
    if (row.kept !== undefined) {
      return damaged(row, `was damaged when journal ${row.kept} was written anew; ${keptName(row.kept)} has what is left of it`);
    }
    if (!row.doubt) return undefined;
    return damaged(row, `may be older than it was: records behind its last one cannot be read (journal ${this.number})`);
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

  /** Whether `found` counts, which `rows` have then; undefined when what was read before does not, or more of it. */
  #take(found: Found, rows: Rows): boolean | undefined {
    const { record, at, end, sound, live } = found;
    const { after = this.#end } = record;
    const known = this.#voids.find(({ from, to }) => at < to && end > from);
    // Not where it was to be: another process was faster.
    if (known || record.at !== at) {
      this.#next = known?.to ?? end;
      return false;
    }
    // Behind what ends a journal counts nothing but what says that it never ended.
    if (this.#sealed && after >= this.#end) {
      this.#next = end;
      return false;
    }
    const isVouched = record.base === true || after <= this.#vouched;
    if (!sound || (after > this.#end && !isVouched)) {
      if (sound && live) {
        // Who wrote it counts what was void when this one opened the journal.
        [this.#vouched, this.#voids] = [after, []];
        return undefined;
      }
      this.#voids.push({ from: at, to: end });
      this.#next = end;
      return false;
    }
    if (after < this.#end) {
      this.#voids.push({ from: after, to: at });
      if (live) {
        const where = `bytes ${after} to ${Math.min(this.#end, at)} of journal ${this.number}`;
        this.#voided.push(`another process could not read records that were stored, and went on without them (${where})`);
      }
      return undefined;
    }
    const missing = record.seq - this.#seq - 1;
    if (after > this.#end || missing > 0) this.#gap(rows, missing, after > this.#end ? after : at);
    this.#accept(record, found.body, end, rows);
    return true;
  }

  /** What is missing at the end of what `note` says was on the disk. */
  #miss(rows: Rows, note: Note | undefined): void {
    if (note && this.#end < note.end) this.#gap(rows, note.seq - this.#seq, note.end);
    this.#seq = Math.max(this.#seq, note?.seq ?? 0);
  }

  #restart(rows: Rows): void {
    rows.clear();
    [this.#seq, this.#sealed, this.#lost, this.incomplete] = [0, false, [], false];
    this.#end = this.#next = this.#start;
  }

  /** Records that counted cannot be read, from the last one on that can, up to `to`. */
  #gap(rows: Rows, missing: number, to: number): void {
    const records = Math.max(1, missing);
    const where = `bytes ${this.#end} to ${to} of journal ${this.number}`;
    this.#lost.push(`${records} of the stored records cannot be read (${where}): what they wrote is gone, what they deleted may be back`);
    this.incomplete = true;
    rows.doubt(records);
  }

  #accept(record: Record, body: number, end: number, rows: Rows): void {
    let at = body;
    for (const [key, version, bytes, crc, kept] of record.puts) {
      rows.set({ key, version, at, bytes, crc, ...(kept !== undefined && { kept }) });
      at += bytes;
    }
    for (const key of record.deletes) rows.delete(key);
    if (record.lost) [this.#lost, this.#voided] = [record.lost, []];
    this.#seq = record.seq;
    this.#end = this.#next = end;
    this.#sealed = record.sealed === true;
  }
}

/** Of which of the noted journals there are records in a file. */
async function idOf(notes: Note[], handle: File, size: number): Promise<string | undefined> {
  for (const id of new Set(notes.map(({ id }) => id))) {
    if (await new Reader(id, handle, size, 0, 0).next(title(id).length)) return id;
  }
  return undefined;
}

/** Whose the first record is that says so. */
async function idIn(window: Window, size: number): Promise<string | undefined> {
  for (let at = PRELUDE; (at = await window.find('{"at":', at, size)) >= 0; at++) {
    const start = at - PRELUDE;
    const id = asciiOf(await window.bytes(start, PRELUDE)).split(" ")[0]!;
    if (await readHead(id, (length) => window.bytes(start, length))) return id;
  }
  return undefined;
}

function damaged({ key }: Row, how: string): Damaged {
  return { damaged: `the value of ${JSON.stringify(key)} ${how}` };
}
