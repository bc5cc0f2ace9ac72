/** A store of one directory, which any number of processes may have open. */

import { invalidOption } from "../../checks.js";
import { CompactionError } from "../../errors.js";
import { Mutex } from "../../mutex.js";
import type { Batch, Damaged, Key, Store } from "../../types.js";
import { checkKey, checkScan, MAX_BATCH_OPS, MAX_VALUE_BYTES, ownBatch } from "../keys.js";
import type { ScanOptions } from "../keys.js";
import { Acknowledged, noteOf } from "./acknowledged.js";
import { corrupt, fileError } from "./faults.js";
import type { Directory, Fresh } from "./files.js";
import { Journal } from "./journal.js";
import { removeKept } from "./kept.js";
import { randomId } from "./record.js";
import { remainsOf } from "./remains.js";
import type { Remains } from "./remains.js";
import { writeJournal } from "./rewrite.js";
import { Rows } from "./rows.js";
import type { Row } from "./rows.js";
import { stage } from "./stage.js";
import type { Entry } from "./stage.js";

/** How a store of files writes. */
export interface FileOptions {
  durability?: "strict" | "relaxed" | undefined;
  rewriteBytes?: number | undefined;
}

/** One write takes 2 GiB at most, and a batch is one write. */
const MAX_BATCH_BYTES = 1024 * 1024 * 1024;
/** Commits of so many bytes are written and synced together. */
const GROUP_BYTES = 16 * 1024 * 1024;
/** Who sealed a journal has so long to publish the next one before others do it. */
const HELP_MS = 1_000;
const POLL_MS = 10;
/** A journal that others replace this often while it is being opened is somebody's mistake. */
const TRIES = 100;
/** Rewriting the journal beside other processes' commits is tried this often; then they wait. */
const REWRITES = 3;

/** A store of the files where `open` leads to, opened with the first call. Throws `invalid_option`. */
export function storeIn(open: () => Promise<Directory>, options: FileOptions): Store {
  const { durability = "strict", rewriteBytes = 16 * 1024 * 1024 } = options;
  if (durability !== "strict" && durability !== "relaxed") {
    throw invalidOption("durability", 'must be "strict" or "relaxed"');
  }
  if (typeof rewriteBytes !== "number" || !(rewriteBytes >= 1)) throw invalidOption("rewriteBytes", "must be 1 or more");
  const store = new FileStore(open, durability === "strict", rewriteBytes);
  return {
    get caps() {
      return store.caps;
    },
    read: (keys) => store.read(keys),
    scan: (prefix, options) => store.scan(prefix, options),
    commit: (batch) => store.commit(batch),
    dataLoss: () => store.dataLoss(),
    remains: () => store.remains(),
    purge: () => store.purge(),
    close: () => store.close(),
  };
}

class FileStore {
  readonly #opens: () => Promise<Directory>;
  readonly #strict: boolean;
  readonly #rewriteBytes: number;
  #directory: Directory | undefined;
  #acknowledged: Acknowledged | undefined;
  #journal: Journal | undefined;
  #rows = new Rows();
  /** What is read until this is closed. */
  readonly #remains: Pick<Remains, "close">[] = [];
  /** One at a time: calls that read the rows, or change them. */
  readonly #turns = new Mutex();
  #queue: Entry[] = [];
  #working: Promise<void> | undefined;
  #closed = false;
  #readOnly = false;
  /** There are journals that were kept because they were damaged. */
  #hasKept = false;
  /** How much of the journal is known to be on the disk. */
  #synced = 0;
  /** After a failure the journal is not rewritten before it has so many bytes. */
  #patience = 0;

  constructor(opens: () => Promise<Directory>, strict: boolean, rewriteBytes: number) {
    this.#opens = opens;
    this.#strict = strict;
    this.#rewriteBytes = rewriteBytes;
  }

  get caps(): Store["caps"] {
    const written = this.#strict ? "synced" : "process";
    return {
      atomic: "batch",
      cas: true,
      // Whether something can be written is known when the store was opened.
      durable: this.#readOnly ? "none" : written,
      maxValueBytes: MAX_VALUE_BYTES,
      maxBatchOps: MAX_BATCH_OPS,
      reportsDamage: true,
    };
  }

  async read(keys: Key[]): Promise<(Uint8Array | Damaged | undefined)[]> {
    this.#checkOpen();
    keys.forEach(checkKey);
    const { values } = await this.#select((rows) => keys.map((key) => rows.find(key)));
    return values;
  }

