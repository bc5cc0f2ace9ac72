/** The calls on two copies: every commit goes to both, and what one of them loses comes back from the other. */

import { checkOptions } from "../../checks.js";
import { CompactionError } from "../../errors.js";
import { Mutex } from "../../mutex.js";
import type { Batch, Key, MirrorReport, Store, StoreNotice } from "../../types.js";
import { isDamaged, randomId, TABLES } from "../keys.js";
import type { ScanOptions, Value } from "../keys.js";
import { Copy, following, JUMP } from "./mark.js";
import type { Change, Mark } from "./mark.js";
import { comparePage, cut, visible } from "./pages.js";
import type { Compared } from "./pages.js";
import { fresh, isSound, named, Pair } from "./pair.js";
import { remainsOf } from "./remains.js";
import { copyRows, isCounted, isHalfWritten, isLost } from "./rows.js";
import { holds, isConflict } from "./versions.js";

/** A conflict with another process is tried again this often before it is the caller's. */
const TRIES = 100;
/** All rows are compared when a pair is opened and that was last done so many ms ago. */
const CHECK_MS = 24 * 60 * 60 * 1_000;

/** What the second copy is still to be given, by who wrote it. */
interface Queued {
  /** The commit before it. */
  after: string | undefined;
  next: Mark;
  change: Change;
  durability: Batch["durability"];
}

/** What `mirrorStore` does. What it is given is checked, and the caller's no more. */
export class Mirror {
  readonly #first: Copy;
  readonly #second: Copy;
  readonly #pair: Pair;
  readonly #waits: boolean;
  /** Turns of writers to a copy. A writer that needs both takes the first's first. */
  readonly #turns = { first: new Mutex(), second: new Mutex() };
  readonly #running = new Set<Promise<unknown>>();
  readonly #ending = new AbortController();
  readonly #tell: (notice: StoreNotice) => void;
  #lost: string[] = [];
  /** The first copy can be read. */
  #isOpen = false;
  /** The copy that is read: the second only as long as the first does not open. */
  #shown: Copy;
  /** Why the copies are not brought to one state, since they last were. */
  #failed: unknown;
  /** The second has all but what is queued. */
  #isLevel = false;
  #queue: Queued[] = [];
  #following: Promise<void> | undefined;
  /** Keys of a commit that the second copy does not have, though its caller waited for that. */
  #owed: Set<string> | undefined;
  /** The first copy may have more than was seen: a commit of it was not answered. */
  #isUnsure = false;
  #isWarned = false;

