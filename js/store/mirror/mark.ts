/** One copy of a mirrored store, and the mark in it: how far it is. */

import { CompactionError } from "../../errors.js";
import type { Batch, Key, MaybePromise, Store } from "../../types.js";
import { isDamaged, TABLES } from "../keys.js";
import type { Value } from "../keys.js";
import { isOwn, MARK_ROWS, RESERVED } from "./own.js";
import { versionsOf } from "./versions.js";

/** A commit: its number, a random text (no two histories share one), and the keys that it put or deleted. */
type Written = [seq: number, tag: string, keys: Key[]];

/** How far a copy is. It is written in every commit, expected as it was read: so commits of all processes are in one order,
 *  and a copy takes none of them before the one that comes first. */
export interface Mark {
  /** The same in both copies, and in no other pair. */
  pair: string;
  /** Commits so far, and the random text of the last one. */
  seq: number;
  tag: string;
  /** The last commits, from one that both copies have on; `null` where they are too many to be named. */
  pending: Written[] | null;
  /** Some were acknowledged before the second copy had them. */
  early: boolean;
  /** When all rows were last compared, in ms since 1970. */
  checked: number;
  /** This copy is being made from the other one. */
  making?: Making;
}

export interface Making {
  /** The table, and the last key that is done. */
  table: number;
  after: Key | null;
  /** How far the other copy was when this began. */
  from: [seq: number, tag: string];
}

/** Keys that a mark names at most: more are not worth it, for then all rows are compared. */
const MAX_KEYS = 1_000;
/** A copy that is gone may have had as many commits more than the one that it is made from. */
export const JUMP = 2 ** 20;

export interface Change {
  expect?: Batch["expect"];
  puts?: Batch["puts"];
  deletes?: Key[];
}

/** One of the two stores, with its mark as it was seen last. */
export class Copy {
  readonly store: Store;
  readonly name: "first" | "second";
  /** `undefined`: there is none. A mark that cannot be read is one of no pair. */
  mark: Mark | undefined;
  /** The versions of the rows of the mark. */
  #versions: (number | null)[] = [null, null];

  constructor(store: Store, name: "first" | "second") {
    this.store = store;
    this.name = name;
  }

  /** Awaits a call of the store. Its errors say which copy it is. */
  async ask<T>(work: (store: Store) => MaybePromise<T>): Promise<T> {
    try {
      return await work(this.store);
    } catch (error) {
      const { code, message } = Object(error) as CompactionError;
      if (code === "conflict") throw error;
      const known = CompactionError.isInstance(error) ? code : "store_unavailable";
      throw new CompactionError(known, `the ${this.name} copy: ${message}`, { cause: error });
    }
  }

  /** Reads the mark. */
  async look(): Promise<Mark | undefined> {
    await this.lookAt([]);
    return this.mark;
  }

  /** The mark and the values of `keys`, at one moment. */
  async lookAt(keys: Key[]): Promise<(Value | undefined)[]> {
    const read = await this.ask((store) => store.read([...MARK_ROWS, ...keys]));
    const found = read.slice(0, MARK_ROWS.length).map(markIn);
    const [one, other] = found;
    const isSame = !one?.mark || !other?.mark || JSON.stringify(one.mark) === JSON.stringify(other.mark);
    this.mark = isSame ? (one?.mark ?? other?.mark) : undefined;
    const isThere = read.slice(0, MARK_ROWS.length).some((value) => value !== undefined);
    if (!this.mark && isThere) this.mark = UNREADABLE;
    // What is damaged does not say its version.
    const isSure = found.every((row) => row === undefined || (row.mark && isSame));
    this.#versions = isSure ? found.map((row) => row?.ver ?? null) : await this.ask((store) => versionsOf(store, MARK_ROWS));
    return read.slice(MARK_ROWS.length);
  }

