/** Rows of one copy made what they are in the other: the same bytes and, where somebody may expect it, the same version. */

import { CompactionError } from "../../errors.js";
import type { Key } from "../../types.js";
import { compareKeys, isDamaged, TABLES } from "../keys.js";
import type { Value } from "../keys.js";
import { UNREADABLE, writtenSince } from "./mark.js";
import type { Change, Copy, Making, Mark } from "./mark.js";
import { isOwn, RESERVED } from "./own.js";
import { holds, raise, versionsOf } from "./versions.js";

/** Others that write all the time are met this often. */
const TRIES = 100;
/** Rows that are written with the mark, in one batch; more are written before it. */
const TOGETHER = 32;
const PAGE_ROWS = 200;

/** Tables whose rows are written again, with their versions expected. Rows of the others are written once. */
const COUNTED: ReadonlySet<unknown> = new Set(["meta", "sessions", "jobs"]);

/** True for a row that somebody may expect to have been put so often. */
export function isCounted([table]: Key): boolean {
  return COUNTED.has(table);
}

/** What was copied, and what could not be. */
export interface Copied {
  changed: Key[];
  /** They are damaged in the copy that they were to come from. */
  damaged: Key[];
}

/**
 * Makes the rows that `select` names in `target` what they are in `source`, and lets its mark be what `next` makes of that of
 * the source. All at once, if they are few. Throws a conflict when the target went on meanwhile.
 */
export async function copyRows(
  source: Copy,
  target: Copy,
  select: (mark: Mark) => Key[],
  next?: (mark: Mark) => Mark,
): Promise<Copied> {
  for (let tries = 0; ; tries++) {
    const mark = source.mark ?? UNREADABLE;
    const keys = select(mark);
    const [counted, plain] = [keys.filter(isCounted), keys.filter((key) => !isCounted(key))];
    const versions = await source.ask((store) => versionsOf(store, counted));
    const values = await source.lookAt(counted);
    // As they were at one moment, and as far as the mark says.
    const isStill = source.mark?.tag === mark.tag || !next;
    const expect = counted.map((key, i) => ({ key, version: versions[i]! }));
    if (isStill && (await source.ask((store) => holds(store, expect)))) {
      return copied(source, target, counted.map((key, i) => ({ key, value: values[i], version: versions[i]! })), plain, next?.(mark));
    }
    if (tries === TRIES) {
      throw new CompactionError("store_unavailable", "Others write to the copies all the time: try again");
    }
  }
}

/** The keys that were written in `mark` after `from`. Throws a conflict where that is not known: all rows are to be
 *  compared. */
export function keysSince(mark: Mark, from: [number, string]): Key[] {
  const keys = writtenSince(mark, from);
  if (!keys) throw new CompactionError("conflict", "too much was written to name it");
  return keys;
}

interface Counted {
  key: Key;
  value: Value | undefined;
  version: number | null;
}

async function copied(source: Copy, target: Copy, counted: Counted[], plain: Key[], next: Mark | undefined): Promise<Copied> {
  const done: Copied = { changed: [], damaged: [] };
  let change = empty();
  const flush = async (isDue: boolean) => {
    if (!isDue) return;
    await target.mend(change);
    change = empty();
  };
  /** What the source has damaged: a row in the target is that one if it was put as often, where both have one history. */
  const withhold = async (key: Key, before: Value | undefined, version: number | null) => {
    const isComparable = !isLost(before) && (next || !isCounted(key));
    if (isComparable && (await target.ask((store) => versionsOf(store, [key])))[0] === version) return;
    done.damaged.push(key);
    if (!isLost(before)) change.deletes.push(key);
  };
  for (let at = 0; at < plain.length; at += TOGETHER) {
    const keys = plain.slice(at, at + TOGETHER);
    const [wanted, there] = await Promise.all([source.ask((store) => store.read(keys)), target.ask((store) => store.read(keys))]);
    for (const [i, key] of keys.entries()) {
      const value = wanted[i];
      if (isDamaged(value)) {
        const [version] = await source.ask((store) => versionsOf(store, [key]));
        await withhold(key, there[i], version!);
      } else if (!isSame(value, there[i])) {
        done.changed.push(key);
        if (value) change.puts.push([key, value]);
        else change.deletes.push(key);
      }
    }
    await flush(plain.length > TOGETHER);
  }
  const keys = counted.map(({ key }) => key);
  const there = await target.ask((store) => store.read(keys));
  const versions = await target.ask((store) => versionsOf(store, keys));
  for (const [i, { key, value, version }] of counted.entries()) {
    const before = there[i];
    const now = versions[i] ?? null;
    if (isDamaged(value) || isSame(value, UNDER_WAY)) await withhold(key, before, version);
    else if (isSame(value, before) && version === now) continue;
    else {
      done.changed.push(key);
      change.deletes.push(keptOf(key));
      if (!value) change.deletes.push(key);
      else {
        if (!isLost(before) && now !== version! - 1) await keep(target, key, before as Uint8Array, now!);
        await bring(target, key, now, version!);
        change.expect.push({ key, version: version! - 1 || null });
        change.puts.push([key, value]);
      }
      await flush(counted.length > TOGETHER && change.puts.length + change.deletes.length >= TOGETHER);
    }
  }
  if (next) await target.write(next, change, "strict");
  else if (change.puts.length + change.deletes.length > 0) await target.mend(change);
  return done;
}

