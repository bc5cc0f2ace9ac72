/** Two stores as one: every commit goes to both, and what one of them loses comes back from the other. */

import { checkObject, checkOptions, invalidOption } from "../../checks.js";
import { quietly } from "../../driver.js";
import { CompactionError } from "../../errors.js";
import { Mutex } from "../../mutex.js";
import type { Batch, Key, MirrorOptions, MirrorReport, MirrorStore, Store, StoreNotice } from "../../types.js";
import { checkKey, checkScan, compareKeys, isDamaged, ownBatch, randomId, startsWith, TABLES } from "../keys.js";
import type { ScanOptions, Value } from "../keys.js";
import { Copy, following, isOwn, MARK_OPS, RESERVED } from "./mark.js";
import type { Change, Mark } from "./mark.js";
import { fresh, isSound, named, Pair } from "./pair.js";
import { remainsOf } from "./remains.js";
import { copyRows, isCounted, isLost, isSame } from "./rows.js";
import { isConflict } from "./versions.js";

/** A conflict with another process is tried again this often before it is the caller's. */
const TRIES = 100;
/** All rows are compared when a pair is opened and that was last done so many ms ago. */
const CHECK_MS = 24 * 60 * 60 * 1_000;
const PAGE = { limit: 100, maxBytes: 1024 * 1024 };

/**
 * Keeps everything in `first` and `second`, two stores of any kind: each is a whole copy, and opens without the other. Commits
 * go to the first, which decides about conflicts, then to the second with the same batch; reads come from the first. A row
 * that one copy reports as damaged, or has lost, comes back from the other; a copy that is behind, or empty, is made whole
 * again when the pair is next used. Sessions tell that as `dataloss` of kind `repaired`. Several tabs or processes may use
 * the same pair, with the same order of its copies.
 *
 * `acknowledge: "both"` (default): a commit resolves when both copies have it, so what was acknowledged survives the loss of
 * either. While the second cannot be written, appends fail, with the error of the second and nothing written; the one that met
 * the failure first fails with `indeterminate`. `"first"`: it resolves when the first has it, and the second follows; `behind`
 * says by how many commits.
 *
 * Throws `invalid_option` for a store without `caps.atomic: "batch"` and `caps.cas`. Its calls reject with `invalid_option`,
 * too, for two stores with rows that are no copies of each other.
 */
export function mirrorStore(first: Store, second: Store, options: MirrorOptions = {}): MirrorStore {
  checkOptions(options, ["acknowledge"]);
  const { acknowledge = "both" } = options;
  if (acknowledge !== "both" && acknowledge !== "first") throw invalidOption("acknowledge", 'must be "both" or "first"');
  for (const [name, store] of Object.entries({ first, second })) {
    checkObject(store);
    if (store.caps?.atomic !== "batch" || !store.caps.cas) {
      throw invalidOption(name, 'must be a store with caps.atomic "batch" and caps.cas');
    }
  }
  if (first === second) throw invalidOption("second", "must be another store than the first");
  const mirror = new Mirror(first, second, acknowledge === "both");
  const name = first.name ?? second.name;
  return {
    get caps() {
      return mirror.caps;
    },
    ...(name !== undefined && { name }),
    read: (keys) => mirror.read(keys),
    scan: (prefix, options) => mirror.scan(prefix, options),
    commit: (batch) => mirror.commit(batch),
    // Also where neither copy tells of losses: what both have lost is known here alone.
    dataLoss: () => mirror.dataLoss(),
    ...(first.changes && { changes: (listener) => first.changes!(listener) }),
    ...(first.persisted && { persisted: () => first.persisted!() }),
    ...((first.purge || second.purge) && { purge: () => mirror.purge() }),
    remains: () => remainsOf(first, second, (store, prefix, options) => visible(new Copy(store, "first"), prefix, options)),
    notices: (listener) => mirror.notices(listener),
    get behind() {
      return mirror.behind;
    },
    check: (options) => mirror.check(options),
    close: () => mirror.close(),
  };
}

