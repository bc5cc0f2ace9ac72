/**
 * What the files of a store still have, whether it opens or not. Nothing is written, and nothing is made room for.
 *
 * The newest journal that can be read says what there is. What is damaged in it is taken out of an older file where it was
 * whole: of those that were kept because they were damaged elsewhere. What is missing in it may have been deleted; only
 * where records of it cannot be read is that taken, too, and reported.
 */

import { CompactionError } from "../../errors.js";
import type { Damaged, Key, Store } from "../../types.js";
import { isDamaged } from "../keys.js";
import { Acknowledged } from "./acknowledged.js";
import type { Note } from "./acknowledged.js";
import { corrupt, fileError } from "./faults.js";
import { keptName } from "./files.js";
import type { Directory, Opened } from "./files.js";
import { Journal } from "./journal.js";
import { Rows } from "./rows.js";
import type { Row } from "./rows.js";

export interface Remains {
  store: Store;
  close(): Promise<void>;
}

/** A file that can be read, and what it has. */
interface Source {
  journal: Journal;
  rows: Rows;
  /** Of one that is not the newest journal. */
  name: string;
}

/** The rows in a directory that can be read. */
export async function remainsOf(directory: Directory, caps: Store["caps"]): Promise<Remains> {
  const { journals, kept, used } = await directory.look();
  const acknowledged = await Acknowledged.open(directory);
  const notes = await acknowledged.read();
  await acknowledged.close();
  const files = [
    ...journals.map((number) => ({ number, open: () => directory.journal(number), old: "" })),
    ...kept.map((number) => ({ number, open: () => directory.kept(number), old: keptName(number) })),
  ].sort((a, b) => b.number - a.number || a.old.length - b.old.length);
  const sources: Source[] = [];
  const close = async () => void (await Promise.all(sources.map(({ journal }) => journal.retire())));
  const lost: string[] = [];
  try {
    for (const { number, open, old } of files) {
      const [rows, opened] = [new Rows(), await open()];
      const journal = opened && (await journalIn(number, opened, rows, notes));
      if (!journal) continue;
      if (sources.length === 0 && old) {
        lost.push(`the journal cannot be read: this is what ${old} has, and what was written later is missing`);
      }
      sources.push({ journal, rows, name: old || `journal ${number}` });
    }
  } catch (error) {
    await close();
    throw error;
  }
  const newest = sources[0];
  if (!newest && (used || files.length > 0)) {
    throw corrupt("none of its journals can be read", "Put the directory back from a copy of it");
  }
  const { from, taken } = newest ? withMissing(sources) : { from: new Map<string, Source>(), taken: [] };
  lost.push(...(newest?.journal.lost ?? []), ...taken);
  return { store: storeOf(sources, from, caps, lost.join("; ")), close };
}

/**
 * Adds to the rows of the newest file what older ones have and what records that cannot be read may have taken: which
 * file each such row is `from`, by its key, and in words what was `taken`.
 */
function withMissing([newest, ...older]: Source[]): { from: Map<string, Source>; taken: string[] } {
  const { journal, rows } = newest!;
  const from = new Map<string, Source>();
  const taken: string[] = [];
  let isIncomplete = journal.incomplete;
  for (const source of older) {
    if (isIncomplete) {
      const known = new Set(rows.all().flatMap(({ key }) => (key[0] === "meta" ? [] : [key[1]!])));
      const missing = source.rows.all().filter(({ key }) => !rows.find(key) && isWanted(key, known));
      for (const row of missing) {
        rows.set(row);
        from.set(JSON.stringify(row.key), source);
      }
      if (missing.length > 0) {
        taken.push(`${missing.length} rows that are missing are as ${source.name} has them: sessions among them may have been deleted since`);
      }
    }
    isIncomplete ||= source.journal.incomplete;
  }
  return { from, taken };
}

/** Of a session that is `known` what is written once; of any other all that there is. */
function isWanted([table, part]: Key, known: Set<string | number>): boolean {
  if (table === "meta") return part === "session" || part === "keys";
  return table === "log" || table === "blobs" || !known.has(part!);
}

/** The journal in a file; undefined, and the file closed, where it cannot be read. */
export async function journalIn(number: number, opened: Opened, rows: Rows, notes: Note[] = []) {
  let journal: Journal | undefined;
  try {
    journal = await Journal.open(number, opened, rows, notes, true);
  } catch (error) {
    if (!CompactionError.isInstance(error) || error.code !== "store_corrupt") throw error;
  } finally {
    if (!journal) await opened.handle.close();
  }
  return journal;
}

function storeOf(sources: Source[], from: Map<string, Source>, caps: Store["caps"], lost: string): Store {
  const rows = sources[0]?.rows ?? new Rows();
  const sourceOf = ({ key }: Row) => from.get(JSON.stringify(key)) ?? sources[0]!;
  const valuesIn = ({ journal }: Source, found: (Row | undefined)[]) => journal.using(() => journal.values(found));

  /** The value of a row that is damaged, out of an older file where it is whole. */
  async function elsewhere(row: Row): Promise<Uint8Array | undefined> {
    if (row.doubt) return undefined;
    let sum = row.kept === undefined ? row.crc : undefined;
    for (const source of sources.slice(sources.indexOf(sourceOf(row)) + 1)) {
      const other = source.rows.find(row.key);
      if (!other || other.version !== row.version || other.kept !== undefined || other.doubt) continue;
      sum ??= other.crc;
      if (other.crc !== sum) continue;
      const [value] = await valuesIn(source, [other]);
      if (value instanceof Uint8Array) return value;
    }
    return undefined;
  }

  async function values(found: (Row | undefined)[]): Promise<(Uint8Array | Damaged | undefined)[]> {
    const values: (Uint8Array | Damaged | undefined)[] = found.map(() => undefined);
    for (const source of sources) {
      const own = found.map((row) => (row && sourceOf(row) === source ? row : undefined));
      if (!own.some(Boolean)) continue;
      for (const [i, value] of (await valuesIn(source, own)).entries()) values[i] ??= value;
    }
    for (const [i, value] of values.entries()) {
      if (isDamaged(value)) values[i] = (await elsewhere(found[i]!)) ?? value;
    }
    return values;
  }

  const reading = (found: (Row | undefined)[]) =>
    values(found).catch((error: unknown) => Promise.reject(fileError(error)));
  return {
    caps: { ...caps, durable: "none" },
    read: (keys) => reading(keys.map((key) => rows.find(key))),
    async scan(prefix, options) {
      const found = rows.scan(prefix, options);
      const read = options.keysOnly ? found.map(() => new Uint8Array()) : await reading(found);
      return found.map(({ key }, i) => [[...key], read[i]!]);
    },
    commit() {
      throw new CompactionError("store_unavailable", "This is read only: import the archives into another store");
    },
    dataLoss: () => lost || undefined,
  };
}