/** What a row is until it has its version: nobody may take it for one of a version that it does not have. */
const UNDER_WAY = new TextEncoder().encode("\u0000 being written again from the other copy");

/** Brings a row to just before `version`: what it was is gone then. */
async function bring(target: Copy, key: Key, now: number | null, version: number): Promise<void> {
  let from = now;
  if (from !== null && from >= version) {
    await target.mend({ deletes: [key] });
    from = null;
  }
  const put = (version: number | null) => target.mend({ expect: [{ key, version }], puts: [[key, UNDER_WAY]] }, "relaxed");
  await raise(put, from, version - 1);
}

/** Rows as they were before they were brought to another version, under their keys, until that is done. */
const KEPT: Key = [...RESERVED, "kept"];

function keptOf(key: Key): Key {
  return [...KEPT, JSON.stringify(key)];
}

/** Keeps a row: its version in front of it. */
async function keep(target: Copy, key: Key, value: Uint8Array, version: number): Promise<void> {
  const kept = new Uint8Array(8 + value.byteLength);
  new DataView(kept.buffer).setFloat64(0, version);
  kept.set(value, 8);
  await target.mend({ puts: [[keptOf(key), kept]] });
}

/** Makes rows what they were before they were to become those of the other copy, which is gone: for what is left. */
export async function putBack(copy: Copy): Promise<void> {
  for (;;) {
    const [row] = await copy.ask((store) => store.scan(KEPT, { limit: 1, maxBytes: 1 }));
    if (!row) return;
    const [own, kept] = row;
    const key = JSON.parse(own.at(-1) as string) as Key;
    const [value] = await copy.ask((store) => store.read([key]));
    // It may have become the other one, or not have begun to.
    if (isDamaged(kept) || !isLost(value)) {
      await copy.mend({ deletes: [own] });
      continue;
    }
    const version = new DataView(kept.buffer, kept.byteOffset).getFloat64(0);
    const [now] = await copy.ask((store) => versionsOf(store, [key]));
    await bring(copy, key, now ?? null, version);
    await copy.mend({ expect: [{ key, version: version - 1 || null }], puts: [[key, kept.slice(8)]], deletes: [own] });
  }
}

/** True where rows were about to become those of the other copy, and the process that did that died. */
export async function isHalfWritten(copy: Copy): Promise<boolean> {
  return (await copy.ask((store) => store.scan(KEPT, { limit: 1, maxBytes: 1, keysOnly: true }))).length > 0;
}

/** A row that a copy cannot give. */
export function isLost(value: Value | undefined): boolean {
  return value === undefined || isDamaged(value) || isSame(value, UNDER_WAY);
}

const empty = () => ({ expect: [], puts: [], deletes: [] }) as Required<Change>;

export function isSame(a: Value | undefined, b: Value | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (isDamaged(a) || isDamaged(b) || a.byteLength !== b.byteLength) return false;
  return a.every((byte, i) => byte === b[i]);
}

/** One page of making `target`, whose mark says how far it is, from `source`. True when it is made. */
export async function makePage(source: Copy, target: Copy, { table, after, from }: Making, done: Copied): Promise<boolean> {
  const mark = target.mark!;
  if (table === TABLES.length) {
    const { making, ...rest } = source.mark!;
    const isKnown = writtenSince(source.mark!, from) !== undefined;
    if (!isKnown) {
      await target.write({ ...mark, making: { table: 0, after: null, from: [rest.seq, rest.tag] } }, {}, "relaxed");
      return false;
    }
    const last = await copyRows(source, target, (mark) => keysSince(mark, from), (mark) => mark);
    add(done, last);
    return true;
  }
  const prefix: Key = [TABLES[table]!];
  const start = after === null ? {} : { after };
  const page = { ...start, limit: PAGE_ROWS, maxBytes: 1, keysOnly: true };
  const [wanted, there] = await Promise.all([source, target].map((copy) => copy.ask((store) => store.scan(prefix, page))));
  // As far as both were read.
  const ends = [wanted!, there!].flatMap((rows) => (rows.length === PAGE_ROWS ? [rows.at(-1)![0]] : []));
  const end = ends.sort(compareKeys)[0];
  const within = (key: Key) => !isOwn(key) && (!end || compareKeys(key, end) <= 0);
  const keys = new Map([...wanted!, ...there!].map(([key]) => key).filter(within).map((key) => [JSON.stringify(key), key]));
  const making = end ? { table, after: end, from } : { table: table + 1, after: null, from };
  // The mark of the source may move on meanwhile: what is written from here on is copied at the end.
  const all = [...keys.values()];
  for (let at = 0; at < all.length; at += TOGETHER) {
    add(done, await copyRows(source, target, () => all.slice(at, at + TOGETHER)));
  }
  await target.write({ ...mark, making }, {}, "relaxed");
  return false;
}

function add(done: Copied, more: Copied): void {
  done.changed.push(...more.changed);
  done.damaged.push(...more.damaged);
}
