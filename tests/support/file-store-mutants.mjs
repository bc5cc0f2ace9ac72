/** File stores with a protocol that is wrong in one way each, by the name of the check that finds it. */

const KILLED = "killed at any moment";
const POWER = "the power is cut at any moment";
const PAGES = "D12, D21: the power is cut at any moment, and any of the unsynced pages are left";
const STOPPED_WRITING = "stopped before it writes, it conflicts with what came first";
const STOPPED_PUBLISHING = "stopped before it publishes, others publish and go on";
const STOPPED_OPENING = "stopped while it opens a journal whose name somebody takes who is late";
const SEALED = "sealed between reading and writing";
const FLIPPED = "D2, D15: a bit is flipped, anywhere in the files of five sessions";
const FLIPPED_LINE = "D15: a bit of the first line or of the note is flipped";
const UNNOTED = "D1a: a page of zeros in a record that nobody was told of, then others";
const MISSING = "D15: records that were acknowledged cannot be read";
const DAMAGED = "D5: a damaged value does not stop the journal from being written anew";
const OTHERS = "D15: what another process counts is not void";
const MADE = "D21: its directory is on the disk before anything is acknowledged in it, whoever made it";
const MAYBE = "D21: what may have been written is not read before it is on the disk";
const SHORT = "a write ends early";
const VOID = "D15: an end of a journal that is void stays so, whatever is noted later";
const BEGUN = "D15: a bit of what a journal begins with, before anybody has noted how far it is";
const UNVOUCHED = "D15: what is damaged between the write of one process and its note is not void for another";
const FILLED = "D15: what a full disk leaves of several records is none of them";
const UNNAMED = "D15: a journal that may lose its name is not said to have been there";
const NEWER = "D15: a schema that flipped bits made a newer one";