/** What the second copy is still to be given, by who wrote it. */
interface Queued {
  /** The commit before it. */
  after: string | undefined;
  next: Mark;
  change: Change;
  durability: Batch["durability"];
}

class Mirror {
  readonly #first: Copy;
  readonly #second: Copy;
  readonly #pair: Pair;
  readonly #waits: boolean;
  /** Turns of who writes to a copy. Who needs both takes the first's first. */
  readonly #turns = { first: new Mutex(), second: new Mutex() };
  readonly #running = new Set<Promise<unknown>>();
  readonly #ending = new AbortController();
  readonly #listeners = new Set<(notice: StoreNotice) => void>();
  readonly #unheard: StoreNotice[] = [];
  #lost: string[] = [];
  /** The first copy can be read. */
  #isOpen = false;
  /** The second has all but what is queued. */
  #isLevel = false;
  #queue: Queued[] = [];
  #following: Promise<void> | undefined;
  /** Keys of a commit that the second copy does not have, though its caller waited for that. */
  #owed: Set<string> | undefined;
  /** The first copy may have more than was seen: a commit of it was not answered. */
  #isUnsure = false;
  #isWarned = false;
  /** What each copy promised before it was opened. */
  readonly #promised: Store["caps"]["durable"][];

  constructor(first: Store, second: Store, waits: boolean) {
    [this.#first, this.#second, this.#waits] = [new Copy(first, "first"), new Copy(second, "second"), waits];
    this.#promised = [first, second].map(({ caps }) => caps.durable);
    this.#pair = new Pair(this.#first, this.#second, (kind, reason) => {
      if (kind === "repaired") this.#tell({ kind, reason });
      else this.#lost.push(reason);
    });
  }

  get caps(): Store["caps"] {
    const [one, two] = [this.#first.store.caps, this.#second.store.caps];
    const now = [one.durable, two.durable];
    // One that promises less since it was opened can only be read: then nothing can be written to both.
    const isReadOnly = now.some((durable, i) => durable === "none" && this.#promised[i] !== "none");
    const best = PROMISES.find((promise) => (this.#waits ? now : [one.durable]).includes(promise))!;
    return {
      atomic: "batch",
      cas: true,
      durable: isReadOnly ? "none" : best,
      maxValueBytes: Math.min(one.maxValueBytes, two.maxValueBytes),
      maxBatchOps: Math.min(one.maxBatchOps, two.maxBatchOps) - MARK_OPS,
      reportsDamage: one.reportsDamage === true && two.reportsDamage === true,
    };
  }

  get behind(): number {
    const [one, two] = [this.#first.mark, this.#second.mark];
    if (!one) return 0;
    return isSound(two) ? Math.max(0, one.seq - two.seq) : one.seq > 1 || !this.#isLevel ? Infinity : 1;
  }

  read(keys: Key[]): Promise<(Value | undefined)[]> {
    return this.#run(async () => {
      keys.forEach(checkKey);
      keys.forEach(checkFree);
      const asked = keys.map((key) => [...key]);
      if (asked.length === 0) return [];
      await this.#open();
      if (this.#owed && asked.some((key) => this.#owed?.has(JSON.stringify(key)))) await this.#pay();
      if (this.#isUnsure) await this.#lookAgain();
      const values = await this.#first.ask((store) => store.read(asked));
      const doubtful = asked.filter((_, i) => isLost(values[i]));
      const healed = await this.#healed(doubtful);
      return healed.size === 0 ? values : asked.map((key, i) => healed.get(JSON.stringify(key)) ?? values[i]);
    });
  }

  scan(prefix: Key, options: ScanOptions): Promise<[Key, Value][]> {
    return this.#run(async () => {
      checkScan(prefix, options);
      checkFree(prefix);
      const [under, how] = [[...prefix], { ...options }];
      await this.#open();
      const found = await visible(this.#first, under, how);
      const damaged = found.filter(([, value]) => isLost(value)).map(([key]) => key);
      const healed = await this.#healed(damaged);
      const rows = found.map(([key, value]): [Key, Value] => [key, healed.get(JSON.stringify(key)) ?? value]);
      return healed.size === 0 ? rows : cut(rows, how);
    });
  }

  commit(batch: Batch): Promise<void> {
    return this.#run(async () => {
      const owned = ownBatch(batch, this.caps);
      const keys = [...owned.puts.map(([key]) => key), ...owned.deletes];
      [...keys, ...owned.expect.map(({ key }) => key)].forEach(checkFree);
      if (keys.length > 0) await this.#turn("first", () => this.#commit(owned, keys));
      else if (owned.expect.length > 0) {
        await this.#open();
        await this.#first.ask((store) => store.commit(owned));
      }
    });
  }

  dataLoss(): Promise<string | undefined> {
    return this.#run(async () => {
      await this.#open();
      return this.#lost.splice(0).join("; ") || undefined;
    });
  }

  notices(listener: (notice: StoreNotice) => void): () => void {
    this.#listeners.add(listener);
    for (const notice of this.#unheard.splice(0)) queueMicrotask(() => this.#tell(notice));
    return () => void this.#listeners.delete(listener);
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

  async close(): Promise<void> {
    // What waits for the second copy is given to it; nothing else is begun.
    if (!this.#ending.signal.aborted && this.#isLevel) await this.#following;
    this.#ending.abort(new CompactionError("closed", "The store was closed: make a new one"));
    await Promise.allSettled([...this.#running, this.#following]);
    const closed = await Promise.allSettled([this.#first.store.close?.(), this.#second.store.close?.()]);
    for (const one of closed) if (one.status === "rejected") throw one.reason;
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

  /** Lets the first copy be read: it is whole, or is made so. The second catches up behind it. */
  async #open(): Promise<void> {
    if (this.#isOpen) return;
    await this.#turn("first", async () => {
      while (!this.#isOpen) {
        try {
          await this.#step();
        } catch (error) {
          const { code } = error as CompactionError;
          if (code === "invalid_option" || code === "schema_too_new") throw error;
          // Without the second it can be read where it is known to be a copy of something.
          await this.#first.look();
          if (!this.#first.mark || !this.#pair.isFirstWhole) throw error;
          this.#isOpen = true;
          this.#warn(error);
        }
      }
    });
    void this.#follow();
    const { mark } = this.#first;
    if (mark && Date.now() - mark.checked > CHECK_MS) this.#beside(async () => void (await this.#check()));
  }

  /** One step towards one state, in the turn of the first. */
  async #step(patient = false, signal?: AbortSignal): Promise<boolean> {
    this.#ending.signal.throwIfAborted();
    signal?.throwIfAborted();
    const isDone = await this.#turn("second", () => this.#pair.step(patient));
    // Its caller did not hear that it is on the first disk, either.
    if (isDone && this.#owed) await this.#first.sync();
    this.#isOpen ||= this.#pair.isFirstWhole;
    if (isDone) {
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

  /** Gives the second copy what it does not have. Its failure is told, and tried again with the next commit. */
  #follow(): Promise<void> {
    return (this.#following ??= this.#followUp()
      .catch((error: unknown) => {
        this.#isLevel = false;
        this.#queue = [];
        this.#warn(error);
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
      await this.#second.writeAfter(queued.after, queued.next, queued.change, queued.durability);
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
      const before = this.#first.mark;
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
        if (this.#first.mark?.tag === before?.tag || tries === TRIES) throw error;
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
      await this.#turn("second", () => this.#second.writeAfter(after, next, change, durability));
    } catch (error) {
      if (!isConflict(error)) throw error;
      // Somebody else's commit is to come before it, or brought this one along.
      this.#isLevel = false;
      await this.#level(true);
    }
  }

  /** Gives the second copy what its caller was told it may not have: whoever reads that now would take it for stored. */
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
    if (keys.length === 0) return healed;
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
        report.repaired += page.repaired.length;
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
  async #checkPage(table: string, after: Key | undefined) {
    const { first, second } = this.#pair;
    const options = { ...PAGE, ...(after && { after }) };
    const pages = [await visible(first, [table], options), await visible(second, [table], options)];
    const ends = pages.flatMap((rows) => (rows.length > 0 ? [rows.at(-1)![0]] : []));
    const end = ends.sort(compareKeys)[0];
    const [ours, others] = pages.map((rows) => new Map(rows.map(([key, value]) => [JSON.stringify(key), value])));
    const all = new Map(pages.flat().map(([key]) => [JSON.stringify(key), key]));
    const keys = [...all].filter(([, key]) => end && compareKeys(key, end) <= 0);
    const where = (wanted: (a: Value | undefined, b: Value | undefined) => boolean) =>
      keys.filter(([name]) => wanted(ours!.get(name), others!.get(name))).map(([, key]) => key);
    const toFirst = where((a, b) => isLost(a) && !isLost(b));
    const toSecond = where((a, b) => !isLost(a) && isLost(b));
    const lost = where((a, b) => isLost(a) && isLost(b));
    await this.#mend(second, first, toFirst);
    await this.#mend(first, second, toSecond);
    const differing = where((a, b) => !isLost(a) && !isLost(b) && !isSame(a, b));
    if (differing.length > 0) {
      const what = `rows differ between the copies, and neither says that it is damaged: ${named(differing)}`;
      this.#warn(new CompactionError("store_corrupt", what));
    }
    return { end, rows: keys.length, repaired: [...toFirst, ...toSecond], lost };
  }

  // ---- what is told -------------------------------------------------------------------------------------------------

  /** Work that nobody waits for. */
  #beside(work: () => Promise<void>): void {
    this.#run(work).catch((error: unknown) => this.#warn(error));
  }

  #warn(error: unknown): void {
    if (this.#isWarned || error === this.#ending.signal.reason) return;
    this.#isWarned = true;
    const { code = "store_unavailable", message } = error as CompactionError;
    this.#tell({ kind: "warning", code, message });
  }

  #tell(notice: StoreNotice): void {
    if (this.#listeners.size === 0) this.#unheard.push(notice);
    for (const listener of this.#listeners) quietly(() => listener(notice));
  }
}

const PROMISES = ["synced", "process", "none"] as const;

function checkFree(key: Key): void {
  if (startsWith(key, RESERVED)) throw invalidOption(JSON.stringify(key), "is a key of the mirror's own");
}

/** The rows of a copy without those that are the mirror's own. */
async function visible(copy: Copy, prefix: Key, options: ScanOptions): Promise<[Key, Value][]> {
  if (prefix.length > 1 || prefix[0] !== RESERVED[0]) return copy.ask((store) => store.scan(prefix, options));
  const { limit, maxBytes } = options;
  const rows: [Key, Value][] = [];
  for (let { after } = options; ; ) {
    const page = { ...options, ...(after && { after }), limit: limit + MARK_OPS, maxBytes: maxBytes + MARK_BYTES };
    const found = await copy.ask((store) => store.scan(prefix, page));
    rows.push(...found.filter(([key]) => !isOwn(key)));
    // The mirror's own rows may have taken all of it.
    if (rows.length > 0 || found.length === 0) return cut(rows, options);
    after = found.at(-1)![0];
  }
}

/** What the rows of a mark may take in a page, beside others. */
const MARK_BYTES = 256 * 1024;

/** What of `rows` a page has room for. */
function cut(rows: [Key, Value][], { limit, maxBytes }: ScanOptions): [Key, Value][] {
  let bytes = 0;
  const end = rows.findIndex(([, value], i) => {
    bytes += isDamaged(value) ? 0 : value.byteLength;
    return i === limit || (i > 0 && bytes > maxBytes);
  });
  return end < 0 ? rows : rows.slice(0, end);
}