  constructor(first: Store, second: Store, waits: boolean, tell: (notice: StoreNotice) => void) {
    [this.#first, this.#second, this.#waits] = [new Copy(first, "first"), new Copy(second, "second"), waits];
    this.#shown = this.#first;
    this.#tell = tell;
    this.#pair = new Pair(this.#first, this.#second, (kind, reason) => {
      if (kind === "repaired") this.#tell({ kind, reason });
      else this.#lost.push(reason);
    });
  }

  get behind(): number {
    const [one, two] = [this.#first.mark, this.#second.mark];
    if (!one) return 0;
    return isSound(two) ? Math.max(0, one.seq - two.seq) : one.seq > 1 || !this.#isLevel ? Infinity : 1;
  }

  /** Nothing can be written as long as this is so: a copy that has to have it cannot be had. */
  get isReadOnly(): boolean {
    return this.#failed !== undefined && (this.#waits || this.#shown === this.#second);
  }

  read(asked: Key[]): Promise<(Value | undefined)[]> {
    return this.#run(async () => {
      if (asked.length === 0) return [];
      await this.#open();
      if (this.#owed && asked.some((key) => this.#owed?.has(JSON.stringify(key)))) await this.#pay();
      if (this.#isUnsure) await this.#lookAgain();
      const values = await this.#shown.ask((store) => store.read(asked));
      const doubtful = asked.filter((_, i) => isLost(values[i]));
      const healed = await this.#healed(doubtful);
      return healed.size === 0 ? values : asked.map((key, i) => healed.get(JSON.stringify(key)) ?? values[i]);
    });
  }

  scan(prefix: Key, options: ScanOptions): Promise<[Key, Value][]> {
    return this.#run(async () => {
      await this.#open();
      const found = await visible(this.#shown, prefix, options);
      const damaged = found.filter(([, value]) => isLost(value)).map(([key]) => key);
      const healed = await this.#healed(damaged);
      const rows = found.map(([key, value]): [Key, Value] => [key, healed.get(JSON.stringify(key)) ?? value]);
      return healed.size === 0 ? rows : cut(rows, options);
    });
  }

  commit(owned: Batch): Promise<void> {
    return this.#run(async () => {
      const keys = [...owned.puts.map(([key]) => key), ...owned.deletes];
      if (keys.length > 0) await this.#turn("first", () => this.#commit(owned, keys));
      else if (owned.expect.length > 0) {
        await this.#open();
        await this.#shown.ask((store) => store.commit(owned));
      }
    });
  }

  dataLoss(): Promise<string | undefined> {
    return this.#run(async () => {
      await this.#open();
      return this.#lost.splice(0).join("; ") || undefined;
    });
  }

  check(options: { signal?: AbortSignal } = {}): Promise<MirrorReport> {
    return this.#run(async () => {
      checkOptions(options, ["signal"]);
      await this.#open();
      return this.#check(options.signal);
    });
  }

  /** Both copies have the same rows before, so that none brings back what the other removed. */
  purge(): Promise<void> {
    return this.#run(async () => {
      await this.#open();
      await this.#following;
      await this.#turn("first", () => this.#level());
      await Promise.all([this.#first, this.#second].map(({ store }) => store.purge?.()));
    });
  }

  /** What can be read of both, for `salvage`. */
  remains(): Promise<Store> {
    const scan = (store: Store, prefix: Key, options: ScanOptions) => visible(new Copy(store, "first"), prefix, options);
    return remainsOf(this.#first.store, this.#second.store, scan);
  }

  /** Ends what is under way; the stores are not closed. */
  async close(): Promise<void> {
    // What waits for the second copy is given to it; nothing else is begun.
    if (!this.#ending.signal.aborted && this.#isLevel) await this.#following;
    this.#ending.abort(new CompactionError("closed", "The store was closed: make a new one"));
    await Promise.allSettled([...this.#running, this.#following]);
  }

  // ---- turns --------------------------------------------------------------------------------------------------------

  /** Runs a call; `close` waits for it. */
  async #run<T>(work: () => Promise<T>): Promise<T> {
    this.#ending.signal.throwIfAborted();
    const run = work();
    this.#running.add(run);
    try {
      return await run;
    } finally {
      this.#running.delete(run);
    }
  }

  async #turn<T>(of: "first" | "second", work: () => Promise<T>): Promise<T> {
    const release = await this.#turns[of].acquire();
    try {
      return await work();
    } finally {
      release();
    }
  }

  // ---- one state ----------------------------------------------------------------------------------------------------

  /** Lets a copy be read: the first, which is whole or is made so, after which the second catches up; the second, as
   *  long as the first does not open. */
  async #open(): Promise<void> {
    if (this.#isOpen) return;
    if (this.#shown === this.#first) {
      await this.#turn("first", async () => {
        while (!this.#isOpen && this.#shown === this.#first) {
          try {
            await this.#step();
          } catch (error) {
            const { code } = error as CompactionError;
            if (code === "invalid_option" || code === "schema_too_new" || code === "closed") throw error;
            await this.#openOne(error);
          }
        }
      });
    }
    void this.#follow();
    const { mark } = this.#first;
    if (mark && Date.now() - mark.checked > CHECK_MS) this.#beside(async () => void (await this.#check()));
  }

  /** Lets the copy be read that opens, where the other one does not: `error` says why. Whoever writes tries again, and so do
   *  those who read, beside that. */
  async #openOne(error: unknown): Promise<void> {
    try {
      await this.#first.look();
    } catch {
      await this.#second.look().catch(() => Promise.reject(error as Error));
      // Nothing is written here, so that it stays what other processes take it for: what is half written stays so, too.
      if (!isSound(this.#second.mark) || (await isHalfWritten(this.#second))) throw error;
      this.#shown = this.#second;
      this.#fail(error, "everything is read from the second copy, and nothing can be written");
      return;
    }
    // Without the second it can be read where it is known to be a copy of something.
    if (!this.#first.mark || !this.#pair.isFirstWhole) throw error;
    this.#isOpen = true;
    this.#fail(error, this.#waits ? "everything is read from the first copy, and nothing can be written" : "the first copy is the only one");
  }

  /** One step towards one state, in the turn of the first. */
  async #step(patient = false, signal?: AbortSignal): Promise<boolean> {
    this.#ending.signal.throwIfAborted();
    signal?.throwIfAborted();
    const isDone = await this.#turn("second", () => this.#pair.step(patient));
    // Its caller did not hear that it is on the first disk, either.
    if (isDone && this.#owed) await this.#first.sync();
    this.#isOpen ||= this.#pair.isFirstWhole;
    if (this.#isOpen) this.#shown = this.#first;
    if (isDone) {
      this.#failed = undefined;
      this.#isLevel = true;
      this.#queue = [];
      this.#owed = undefined;
      this.#isWarned = false;
    }
    return isDone;
  }

  /** Brings both to one state, in the turn of the first. */
  async #level(patient = false): Promise<void> {
    while (!this.#isLevel) await this.#step(patient);
  }

  /** Gives the second copy what it does not have. Its failure is reported, and tried again with the next commit. */
  #follow(): Promise<void> {
    return (this.#following ??= this.#followUp()
      .catch((error: unknown) => {
        this.#isLevel = false;
        this.#queue = [];
        this.#fail(error);
      })
      .finally(() => (this.#following = undefined)));
  }

  async #followUp(): Promise<void> {
    for (;;) {
      if (!this.#isLevel) await this.#turn("first", () => this.#step());
      else if (this.#queue.length === 0) return;
      else await this.#turn("second", () => this.#give());
    }
  }

  async #give(): Promise<void> {
    const [queued] = this.#queue;
    if (!queued) return;
    try {
      await this.#writeAfter(queued);
      this.#queue.shift();
    } catch (error) {
      if (!isConflict(error)) throw error;
      this.#isLevel = false;
    }
  }

  // ---- commits ------------------------------------------------------------------------------------------------------

  async #commit(owned: Batch, keys: Key[]): Promise<void> {
    const { waits, after, next } = await this.#writeFirst(owned, keys);
    const { puts, deletes, durability } = owned;
    // A row that has another version in the second was lost there, or half mended: it comes from the first then, with its
    // version, and not by this batch.
    const written = new Set(puts.map(([key]) => JSON.stringify(key)));
    const expect = owned.expect.filter(({ key }) => isCounted(key) && written.has(JSON.stringify(key)));
    const change = { expect, puts, deletes };
    if (!this.#waits) {
      if (this.#isLevel) this.#queue.push({ after, next, change, durability });
      void this.#follow();
      return;
    }
    try {
      const done = await Promise.allSettled([this.#writeSecond(after, next, change, durability), waits && this.#first.sync()]);
      for (const one of done) if (one.status === "rejected") throw one.reason;
    } catch (error) {
      this.#owe(keys);
      const { message } = error as Error;
      const what = `only one copy has this commit for sure, and it was to be in both: ${message}`;
      throw new CompactionError("indeterminate", what, { cause: error });
    }
  }

  /** `waits`: it is written and not yet on the disk, so that both disks can be waited for at once. */
  async #writeFirst(owned: Batch, keys: Key[]): Promise<{ waits: boolean; after: string | undefined; next: Mark }> {
    const copies = [this.#first, this.#second];
    const waits = this.#waits && owned.durability === "strict" && copies.every(({ store }) => store.caps.durable === "synced");
    for (let tries = 0; ; tries++) {
      if (this.#waits) await this.#level(tries > 0);
      else while (!this.#isOpen) await this.#step();
      if (this.#waits && !this.#first.mark) await this.#turn("second", () => this.#pair.begin(owned.durability));
      // Others began meanwhile, and what they wrote is not in the first any more.
      if (!this.#pair.isFirstWhole) {
        this.#isLevel = this.#isOpen = false;
        continue;
      }
      const before = this.#first.mark ?? this.#second.mark;
      const next = following(before ?? fresh(), randomId(8), keys, this.#second.mark, !this.#waits);
      try {
        await this.#first.write(next, owned, waits ? "relaxed" : owned.durability);
        return { waits, after: before?.tag, next };
      } catch (error) {
        if (!isConflict(error)) {
          // It may have been written.
          this.#isLevel = false;
          this.#isUnsure = true;
          if (this.#waits) this.#owe(keys);
          throw error;
        }
        await this.#first.look();
        if ((this.#first.mark ?? this.#second.mark)?.tag === before?.tag || tries === TRIES) throw error;
        // It was the mark: somebody else wrote, or makes a copy.
        this.#isLevel = false;
        this.#isOpen = this.#pair.isFirstWhole;
      }
    }
  }

  #owe(keys: Key[]): void {
    this.#isLevel = false;
    this.#owed = new Set([...(this.#owed ?? []), ...keys.map((key) => JSON.stringify(key))]);
  }

  async #writeSecond(after: string | undefined, next: Mark, change: Change, durability: Batch["durability"]): Promise<void> {
    try {
      await this.#turn("second", () => this.#writeAfter({ after, next, change, durability }));
    } catch (error) {
      if (!isConflict(error)) throw error;
      // Somebody else's commit is to come before it, or brought this one along.
      this.#isLevel = false;
      await this.#level(true);
      // The first may have been made again from the second, which did not have it.
      if (this.#first.mark && this.#first.mark.seq >= next.seq + JUMP) throw new CompactionError("conflict", "the first copy was lost");
    }
  }

  /** Writes to the second what the first has. Conflicts where a row would not have the version there that it has in the
   *  first. */
  async #writeAfter({ after, next, change, durability }: Queued): Promise<void> {
    const { expect = [], puts = [] } = change;
    const expected = new Set(expect.map(({ key }) => JSON.stringify(key)));
    const blind = puts.map(([key]) => key).filter((key) => isCounted(key) && !expected.has(JSON.stringify(key)));
    if (blind.length > 0) {
      const there = await this.#second.ask((store) => store.read(blind));
      // New ones, or rows that were lost here: those count on in the first.
      const absent = blind.filter((_, i) => isLost(there[i]) && !isDamaged(there[i]));
      const isNew = await this.#first.ask((store) => holds(store, absent.map((key) => ({ key, version: 1 }))));
      if (!isNew) throw new CompactionError("conflict", "the second copy has lost rows");
    }
    await this.#second.writeAfter(after, next, change, durability);
  }

  /** Gives the second copy what its caller may not take for stored yet: another reader would. */
  async #pay(): Promise<void> {
    try {
      await this.#turn("first", () => this.#level());
    } catch (error) {
      if (error === this.#ending.signal.reason) throw error;
      const what = `whether both copies have it cannot be seen: ${(error as Error).message}`;
      throw new CompactionError("store_unavailable", what, { cause: error });
    }
  }

  async #lookAgain(): Promise<void> {
    await this.#turn("first", async () => {
      await this.#first.look();
      this.#isUnsure = false;
    });
    void this.#follow();
  }

  // ---- rows ---------------------------------------------------------------------------------------------------------

  /** The values of rows that the first copy has lost, from the second, once they are written again. */
  async #healed(keys: Key[]): Promise<Map<string, Uint8Array>> {
    const healed = new Map<string, Uint8Array>();
    if (keys.length === 0 || this.#shown === this.#second) return healed;
    try {
      const others = await this.#second.ask((store) => store.read(keys));
      const found = keys.filter((_, i) => !isLost(others[i]));
      if (found.length > 0) await this.#turn("first", () => this.#heal(found, healed));
    } catch (error) {
      if (error === this.#ending.signal.reason) throw error;
      this.#warn(error);
    }
    return healed;
  }

  async #heal(keys: Key[], healed: Map<string, Uint8Array>): Promise<void> {
    for (let tries = 0; ; tries++) {
      this.#isLevel = false;
      await this.#level();
      try {
        return await this.#turn("second", async () => {
          const [ours, others] = await Promise.all([this.#first.lookAt(keys), this.#second.lookAt(keys)]);
          const lost = keys.filter((_, i) => isLost(ours[i]) && !isLost(others[i]));
          if (!this.#pair.isLevel || lost.length === 0) return;
          for (const [i, key] of keys.entries()) {
            if (lost.includes(key)) healed.set(JSON.stringify(key), others[i] as Uint8Array);
          }
          await this.#mend(this.#second, this.#first, lost);
        });
      } catch (error) {
        if (!isConflict(error) || tries === TRIES) throw error;
      }
    }
  }

  /** Writes rows of one copy again from the other, in both turns. */
  async #mend(source: Copy, target: Copy, keys: Key[]): Promise<void> {
    if (keys.length === 0) return;
    const { changed } = await copyRows(source, target, () => keys);
    if (changed.length === 0) return;
    const reason = `the ${target.name} copy had lost rows, and has them again from the ${source.name}: ${named(changed)}`;
    this.#tell({ kind: "repaired", reason });
  }

  async #check(signal?: AbortSignal): Promise<MirrorReport> {
    const report: MirrorReport = { rows: 0, repaired: 0, lost: 0 };
    for (const table of TABLES) {
      for (let after: Key | undefined, tries = 0; ; ) {
        const page = await this.#turn("first", async () => {
          this.#isLevel = false;
          while (!this.#isLevel) await this.#step(false, signal);
          return this.#turn("second", () => this.#checkPage(table, after)).catch((error: unknown) => {
            // Others went on meanwhile.
            if (isConflict(error) && tries < TRIES) return undefined;
            throw error;
          });
        });
        if (!page) {
          tries++;
          continue;
        }
        tries = 0;
        if (!page.end) break;
        after = page.end;
        report.rows += page.rows;
        report.repaired += page.lostByFirst.length + page.lostBySecond.length;
        report.lost += page.lost.length;
        if (page.lost.length > 0) this.#lost.push(`rows are in neither copy as they were: ${named(page.lost)}`);
      }
    }
    await this.#turn("first", () => this.#noteChecked());
    return report;
  }

  /** Notes that all rows were compared; who is first to write meanwhile leaves it to the next time. */
  async #noteChecked(): Promise<void> {
    const { mark } = this.#first;
    // A pair without a commit has nothing to note.
    if (!this.#isLevel || !mark) return;
    const next = { ...following(mark, randomId(8), [], this.#second.mark, !this.#waits), checked: Date.now() };
    try {
      await this.#first.write(next, {}, "relaxed");
    } catch (error) {
      this.#isLevel = false;
      if (isConflict(error)) return;
      throw error;
    }
    await this.#writeSecond(mark.tag, next, {}, "relaxed");
  }

  /** Compares a page of rows in both turns, and mends those that one copy lost. */
  async #checkPage(table: string, after: Key | undefined): Promise<Compared> {
    const { first, second } = this.#pair;
    const found = await comparePage(first, second, table, after);
    await this.#mend(second, first, found.lostByFirst);
    await this.#mend(first, second, found.lostBySecond);
    if (found.differing.length > 0) {
      const what = `rows differ between the copies, and neither says that it is damaged: ${named(found.differing)}`;
      this.#warn(new CompactionError("store_corrupt", what));
    }
    return found;
  }

  // ---- notices ------------------------------------------------------------------------------------------------------

  /** Work that nobody waits for. */
  #beside(work: () => Promise<void>): void {
    this.#run(work).catch((error: unknown) => this.#warn(error));
  }

  /** The copies are not alike, and `error` keeps them from being made so. */
  #fail(error: unknown, meanwhile?: string): void {
    this.#failed = error;
    this.#warn(error, meanwhile);
  }

  #warn(error: unknown, meanwhile?: string): void {
    if (this.#isWarned || error === this.#ending.signal.reason) return;
    this.#isWarned = true;
    const { code = "store_unavailable", message } = error as CompactionError;
    this.#tell({ kind: "warning", code, message: meanwhile ? `${message} (until it opens again, ${meanwhile})` : message });
  }
}
