/** The two copies of a mirrored store, brought to one state whatever came between two commits. */

import { CompactionError } from "../../errors.js";
import type { Batch, Key } from "../../types.js";
import { randomId } from "../keys.js";
import { Copy, JUMP, writtenSince } from "./mark.js";
import type { Mark } from "./mark.js";
import { copyRows, keysSince, makePage, putBack } from "./rows.js";
import type { Copied } from "./rows.js";
import { isConflict } from "./versions.js";

/** Another process is about to write what is missing in the second copy: it has so many ms, looked at so often. */
const GRACE_MS = 4;
const GRACES = 5;

/** Others that do the same are met so often in a row. */
const CONFLICTS = 100;

/** What was made whole, or cannot be. */
export type Found = (kind: "repaired" | "lost", reason: string) => void;

export class Pair {
  readonly first: Copy;
  readonly second: Copy;
  readonly #found: Found;
  /** Who was asked what it lost, and what they said. */
  readonly #asked = new Set<Copy>();
  readonly #losses = new Map<Copy, string>();
  /** Copies in which no row is half written. */
  readonly #whole = new Set<Copy>();
  #conflicts = 0;
  #done: Copied = { changed: [], damaged: [] };

  constructor(first: Copy, second: Copy, found: Found) {
    [this.first, this.second] = [first, second];
    this.#found = found;
  }

  /** True when both copies are as far, by what was seen last. */
  get isLevel(): boolean {
    const [one, two] = [this.first.mark, this.second.mark];
    return one === undefined ? isUnused(two) : isSound(one) && isSound(two) && one.seq === two.seq && one.tag === two.tag;
  }

  /** True when the first copy can be read, whatever the second has: nothing is known that only that one has. */
  get isFirstWhole(): boolean {
    const [one, two] = [this.first.mark, this.second.mark];
    if (one === undefined) return isUnused(two);
    return isSound(one) && (!isSound(two) || two.seq <= one.seq);
  }