  async scan(prefix: Key, options: ScanOptions): Promise<[Key, Uint8Array | Damaged][]> {
    this.#checkOpen();
    checkScan(prefix, options);
    const wanted = (rows: Rows) => rows.scan(prefix, options);
    const { found, values } = await this.#select(wanted, options.keysOnly);
    return found.map(({ key }, i) => [[...key], values[i]!]);
  }

  async commit(batch: Batch): Promise<void> {
    this.#checkOpen();
    const owned = ownBatch(batch, this.caps);
    const bytes = bytesOf(owned);
    if (bytes > MAX_BATCH_BYTES) {
      throw new CompactionError("too_large", `A batch of ${bytes} bytes is over the store's ${MAX_BATCH_BYTES}: split it`);
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ batch: owned, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  async dataLoss(): Promise<string | undefined> {
    this.#checkOpen();
    return this.#exclusive(async () => {
      let journal = await this.#current();
      const lost = journal.lost.join("; ");
      // That it was reported is written down, once, by the first process.
      for (let tries = 0; tries < TRIES && journal.lost.length > 0; tries++, journal = await this.#current()) {
        // Where that fails it is reported again when the store is opened next.
        await this.#note(journal, []).catch(() => journal.told());
      }
      return lost || undefined;
    });
  }

  async remains(): Promise<Store> {
    this.#checkOpen();
    let directory: Directory | undefined;
    try {
      directory = await this.#opens();
      const remains = await remainsOf(directory, this.caps);
      this.#remains.push(remains, directory);
      return remains.store;
    } catch (error) {
      await directory?.close();
      throw fileError(error);
    }
  }