export const mutants = {
  "acknowledges before the journal is synced": {
    caughtBy: POWER,
    changes: [{ file: "store.ts", from: "await attempt.durable;", to: "attempt.durable.catch(() => {});" }],
  },
  "never syncs the journal": {
    caughtBy: POWER,
    changes: [{ file: "journal.ts", from: "await this.#handle.datasync();", to: "" }],
  },
  "publishes a journal that is not synced": {
    caughtBy: POWER,
    changes: [{ file: "rewrite.ts", from: "await handle.sync();", to: "" }],
  },
  "never syncs the directory": {
    caughtBy: POWER,
    changes: [{ file: "directory.ts", from: "return syncDirectory(this.#base);", to: "return Promise.resolve();" }],
  },
  "empties the old journal before the name of the new one is on the disk": {
    caughtBy: POWER,
    changes: [
      { file: "directory.ts", from: "      await this.sync();\n", to: "" },
      { file: "store.ts", from: "        await directory.sync();\n        if (await", to: "        await directory.clean(number); await directory.sync();\n        if (await" },
    ],
  },
  "notes what is not synced as acknowledged": {
    caughtBy: POWER,
    changes: [
      {
        file: "store.ts",
        from: "    await journal.sync();\n",
        to: "    await this.#acknowledged?.write({ id, end, seq });\n    await journal.sync();\n",
      },
    ],
  },
  "has no expectations": {
    caughtBy: STOPPED_WRITING,
    changes: [
      {
        file: "stage.ts",
        from: "const failed = expect.find(({ key, version }) => versionOf(key) !== version);",
        to: "const failed = expect.find(() => false);",
      },
    ],
  },
  "writes what it checked before others wrote": {
    caughtBy: STOPPED_WRITING,
    changes: [{ file: "journal.ts", from: "if (known || record.at !== at) {", to: "if (known) {" }],
  },
  "acknowledges a record that is void": {
    caughtBy: STOPPED_WRITING,
    changes: [{ file: "store.ts", from: "sums.has(records[i]!.sum)).map", to: "true).map" }],
  },
  "writes where it was, not at the end": {
    caughtBy: STOPPED_WRITING,
    changes: [{ file: "directory.ts", from: "nameOf(number), constants.O_APPEND)", to: "nameOf(number), 0)" }],
  },
  "reads nothing of what others append": {
    caughtBy: STOPPED_WRITING,
    changes: [{ file: "store.ts", from: "if (this.#journal) await this.#journal.advance(", to: "if (this.#journal) await (async (..._: unknown[]) => {})(" }],
  },
  "goes on behind a seal": {
    caughtBy: SEALED,
    changes: [{ file: "journal.ts", from: "this.#sealed && after >= this.#end", to: "false" },
      { file: "store.ts", from: "while (this.#journal!.sealed && (await this.#follow(HELP_MS)));", to: "" }],
  },
  "seals what it has not read": {
    caughtBy: "others append while the journal is written anew",
    changes: [{ file: "store.ts", from: "if (journal.seq !== seq || !(await this.#seal(journal))) return false;", to: "await this.#seal(journal);" }],
  },
  "publishes in place of another's journal": {
    caughtBy: STOPPED_PUBLISHING,
    changes: [{ file: "directory.ts", from: "await link(this.#path(name), this.#path(nameOf(number)));", to: "await rename(this.#path(name), this.#path(nameOf(number)));" },
    ],
  },
  "never helps who died after sealing": {
    caughtBy: KILLED,
    changes: [{ file: "store.ts", from: "if (waited >= wait) await", to: "if (waited > wait) throw corrupt(`nobody goes on`); else if (false) await" }],
  },
  "does not look again after opening": {
    caughtBy: STOPPED_OPENING,
    changes: [{ file: "store.ts", from: "if (journals.at(-1) !== number) return false;", to: "" }],
  },
  "takes a torn record for a whole one": {
    caughtBy: KILLED,
    changes: [
      { file: "reader.ts", from: "if (end > this.#size) return undefined;", to: "" },
      { file: "reader.ts", from: "if (isTorn) return undefined;", to: "" },
    ],
  },
  "stops at a torn record": {
    caughtBy: KILLED,
    changes: [{ file: "reader.ts", from: "?? this.#recordPast(at, this.#size);", to: "?? undefined;" }],
  },
  "trusts what was not synced before a power cut": {
    caughtBy: POWER,
    changes: [{ file: "reader.ts", from: "isVouched || live || (await", to: "true || (await" }],
  },
  "does not check values": {
    caughtBy: FLIPPED,
    changes: [
      { file: "journal.ts", from: "crc32(value) === row.crc ? value", to: "crc32(value) >= 0 ? value" },
    ],
  },
  "fails every read that a damaged value is part of": {
    caughtBy: FLIPPED,
    changes: [
      { file: "journal.ts", from: ": damaged(row, `is not what was written", to: ": (() => { throw corrupt(`a value`); })() ?? damaged(row, `is not what was written" },
    ],
  },
  "mends no record": {
    caughtBy: FLIPPED,
    changes: [
      { file: "reader.ts", from: "(await mendHead(this.#id, read))", to: "undefined" },
    ],
  },
  "takes a record with a damaged end for a torn one": {
    caughtBy: FLIPPED,
    changes: [
      { file: "reader.ts", from: "if (isTorn) return undefined;", to: "return undefined;" },
    ],
  },
  "does not check the first line": {
    caughtBy: FLIPPED_LINE,
    changes: [
      { file: "journal.ts", from: "found?.sound ? found : mendTitle(start, notes.map(({ id }) => id))", to: "found ?? mendTitle(start, [])" },
    ],
  },
  "does not mend the first line": {
    caughtBy: FLIPPED_LINE,
    changes: [
      { file: "journal.ts", from: "found?.sound ? found : mendTitle(start, notes.map(({ id }) => id))", to: "found?.sound ? found : undefined" },
    ],
  },
  "believes a note that is damaged": {
    caughtBy: FLIPPED_LINE,
    changes: [
      { file: "acknowledged.ts", from: "if (!match || textOf(match[1]!, Number(match[2]), Number(match[3])) !== text) return", to: "if (!match) return" },
    ],
  },
  "counts what follows a void record": {
    caughtBy: "D1b: two appends in one write, of which the first has a page of zeros",
    changes: [
      { file: "journal.ts", from: "after > this.#end && !isVouched", to: "after > Infinity && !isVouched" },
    ],
  },
  "does not say what a record follows": {
    caughtBy: UNNOTED,
    changes: [
      { file: "journal.ts", from: "encode(this.id, { at, after, seq", to: "encode(this.id, { at, seq" },
    ],
  },
  "forgets what was void": {
    caughtBy: UNNOTED,
    changes: [{ file: "journal.ts", from: "if (after < this.#end) {", to: "if (after < 0) {" }],
  },
  "notes what is void as acknowledged": {
    caughtBy: UNNOTED,
    changes: [
      { file: "journal.ts", from: "get end(): number {\n    return this.#end;", to: "get end(): number {\n    return this.#next;" },
    ],
  },
  "notes what is void as acknowledged, page by page": {
    caughtBy: PAGES,
    changes: [
      { file: "journal.ts", from: "get end(): number {\n    return this.#end;", to: "get end(): number {\n    return this.#next;" },
    ],
  },
  "takes what follows a gap for void": {
    caughtBy: MISSING,
    changes: [{ file: "journal.ts", from: "after > this.#end && !isVouched", to: "after > this.#end" }],
  },
  "tells of no gap": {
    caughtBy: MISSING,
    changes: [{ file: "journal.ts", from: "this.#lost.push(", to: "[].concat(" }],
  },
  "takes what is missing at the end for torn": {
    caughtBy: MISSING,
    changes: [
      { file: "journal.ts", from: "if (note && this.#end < note.end)", to: "if (note && this.#end < 0)" },
    ],
  },
  "takes a session's row in front of a gap for the newest": {
    caughtBy: MISSING,
    changes: [{ file: "journal.ts", from: "    rows.doubt(records);\n", to: "" }],
  },
  "gives a version twice": {
    caughtBy: MISSING,
    changes: [{ file: "rows.ts", from: "version: row.version + records", to: "version: row.version" }],
  },
  "tells of a gap again and again": {
    caughtBy: MISSING,
    changes: [{ file: "store.ts", from: "nonce: randomId(16), lost: [...lost] };", to: "nonce: randomId(16), ...(lost.length > 0 && { lost: [...lost] }) };" }],
  },
  "forgets what nobody was told of when the journal is written anew": {
    caughtBy: MISSING,
    changes: [
      { file: "rewrite.ts", from: "from?.lost.length ? [...from.lost] : undefined", to: "undefined as string[] | undefined" },
    ],
  },
  "does not keep a journal that has a gap": {
    caughtBy: MISSING,
    changes: [{ file: "rewrite.ts", from: "return whole && !from?.incomplete;", to: "return whole;" }],
  },
  "finds void what others count": {
    caughtBy: OTHERS,
    changes: [{ file: "journal.ts", from: "if (sound && live) {\n        // Who", to: "if (live && false) {\n        // Who" }],
  },
  "does not vouch for what was relaxed": {
    caughtBy: "D15: a relaxed commit of a store that was closed is vouched for",
    changes: [
      { file: "store.ts", from: "journal.end > this.#synced) await", to: "journal.end > Infinity) await" },
    ],
  },
  "does not vouch for what was written anew": {
    caughtBy: "D15: what was written anew is vouched for without a note",
    changes: [{ file: "reader.ts", from: "record.base === true || end <=", to: "end <=" }],
  },
  "notes over what others noted": {
    caughtBy: "D15: who comes late with a note leaves the newer one of another",
    changes: [{ file: "acknowledged.ts", from: "(seq % SLOTS) * BYTES", to: "0" }],
  },
  "takes for torn what another process acknowledged": {
    caughtBy: "D15: what another process acknowledged and is damaged since is missed by who had the store open",
    changes: [{ file: "journal.ts", from: "if (!ours || ours.seq <= this.#seq || ours.end > this.#seen) return;", to: "if (ours || !ours) return;" }],
  },
  "knows the journal by its first line alone": {
    caughtBy: "D15: the first line is gone",
    changes: [{ file: "journal.ts", from: "undefined) ?? (await idOf(notes, handle, size))", to: "undefined)" }],
  },
  "does not keep a damaged journal": {
    caughtBy: DAMAGED,
    changes: [{ file: "store.ts", from: "if (from && !isWhole) await", to: "if (false) await" }],
  },
  "keeps a journal for damage that was there before": {
    caughtBy: DAMAGED,
    changes: [{ file: "rewrite.ts", from: "whole &&= kept !== undefined;", to: "whole = false;" }],
  },
  "makes a damaged row sound when the journal is written anew": {
    caughtBy: DAMAGED,
    changes: [
      { file: "rewrite.ts", from: "puts.push([key, version, 0, 0, kept ?? from!.number]);", to: "puts.push([key, version, 0, 0]);" },
    ],
  },
  "drops a damaged row when the journal is written anew": {
    caughtBy: DAMAGED,
    changes: [{ file: "rewrite.ts", from: "puts.push([key, version, 0, 0, kept ?? from!.number]);", to: "" }],
  },
  "is durable where nothing can be written": {
    caughtBy: "D8: what cannot be written is not said to be durable",
    changes: [{ file: "store.ts", from: "this.#readOnly ? \"none\" : written", to: "written" }],
  },
  "drops the newest row when it writes over 50 anew": {
    caughtBy: "D22: a journal that is written anew has every row",
    changes: [
      { file: "rewrite.ts", from: "for (const row of rows) {", to: "for (const row of rows.length > 50 ? rows.slice(0, -1) : rows) {" },
    ],
  },
  "lets a relaxed commit take the sync from a strict one": {
    caughtBy: "D22: a strict commit is synced whatever is written with it",
    changes: [
      { file: "store.ts", from: "[...written].some(({ batch }) => batch.durability === \"strict\")", to: "[...written].every(({ batch }) => batch.durability === \"strict\")" },
    ],
  },
  "does not sync what a killed process left": {
    caughtBy: "D22: what is read after a kill stays, without power too",
    changes: [{ file: "store.ts", from: "await opened.handle.datasync();", to: "" }],
  },
  "acknowledges what is appended to a file that was removed": {
    caughtBy: "D22: what is appended to a file that was removed is not acknowledged",
    changes: [{ file: "journal.ts", from: "size === expected && nlink > 0) {", to: "size === expected) {" }],
  },
  "takes a part of a write for all of it": {
    caughtBy: SHORT,
    changes: [{ file: "journal.ts", from: "if (failure === undefined && size === expected && nlink > 0) {", to: "if (failure === undefined && nlink > 0) {" }],
  },
  "goes on with a file that the disk did not take": {
    caughtBy: "the disk fails once",
    changes: [{ file: "store.ts", from: "if (!this.#journal?.suspect) return;", to: "return;" }],
  },
  "reads what the disk did not take": {
    caughtBy: "D21: what a failed sync left is not read before it is on the disk",
    changes: [{ file: "store.ts", from: "keysOnly = false) {\n    await this.#heal();", to: "keysOnly = false) {" }],
  },
  "reads what may not be on the disk": {
    caughtBy: MAYBE,
    changes: [{ file: "journal.ts", from: "this.unsure = true;", to: "" }],
  },
  "relies on it though the disk does not take it": {
    caughtBy: MAYBE,
    changes: [{ file: "store.ts", from: "if (!this.#journal?.suspect) return;", to: "return;" }],
  },
  "takes a directory that is there for one that is on the disk": {
    caughtBy: MADE,
    changes: [{ file: "directory.ts", from: "await syncDirectory(above).catch(", to: "if (missing) await syncDirectory(above).catch(" }],
  },
  "makes a directory in one that may not be on the disk": {
    caughtBy: MADE,
    changes: [{ file: "directory.ts", from: "    await make(above);\n    await mkdir(path, { mode: 0o700 })", to: "    await mkdir(path, { mode: 0o700, recursive: true })" }],
  },
  "closes with what the disk did not take": {
    caughtBy: "D21: what a failed sync left is not read before it is on the disk",
    changes: [{ file: "store.ts", from: "await this.#heal().catch(() => {});", to: "" }],
  },
  "reports what may be written as not written": {
    caughtBy: "the disk fails once",
    changes: [{ file: "faults.ts", from: 'new CompactionError("indeterminate", message', to: 'new CompactionError("store_unavailable", message' }],
  },
  "refuses what conflicts with a commit that is not written yet": {
    caughtBy: "a commit does not conflict with one that was refused",
    changes: [{ file: "stage.ts", from: "if ((failed || !writes) && depends) later.push(entry);\n    else if (failed)", to: "if (failed)" }],
  },
  "stops at an end that is void": {
    caughtBy: VOID,
    changes: [{ file: "journal.ts", from: "while (size > this.#seen && this.#next < size) {", to: "while (size > this.#seen && this.#next < size && !this.#sealed) {" }],
  },
  "mends no record that nobody vouched for": {
    caughtBy: BEGUN,
    changes: [{ file: "reader.ts", from: "?? (await mendHead", to: "?? (at < this.#vouched && await mendHead" }],
  },
  "takes what is damaged for torn while it is open": {
    caughtBy: UNVOUCHED,
    changes: [{ file: "reader.ts", from: "!live || (await this.#isBegunPast(at, end))", to: "true" }],
  },
  "asks once whether a record that it cannot read was acknowledged": {
    caughtBy: "D15: a record that cannot be read is void until another process acknowledges it",
    changes: [
      {
        file: "journal.ts",
        from: "    await this.#read(rows);\n    if (this.#next >=",
        to: "    const seen = this.#seen;\n    await this.#read(rows);\n    if (this.#seen === seen || this.#next >=",
      },
    ],
  },
  "takes what was there when it opened the journal for written since": {
    caughtBy: "D15: what a power cut tore is void for all who have the store open, whoever writes behind it",
    changes: [{ file: "reader.ts", from: "const live = end > this.#opened", to: "const live = this.#opened < Infinity" }],
  },
  "takes a torn record that others filled up for a damaged one": {
    caughtBy: FILLED,
    changes: [{ file: "reader.ts", from: "!live || (await this.#isBegunPast(at, end))", to: "!live" }],
  },
  "notes a journal before its name is on the disk": {
    caughtBy: UNNAMED,
    changes: [{ file: "store.ts", from: "        await directory.sync();\n        if (await", to: "        if (await" }],
  },
  "believes a schema without its sum": {
    caughtBy: NEWER,
    changes: [{ file: "mend.ts", from: "< NEAR) return", to: "< 0) return" }],
  },
};