  /** Looks at both, and brings them one step nearer to one state; true when they are. For callers with both turns.
   *  `patient`: the second may be in the middle of another process' commit. */
  async step(patient = false): Promise<boolean> {
    const { first, second } = this;
    await Promise.all([first.look(), second.look()]);
    await this.#askLosses();
    if (!first.mark && isUnused(second.mark)) return this.#settle();
    const [source, target] = this.#direction();
    if (target === first) {
      // It is behind, or commits of others came between the looks: they reach the first copy first.
      const seen = first.mark?.tag;
      if ((await first.look())?.tag !== seen) return false;
    }
    const mark = source.mark!;
    if (!isSound(mark)) {
      // Nobody says how far it is: it is what is left.
      this.#found("lost", `how far the ${source.name} copy was is not known any more: the last commits may be missing`);
      await source.write({ ...fresh(), seq: 1 }, {}, "strict");
      return false;
    }
    const isKnown = isSound(target.mark);
    if (isKnown ? target.mark!.pair !== mark.pair : !(await target.isEmpty()) && !target.mark && !this.#losses.has(target)) {
      return this.#refuse();
    }
    try {
      if (!this.#whole.has(source)) await putBack(source);
      this.#whole.add(source);
      if (!this.isLevel) this.#whole.delete(target);
      const isLevel = await this.#level(source, target, mark, patient);
      this.#conflicts = 0;
      return isLevel;
    } catch (error) {
      if (!isConflict(error)) throw error;
      // Somebody else does the same, or went on.
      if (++this.#conflicts < CONFLICTS) return false;
      this.#conflicts = 0;
      throw new CompactionError("store_unavailable", "Others write to the copies all the time: try again", { cause: error });
    }
  }

  async #askLosses(): Promise<void> {
    for (const copy of [this.first, this.second].filter((copy) => !this.#asked.has(copy))) {
      const reason = await copy.dataLoss();
      this.#asked.add(copy);
      if (reason) this.#losses.set(copy, reason);
    }
  }

  async #level(source: Copy, target: Copy, mark: Mark, patient: boolean): Promise<boolean> {
    const making = target.mark?.making;
    if (making) {
      if (await makePage(source, target, making, this.#done)) this.#made(source, target);
      return false;
    }
    if (this.isLevel) {
      const [[lost] = []] = this.#losses;
      if (!lost) return true;
      if (this.#losses.size === 1) {
        await this.#make(lost === this.first ? this.second : this.first, lost);
        return false;
      }
      for (const [{ name }, reason] of this.#losses) this.#found("lost", `the ${name} copy: ${reason}`);
      this.#losses.clear();
      return true;
    }
    const from = target.mark && ([target.mark.seq, target.mark.tag] as [number, string]);
    if (!from || writtenSince(mark, from) === undefined) {
      await this.#make(source, target);
      return false;
    }
    for (let waits = 0; patient && target === this.second && waits < GRACES; waits++) {
      await new Promise((resolve) => setTimeout(resolve, GRACE_MS));
      if ((await target.look())?.tag !== from[1]) return false;
    }
    const { damaged } = await copyRows(source, target, (mark) => keysSince(mark, from), (mark) => mark);
    this.#tellDamaged(source, damaged);
    if (target === this.first) {
      this.#found("repaired", `the first copy had lost its last ${mark.seq - from[0]} commits, and has them again from the second`);
    }
    return false;
  }

  /** Two stores without a commit: new ones, or one that is to have a second copy. */
  async #settle(): Promise<boolean> {
    const [one, two] = await Promise.all([this.first.isEmpty(), this.second.isEmpty()]);
    if (one && two) {
      for (const [{ name }, reason] of this.#losses) this.#found("lost", `the ${name} copy: ${reason}`);
      this.#losses.clear();
      return true;
    }
    if (!one && !two) return this.#refuse();
    try {
      await (one ? this.second : this.first).write({ ...(this.second.mark ?? fresh()), seq: 1 }, {}, "strict");
    } catch (error) {
      // Another process began meanwhile.
      if (!isConflict(error)) throw error;
    }
    return false;
  }

  /** Marks the second copy before the first has a commit: who looks in between finds it behind, and not lost. For callers
   *  with both turns. */
  async begin(durability: Batch["durability"]): Promise<void> {
    try {
      if (!this.second.mark) await this.second.write(fresh(), {}, durability);
    } catch (error) {
      if (!isConflict(error)) throw error;
      await Promise.all([this.first.look(), this.second.look()]);
    }
  }

  /** Refuses two stores that are no copies of each other: unless another process began to write between the looks at them. */
  async #refuse(): Promise<false> {
    const seen = [this.first.mark?.tag, this.second.mark?.tag];
    await Promise.all([this.first.look(), this.second.look()]);
    if (this.first.mark?.tag === seen[0] && this.second.mark?.tag === seen[1]) throw strangers();
    return false;
  }

  /** Which copy is to be made what the other one is. */
  #direction(): [source: Copy, target: Copy] {
    const { first, second } = this;
    const [one, two] = [first.mark, second.mark];
    if (!isSound(two)) return one ? [first, second] : [second, first];
    if (!isSound(one)) return [second, first];
    return two.seq > one.seq ? [second, first] : [first, second];
  }

  /** Begins to make `target` again from `source`. */
  async #make(source: Copy, target: Copy): Promise<void> {
    if (target === this.first) {
      if (source.mark!.early && !isSound(target.mark)) {
        this.#found("lost", "the first copy is made again from the second, which was behind: its last commits are missing");
      }
      // What the first had and the second did not may come back with a disk: it is older than what comes now.
      const mark = source.mark!;
      await source.write({ ...mark, seq: mark.seq + JUMP, tag: randomId(8), pending: null }, {}, "strict");
    }
    const { pending, ...mark } = source.mark!;
    this.#done = { changed: [], damaged: [] };
    const making = { table: 0, after: null, from: [mark.seq, mark.tag] as [number, string] };
    await target.write({ ...mark, pending: null, making }, {}, "strict");
    this.#losses.delete(target);
  }

  #made(source: Copy, target: Copy): void {
    const { changed, damaged } = this.#done;
    if (changed.length > 0) {
      this.#found("repaired", `the ${target.name} copy was made again from the ${source.name}: ${changed.length} rows`);
    }
    this.#tellDamaged(source, damaged);
    this.#done = { changed: [], damaged: [] };
  }

  #tellDamaged({ name }: Copy, damaged: Key[]): void {
    if (damaged.length === 0) return;
    this.#found("lost", `${damaged.length} rows are damaged in the ${name} copy, and were not copied: ${named(damaged)}`);
  }
}

/** No commit reached this copy. */
function isUnused(mark: Mark | undefined): boolean {
  return !mark || (isSound(mark) && mark.seq === 0);
}

export function isSound(mark: Mark | undefined): mark is Mark {
  return mark !== undefined && mark.pair !== "" && !mark.making;
}

/** The mark of a pair without a commit. */
export function fresh(): Mark {
  return { pair: randomId(16), seq: 0, tag: "", pending: [[0, "", []]], early: false, checked: Date.now() };
}

/** Rows by their keys, a few of them. */
export function named(keys: readonly (readonly (string | number)[])[]): string {
  const some = keys.slice(0, 3).map((key) => JSON.stringify(key));
  return keys.length > some.length ? `${some.join(", ")} and ${keys.length - some.length} more` : some.join(", ");
}

function strangers(): CompactionError {
  return new CompactionError(
    "invalid_option",
    "mirrorStore: these two stores are no copies of each other, and nothing was changed: give the copy that is to stay and an empty store",
  );
}
