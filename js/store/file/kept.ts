/** The journals that were kept because they were damaged, and when they are of use no more. */

import type { Key } from "../../types.js";
import type { Directory } from "./files.js";
import { journalIn } from "./remains.js";
import { Rows } from "./rows.js";

/**
 * Removes the files that were kept of journals before `number` and that no row of `rows`, which are those of journal
 * `number`, needs: none was damaged in it, and of the sessions that it has, where records of it cannot be read, none is left. True when some stay.
 */
export async function removeKept(directory: Directory, number: number, rows: Rows): Promise<boolean> {
  const { kept } = await directory.look();
  let stays = false;
  const all = rows.all();
  const needed = new Set(all.map((row) => row.kept));
  const live = new Set(all.flatMap(({ key }) => sessionOf(key)));
  for (const old of kept) {
    if (old < number && !needed.has(old) && !(await isOfUse(directory, old, live))) await directory.removeKept(old);
    else stays = true;
  }
  return stays;
}

async function isOfUse(directory: Directory, number: number, live: Set<string | number>): Promise<boolean> {
  const rows = new Rows();
  const journal = await journalIn(number, await directory.kept(number), rows);
  // Nobody knows whose rows it has.
  if (!journal) return true;
  await journal.retire();
  return journal.incomplete && rows.all().some(({ key }) => sessionOf(key).some((sid) => live.has(sid)));
}

function sessionOf([table, sid]: Key): (string | number)[] {
  return table === "meta" ? [] : [sid!];
}
