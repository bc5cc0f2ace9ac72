/** What the files of a store still have, whether it opens or not. Nothing is written, and nothing is made room for. */

import { CompactionError } from "../../errors.js";
import type { Store } from "../../types.js";
import { Acknowledged } from "./acknowledged.js";
import { Directory, keptName } from "./directory.js";
import type { Opened } from "./directory.js";
import { corrupt, fileError } from "./faults.js";
import { Journal } from "./journal.js";
import { Rows } from "./rows.js";

export interface Remains {
  store: Store;
  close(): Promise<void>;
}

/** The rows of the newest journal in the directory at `path` that can be read, of those too that were kept. */
export async function remainsOf(path: string, caps: Store["caps"]): Promise<Remains> {
  const directory = await Directory.open(path);
  const { journals, kept, used } = await directory.look();
  const acknowledged = await Acknowledged.open(directory);
  const note = await acknowledged.read();
  await acknowledged.close();
  const newest = [
    ...journals.map((number) => ({ number, open: () => directory.journal(number), old: "" })),
    ...kept.map((number) => ({ number, open: () => directory.kept(number), old: keptName(number) })),
  ].sort((a, b) => b.number - a.number || a.old.length - b.old.length);
  for (const { number, open, old } of newest) {
    const [rows, opened] = [new Rows(), await open()];
    const journal = opened && (await journalIn(number, opened, rows, note));
    if (!journal) continue;
    const lost = old
      ? [`the journal cannot be read: this is what ${old} has, and what was written later is missing`, ...journal.lost]
      : journal.lost;
    return { store: storeOf(journal, rows, caps, lost.join("; ")), close: () => journal.retire() };
  }
  if (used || newest.length > 0) throw corrupt("none of its journals can be read", "Put the directory back from a copy of it");
  return { store: storeOf(undefined, new Rows(), caps, ""), close: async () => {} };
}

/** The journal in a file; undefined, and the file closed, where it cannot be read. */
async function journalIn(number: number, opened: Opened, rows: Rows, note: Parameters<typeof Journal.open>[3]) {
  let journal: Journal | undefined;
  try {
    journal = await Journal.open(number, opened, rows, note, true);
  } catch (error) {
    if (!CompactionError.isInstance(error) || error.code !== "store_corrupt") throw error;
  } finally {
    if (!journal) await opened.handle.close();
  }
  return journal;
}

function storeOf(journal: Journal | undefined, rows: Rows, caps: Store["caps"], lost: string): Store {
  const values: Journal["values"] = async (found) => {
    const reading = journal?.using(() => journal.values(found)) ?? [];
    return Promise.resolve(reading).catch((error: unknown) => Promise.reject(fileError(error)));
  };
  return {
    caps: { ...caps, durable: "none" },
    read: (keys) => (journal ? values(keys.map((key) => rows.find(key))) : keys.map(() => undefined)),
    async scan(prefix, options) {
      const found = rows.scan(prefix, options);
      const read = options.keysOnly ? found.map(() => new Uint8Array()) : await values(found);
      return found.map(({ key }, i) => [[...key], read[i]!]);
    },
    commit() {
      throw new CompactionError("store_unavailable", "This is read only: import the archives into another store");
    },
    dataLoss: () => lost || undefined,
  };
}
