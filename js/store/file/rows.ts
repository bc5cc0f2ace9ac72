/** Where the value of every key is: what a file store holds in memory. */

import type { Key } from "../../types.js";
import { compareKeys, startsWith } from "../keys.js";
import type { ScanOptions } from "../keys.js";

/** Never changed: who holds some sees them as they were. */
export interface Row {
  readonly key: Key;
  readonly version: number;
  /** Offset of the value in the journal. */
  readonly at: number;
  readonly bytes: number;
  readonly crc: number;
  /** Its value was damaged when the journal of this number was rewritten. */
  readonly kept?: number;
  /** Its last change may be among records that cannot be read. */
  readonly doubt?: true;
}

/** The rows whose keys have their first two parts in common, as those of one session in one table. */
interface Group {
  readonly head: Key;
  readonly rows: Row[];
}

/** About what a row takes in a journal. */
function weight({ key, bytes }: Row): number {
  return key.reduce<number>((total, part) => total + (typeof part === "string" ? part.length + 3 : 8), bytes + 32);
}

/** Rows in the order of their keys. Two levels, so that no insertion moves the rows of other sessions. */
export class Rows {
  readonly #groups: Group[] = [];
  /** About the bytes that a journal of these rows alone would have. */
  bytes = 0;

  find(key: Key): Row | undefined {
    const group = this.#group(key);
    const row = group?.rows[position(group.rows, key)];
    return row && compareKeys(row.key, key) === 0 ? row : undefined;
  }

  set(row: Row): void {
    const { rows, head } = this.#group(row.key) ?? this.#add(row.key.slice(0, 2));
    const last = rows.at(-1);
    const at = !last || compareKeys(last.key, row.key) < 0 ? rows.length : position(rows, row.key);
    const before = rows[at];
    if (before && compareKeys(before.key, row.key) === 0) {
      rows[at] = { ...row, key: before.key };
      this.bytes += row.bytes - before.bytes;
      return;
    }
    // The texts that are the same in a whole group are in memory once.
    rows.splice(at, 0, { ...row, key: [...head, ...row.key.slice(2)] });
    this.bytes += weight(row);
  }

  delete(key: Key): void {
    const group = this.#group(key);
    const row = this.find(key);
    if (!group || !row) return;
    group.rows.splice(position(group.rows, key), 1);
    if (group.rows.length === 0) this.#groups.splice(this.#position(key), 1);
    this.bytes -= weight(row);
  }

  /**
   * So many records are missing here. The row of a session changes with everything that is written to it, so it may be an
   * older one now, under a version that none of them gave it. Other rows are written once, and missed by who wants them.
   */
  doubt(records: number): void {
    for (const { rows } of this.#groups) {
      rows.forEach((row, i) => {
        const isSession = row.key[0] === "sessions" && row.key.length === 2;
        if (isSession) rows[i] = { ...row, version: row.version + records, doubt: true };
      });
    }
  }

  clear(): void {
    this.#groups.length = 0;
    this.bytes = 0;
  }

  /** Every row, in order, as of now. */
  all(): Row[] {
    return this.#groups.flatMap(({ rows }) => rows);
  }

  /** The page that `Store.scan` returns. */
  scan(prefix: Key, options: ScanOptions): Row[] {
    const { after, limit, maxBytes, reverse = false, keysOnly = false } = options;
    const page: Row[] = [];
    let bytes = 0;
    for (const row of reverse ? this.#down(prefix, after) : this.#up(prefix, after)) {
      bytes += keysOnly ? 0 : row.bytes;
      if (page.length > 0 && bytes > maxBytes) break;
      page.push(row);
      if (page.length >= limit) break;
    }
    return page;
  }

  *#up(prefix: Key, after: Key | undefined): Generator<Row> {
    const start = after ?? prefix;
    const from = first(this.#groups.length, (i) => compareKeys(this.#groups[i]!.head, start.slice(0, 2)) >= 0);
    for (let i = from; i < this.#groups.length; i++) {
      const { rows } = this.#groups[i]!;
      const past = (j: number) => compareKeys(rows[j]!.key, start) >= (after ? 1 : 0);
      for (let j = i === from ? first(rows.length, past) : 0; j < rows.length; j++) {
        if (!startsWith(rows[j]!.key, prefix)) return;
        yield rows[j]!;
      }
    }
  }

  *#down(prefix: Key, after: Key | undefined): Generator<Row> {
    /** True from the first key on that is past the range, or the first two parts of it. */
    const past = (key: Key) =>
      after ? compareKeys(key, after) >= 0 : compareKeys(key, prefix) > 0 && !startsWith(key, prefix);
    const last = first(this.#groups.length, (i) => past(this.#groups[i]!.head)) - 1;
    for (let i = last; i >= 0; i--) {
      const { rows } = this.#groups[i]!;
      const end = i === last ? first(rows.length, (j) => past(rows[j]!.key)) : rows.length;
      for (let j = end - 1; j >= 0; j--) {
        if (!startsWith(rows[j]!.key, prefix)) return;
        yield rows[j]!;
      }
    }
  }

  #group(key: Key): Group | undefined {
    const group = this.#groups[this.#position(key)];
    return group && startsWith(key, group.head) ? group : undefined;
  }

  #add(head: Key): Group {
    const group = { head, rows: [] };
    this.#groups.splice(this.#position(head), 0, group);
    return group;
  }

  #position(key: Key): number {
    const head = key.slice(0, 2);
    return first(this.#groups.length, (i) => compareKeys(this.#groups[i]!.head, head) >= 0);
  }
}

/** Where `key` is, or where it would be inserted. */
function position(rows: Row[], key: Key): number {
  return first(rows.length, (i) => compareKeys(rows[i]!.key, key) >= 0);
}

/** The first index under `length` for which `reached` holds, as it does for all after it. */
function first(length: number, reached: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (reached(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