  /** Rewrites the journal, and removes what was kept of damaged ones: nothing that was deleted is in a file then. */
  async purge(): Promise<void> {
    this.#checkOpen();
    await this.#working;
    await this.#rewrite();
    await this.#exclusive(async () => {
      const { number } = await this.#current();
      const { kept } = await this.#directory!.look();
      for (const old of kept) if (old < number) await this.#directory!.removeKept(old);
      this.#hasKept = false;
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#working;
    // Who opens the files next would take for stored what the system shows; where this fails, they are as good as after a kill.
    await this.#heal().catch(() => {});
    await Promise.all(this.#remains.splice(0).map((remains) => remains.close()));
    await this.#exclusive(async () => {
      const [journal, acknowledged] = [this.#journal, this.#acknowledged];
      // What was relaxed is vouched for from now on, so that damage of it is known as such.
      if (journal && !journal.suspect && !this.#readOnly && journal.end > this.#synced) await this.#sync(journal).catch(() => {});
      this.#journal = this.#acknowledged = undefined;
      await journal?.retire();
      await acknowledged?.close();
    });
    await this.#directory?.close();
  }

  #checkOpen(): void {
    if (this.#closed) throw new CompactionError("closed", "The store was closed: make a new one");
  }

  /** The rows that `select` finds, as they are at one moment, and their values. */
  async #select<R extends Row | undefined>(select: (rows: Rows) => R[], keysOnly = false) {
    await this.#heal();
    const { found, reading } = await this.#exclusive(async () => {
      const journal = await this.#current();
      const found = select(this.#rows);
      // In this turn: the file must not be closed before it is read.
      const reading = keysOnly
        ? Promise.resolve(found.map(() => new Uint8Array()))
        : this.#using(journal, () => journal.values(found));
      return { found, reading };
    });
    return { found, values: await reading.catch((error: unknown) => Promise.reject(fileError(error))) };
  }

  async #exclusive<T>(work: () => Promise<T>): Promise<T> {
    const release = await this.#turns.acquire();
    try {
      return await (this.#directory ? this.#directory.turn(work) : work());
    } catch (error) {
      throw fileError(error);
    } finally {
      release();
    }
  }

  /** Keeps the journal open for `work`, which begins at once, and the turn where there is one. */
  #using<T>(journal: Journal, work: () => Promise<T>): Promise<T> {
    return journal.using(() => this.#directory!.within(work));
  }

  /** Answers all that waits. Never rejects. */
  async #work(): Promise<void> {
    while (this.#queue.length > 0) {
      let bytes = 0;
      const count = this.#queue.findIndex(({ batch }, i) => (bytes += bytesOf(batch)) > GROUP_BYTES && i > 0);
      await this.#commitAll(this.#queue.splice(0, count < 0 ? this.#queue.length : count));
      await this.#tidy();
    }
    this.#working = undefined;
  }

  /** Writes `entries` in one piece, again and again as long as others were faster. */
  async #commitAll(entries: Entry[]): Promise<void> {
    let rest = entries;
    for (let lost = 0; rest.length > 0; lost++) {
      let written: Entry[] = [];
      try {
        await this.#heal();
        const attempt = await this.#exclusive(() => this.#attempt(rest));
        ({ written, rest } = attempt);
        await attempt.durable;
        if (this.#hasKept && written.some(deletesForGood)) await this.#removeKept();
        written.forEach((entry) => entry.resolve());
      } catch (thrown) {
        const error = fileError(thrown);
        // What was written and could not be made durable is `indeterminate`, and nothing else was tried.
        const failed = written.length > 0 ? written : rest;
        failed.forEach((entry) => entry.reject(error));
        if (failed === rest) return;
      }
      if (written.length === 0 && rest.length > 0) await sleep(Math.random() * Math.min(50, 2 ** lost));
    }
  }

  async #attempt(entries: Entry[]): Promise<{ written: Entry[]; rest: Entry[]; durable: Promise<void> }> {
    const journal = await this.#current();
    const { staged, later } = stage(entries, this.#rows);
    if (staged.length === 0) return { written: [], rest: later, durable: Promise.resolve() };
    const records = journal.encode(staged);
    const sums = await journal.append(records, this.#rows);
    const written = new Set(staged.filter((_, i) => sums.has(records[i]!.sum)).map(({ entry }) => entry));
    const waiting = new Set([...later, ...staged.map(({ entry }) => entry)].filter((entry) => !written.has(entry)));
    const strict = this.#strict && [...written].some(({ batch }) => batch.durability === "strict");
    return {
      written: [...written],
      rest: entries.filter((entry) => waiting.has(entry)),
      durable: strict ? this.#using(journal, () => this.#sync(journal)) : Promise.resolve(),
    };
  }

  /** Removes what was kept for sessions that are deleted. A failure costs room: it is tried again with the next deletion. */
  async #removeKept(): Promise<void> {
    await this.#exclusive(async () => {
      const journal = await this.#current();
      this.#hasKept = await removeKept(this.#directory!, journal.number, this.#rows);
    }).catch(() => {});
  }

  async #sync(journal: Journal): Promise<void> {
    const { id, end, seq } = journal;
    await journal.sync();
    if (journal !== this.#journal) return;
    this.#synced = end;
    await this.#acknowledged?.write({ id, end, seq });
  }

  /** The journal, with all that was appended to it in the rows. */
  async #current(): Promise<Journal> {
    if (this.#journal) await this.#journal.advance(this.#rows, async () => (await this.#acknowledged?.read()) ?? []);
    else await this.#open();
    const { voided } = this.#journal!;
    while (this.#journal!.sealed && (await this.#follow(HELP_MS)));
    const journal = this.#journal!;
    if (voided.length > 0 && !journal.sealed) {
      await this.#note(journal, [...new Set([...journal.lost, ...voided])]).catch(() => {});
    }
    return journal;
  }

  /** Writes down what is missing and not reported yet. */
  #note(journal: Journal, lost: readonly string[]): Promise<Set<string>> {
    const change = { puts: [], deletes: [], nonce: randomId(16), lost: [...lost] };
    return journal.append(journal.encode([{ change, values: [] }]), this.#rows);
  }

  /** Opens the last journal, and makes the first. */
  async #open(): Promise<void> {
    const directory = (this.#directory ??= await this.#opens());
    return directory.within(() => this.#openIn(directory));
  }

  async #openIn(directory: Directory): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      const { journals, used } = await directory.look();
      const number = journals.at(-1);
      if (number === undefined) {
        if (used) throw corrupt("the journal is gone");
        await (await this.#write(1, [], undefined)).publish();
      } else if (await this.#load(directory, number)) return;
    }
    throw new CompactionError("store_unavailable", "Other processes write the journal anew all the time: try again");
  }

  /** Opens journal `number` unless a later one is there by then. */
  async #load(directory: Directory, number: number): Promise<boolean> {
    const opened = await directory.journal(number);
    if (!opened) return false;
    try {
      const rows = new Rows();
      const writable = opened.readOnly === undefined;
      this.#acknowledged ??= await Acknowledged.open(directory);
      const notes = await this.#acknowledged.read();
      const journal = await Journal.open(number, opened, rows, notes);
      // Looked at again: in the meantime, it may have been sealed, and its name taken by somebody who came too late.
      const { journals, kept } = await directory.look();
      if (journals.at(-1) !== number) return false;
      if (!journal) throw corrupt(`journal ${number} is empty`);
      if (writable) {
        // What is read here is relied on from now on, whichever process wrote it, synced or not.
        // The journal has its name before anything says that there was one.
        await directory.sync();
        if (await this.#acknowledged.make(directory)) await directory.sync();
        await opened.handle.datasync();
        const { id, end, seq } = journal;
        // What was acknowledged and is missing is known by the note, until the journal itself says so.
        const note = noteOf(notes, id);
        if (!note || end > note.end) await this.#acknowledged.write({ id, end, seq });
        this.#synced = end;
        await directory.clean(number).catch(() => {});
      }
      [this.#journal, this.#rows, this.#readOnly] = [journal, rows, !writable];
      this.#hasKept = kept.length > 0;
      return true;
    } finally {
      if (this.#journal?.number !== number) await opened.handle.close();
    }
  }

  /** Goes on to the journal after the sealed one; makes it when nobody does for `wait` ms. False when that is not
   *  allowed. */
  async #follow(wait: number): Promise<boolean> {
    const sealed = this.#journal!;
    const directory = this.#directory!;
    for (let waited = 0; (await directory.look()).journals.at(-1)! <= sealed.number; waited += POLL_MS) {
      if (sealed.readOnly !== undefined) return false;
      if (waited >= wait) await (await this.#write(sealed.number + 1, this.#rows.all(), sealed)).publish();
      else await sleep(POLL_MS);
    }
    this.#journal = undefined;
    try {
      await this.#open();
    } finally {
      this.#journal ??= sealed;
    }
    sealed.retire().catch(() => {});
    return true;
  }

  /** A journal of `rows` that is not published yet. */
  async #write(number: number, rows: Row[], from: Journal | undefined): Promise<Fresh> {
    const fresh = await this.#directory!.fresh(number);
    try {
      const isWhole = await writeJournal(fresh.handle, rows, from);
      if (from && !isWhole) await this.#directory!.keep(from.number);
      return fresh;
    } catch (error) {
      await fresh.discard();
      throw error;
    }
  }

  /** Rewrites the journal when too much of it is of no use. A failure costs room, nothing else. */
  async #tidy(): Promise<void> {
    const journal = this.#journal;
    if (!journal || journal.end < this.#patience) return;
    const dead = journal.end - this.#rows.bytes;
    if (dead < this.#rewriteBytes || dead < this.#rows.bytes) return;
    await this.#rewrite().catch(() => (this.#patience = journal.end + this.#rewriteBytes));
  }

  /** After a sync that failed the system may have forgotten what can still be read: nobody is to rely on that, who reads as
   *  little as who writes, before it is rewritten. */
  async #heal(): Promise<void> {
    const journal = this.#journal;
    // A sync that fails makes it suspect.
    if (journal?.unsure && !journal.suspect) await this.#exclusive(() => this.#sync(journal)).catch(() => {});
    if (!this.#journal?.suspect) return;
    await this.#rewrite().catch((error: unknown) => Promise.reject(fileError(error)));
  }

  /** Writes what is stored to the next journal, seals this one, and publishes that. */
  async #rewrite(): Promise<void> {
    for (let tries = 0; tries < REWRITES; tries++) {
      const { journal, seq, rows } = await this.#exclusive(async () => {
        const journal = await this.#current();
        return { journal, seq: journal.seq, rows: this.#rows.all() };
      });
      const fresh = await this.#using(journal, () => this.#write(journal.number + 1, rows, journal));
      try {
        const done = await this.#exclusive(async () => {
          if ((await this.#current()) !== journal) return true;
          if (journal.seq !== seq || !(await this.#seal(journal))) return false;
          await fresh.publish();
          return this.#follow(0);
        });
        if (done) return;
      } finally {
        await fresh.discard();
      }
    }
    await this.#exclusive(async () => {
      while (!(await this.#seal(await this.#current())));
      await this.#follow(0);
    });
  }

  /** Ends `journal` for everyone; false when somebody else appended first. */
  async #seal(journal: Journal): Promise<boolean> {
    const change = { puts: [], deletes: [], nonce: randomId(16), sealed: true as const };
    const records = journal.encode([{ change, values: [] }]);
    return (await journal.append(records, this.#rows)).has(records[0]!.sum);
  }
}

/** Jobs come and go; what else is deleted may be the last that a session had. */
function deletesForGood({ batch }: Entry): boolean {
  return batch.deletes.some(([table]) => table !== "jobs");
}

function bytesOf({ puts }: Batch): number {
  return puts.reduce((total, [, value]) => total + value.byteLength, 0);
}

function sleep(ms: number): Promise<void> {
  return new Promise((go) => setTimeout(go, ms));
}
