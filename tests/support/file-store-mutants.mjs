/** File stores with a protocol that is wrong in one way each, by the name of the check that finds it. */

const KILLED = "killed at any moment";
const POWER = "the power is cut at any moment";
const STOPPED_WRITING = "stopped before it writes, it conflicts with what came first";
const STOPPED_PUBLISHING = "stopped before it publishes, others publish and go on";
const STOPPED_OPENING = "stopped while it opens a journal whose name somebody takes who is late";
const SEALED = "sealed between reading and writing";
const FLIPPED = "a byte is flipped, anywhere";
const SHORT = "a write ends early";

export const mutants = {
  "acknowledges before the journal is synced": {
    caughtBy: POWER,
    changes: [{ file: "store.ts", from: "await attempt.durable;", to: "void attempt.durable;" }],
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
      { file: "store.ts", from: "await directory.sync();", to: "await directory.clean(number); await directory.sync();" },
    ],
  },
  "notes what is not synced as acknowledged": {
    caughtBy: POWER,
    changes: [
      {
        file: "store.ts",
        from: "    await journal.sync();\n",
        to: "    await this.#acknowledged?.write({ id, end });\n    await journal.sync();\n",
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
    changes: [
      { file: "journal.ts", from: "if (record.at !== at) return false;", to: "" },
      { file: "journal.ts", from: "if (record.seq === this.#seq + 1 && record.prev === this.#sum) return true;", to: "return true;" },
    ],
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
    changes: [{ file: "store.ts", from: "if (this.#journal) await this.#journal.advance(this.#rows);", to: "if (this.#journal) await null;" }],
  },
  "goes on behind a seal": {
    caughtBy: SEALED,
    changes: [{ file: "journal.ts", from: "this.#end < size && !this.#sealed", to: "this.#end < size" },
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
    changes: [{ file: "store.ts", from: "if ((await directory.look()).journals.at(-1) !== number) return false;", to: "" }],
  },
  "takes a torn record for a whole one": {
    caughtBy: KILLED,
    changes: [{ file: "journal.ts", from: "if (!(await window.bytes(end - TRAILER, TRAILER)).equals(trailer(sum))) return undefined;", to: "" }],
  },
  "stops at a torn record": {
    caughtBy: KILLED,
    changes: [{ file: "journal.ts", from: "(await this.#recordPast(window, this.#end, trusted));", to: "undefined;" }],
  },
  "trusts what was not synced before a power cut": {
    caughtBy: POWER,
    changes: [{ file: "journal.ts", from: "if (end > trusted && ", to: "if (end > Infinity && " }],
  },
  "skips damaged records": {
    caughtBy: FLIPPED,
    changes: [
      { file: "journal.ts", from: "if (record.at !== at) return false;", to: "if (record.at !== at || record.prev !== this.#sum) return false;" },
      { file: "store.ts", from: "if (journal.end < trusted) throw corrupt(`journal ${number} ends before what was acknowledged`);", to: "" },
    ],
  },
  "takes what is missing at the end for torn": {
    caughtBy: FLIPPED,
    changes: [{ file: "store.ts", from: "if (journal.end < trusted) throw", to: "if (journal.end < 0) throw" }],
  },
  "does not check values": {
    caughtBy: FLIPPED,
    changes: [{ file: "journal.ts", from: "if (crc32(value) !== row.crc) {", to: "if (crc32(value) === -1) {" }],
  },
  "does not check the first line": {
    caughtBy: FLIPPED,
    changes: [{ file: "journal.ts", from: "if (!sound || schema < SCHEMA) throw", to: "if (schema < SCHEMA) throw" }],
  },
  "takes a part of a write for all of it": {
    caughtBy: SHORT,
    changes: [{ file: "journal.ts", from: "if (failure === undefined && size === expected && nlink > 0) {", to: "if (failure === undefined && nlink > 0) {" }],
  },
  "goes on with a file that the disk did not take": {
    caughtBy: "the disk fails once",
    changes: [{ file: "store.ts", from: "if (this.#journal?.suspect) await this.#rewrite();", to: "" }],
  },
  "reports what may be written as not written": {
    caughtBy: "the disk fails once",
    changes: [{ file: "faults.ts", from: 'new CompactionError("indeterminate", message', to: 'new CompactionError("store_unavailable", message' }],
  },
  "refuses what conflicts with a commit that is not written yet": {
    caughtBy: "a commit does not conflict with one that was refused",
    changes: [{ file: "stage.ts", from: "if ((failed || !writes) && depends) later.push(entry);\n    else if (failed)", to: "if (failed)" }],
  },
};