  /** What a commit has to expect so that the copy is as far as the mark says. */
  get guard(): Batch["expect"] {
    return MARK_ROWS.map((key, i) => ({ key, version: this.#versions[i]! }));
  }

  /** Commits `change` with the mark `next`. A conflict may be one of the mark: look again. */
  async write(next: Mark, { expect = [], puts = [], deletes = [] }: Change, durability: Batch["durability"]): Promise<void> {
    const versions = this.#versions.map((version) => (version ?? 0) + 1);
    const marks = MARK_ROWS.map((key, i): [Key, Uint8Array] => [key, bytesOf(next, versions[i]!)]);
    const batch: Batch = { expect: [...expect, ...this.guard], puts: [...puts, ...marks], deletes, durability };
    await this.ask((store) => store.commit(batch));
    [this.mark, this.#versions] = [next, versions];
  }

  /** The same, where the last commit here is the one before: a conflict otherwise. */
  async writeAfter(tag: string | undefined, next: Mark, change: Change, durability: Batch["durability"]): Promise<void> {
    if (this.mark?.tag !== tag) throw new CompactionError("conflict", `the ${this.name} copy is not as far`);
    await this.write(next, change, durability);
  }

  /** Commits `change` while the copy is as far as the mark says, without going on. */
  async mend({ expect = [], puts = [], deletes = [] }: Change, durability: Batch["durability"] = "strict"): Promise<void> {
    // A row without a mark would be one of a stranger.
    if (!this.mark) throw new CompactionError("conflict", `the ${this.name} copy is not begun`);
    const batch: Batch = { expect: [...expect, ...this.guard], puts, deletes, durability };
    await this.ask((store) => store.commit(batch));
  }

  /** Has what was written with `relaxed` handed to the disk: a strict commit brings what came before it along. */
  async sync(): Promise<void> {
    const batch: Batch = { expect: [], puts: [[SYNC, new Uint8Array()]], deletes: [], durability: "strict" };
    await this.ask((store) => store.commit(batch));
  }

  /** True when there is no row in it, but for what is the mirror's own. */
  async isEmpty(): Promise<boolean> {
    for (const table of TABLES) {
      const page = await this.ask((store) => store.scan([table], { limit: MARK_ROWS.length + 2, maxBytes: 1, keysOnly: true }));
      if (page.some(([key]) => !isOwn(key))) return false;
    }
    return true;
  }

  /** What the copy itself says that it lost. */
  async dataLoss(): Promise<string | undefined> {
    return this.ask((store) => store.dataLoss?.());
  }
}

const SYNC: Key = [...RESERVED, "sync"];

/** The mark of a copy whose rows say nothing for sure. */
export const UNREADABLE: Mark = { pair: "", seq: -1, tag: "", pending: null, early: false, checked: 0 };

/** The mark after `mark`, with a commit of `keys`. `known` is how far the other copy is; `early`: nobody waits for it. */
export function following(mark: Mark, tag: string, keys: Key[], known: Mark | undefined, early: boolean): Mark {
  const { pending, making, ...rest } = mark;
  const seq = mark.seq + 1;
  const isLevel = known?.seq === mark.seq && known.tag === mark.tag;
  const base: Written = [mark.seq, mark.tag, []];
  const before = isLevel ? [base] : pending;
  const at = before?.findIndex(([seq, tag]) => seq === known?.seq && tag === known.tag) ?? -1;
  const kept = at > 0 ? before!.slice(at) : before;
  const all = kept && [...kept, [seq, tag, keys] as Written];
  const count = all?.reduce((sum, [, , keys]) => sum + keys.length + 1, 0) ?? 0;
  return { ...rest, seq, tag, pending: count > MAX_KEYS ? null : all, early: early || (rest.early && !isLevel) };
}

/** The keys that were written in `mark` after `from`, each once; `undefined` where that is not known. */
export function writtenSince(mark: Mark, [seq, tag]: [number, string]): Key[] | undefined {
  if (mark.seq === seq && mark.tag === tag) return [];
  const at = mark.pending?.findIndex((commit) => commit[0] === seq && commit[1] === tag) ?? -1;
  if (at < 0) return undefined;
  const keys = mark.pending!.slice(at + 1).flatMap(([, , keys]) => keys);
  return [...new Map(keys.map((key) => [JSON.stringify(key), key])).values()];
}

function bytesOf(mark: Mark, ver: number): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ v: 1, ver, ...mark }));
}

interface Row {
  mark?: Mark;
  ver?: number;
}

function markIn(value: Value | undefined): Row | undefined {
  if (value === undefined || isDamaged(value)) return value && {};
  let parsed: { v?: unknown; ver: number } & Mark;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(value)) as typeof parsed;
  } catch {
    return {};
  }
  const { v, ver, ...mark } = parsed;
  if (typeof v === "number" && v > 1) {
    throw new CompactionError("schema_too_new", "This pair of stores was written by a newer release: update the package");
  }
  const isOne = v === 1 && Number.isSafeInteger(ver) && typeof mark.pair === "string" && Number.isSafeInteger(mark.seq);
  return isOne ? { mark, ver } : {};
}
