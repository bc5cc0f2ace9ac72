/** Stores that are wrong in one way each, by the store whose seeds find it. `kind` is that of the seeds, `from` the first. */

export const mutants = {
  "file: acknowledges before the journal is synced": {
    store: "file",
    kind: "faults",
    changes: [{ file: "file/store.ts", from: "await attempt.durable;", to: "attempt.durable.catch(() => {});" }],
  },
  "file: never syncs the directory": {
    store: "file",
    kind: "faults",
    changes: [{ file: "file/directory.ts", from: "return syncDirectory(this.#base);", to: "return Promise.resolve();" }],
  },
  "file: publishes a journal that is not synced": {
    store: "file",
    kind: "cuts",
    changes: [{ file: "file/rewrite.ts", from: "await handle.sync();", to: "" }],
  },
  "file: has no expectations": {
    store: "file",
    kind: "faults",
    changes: [{ file: "file/stage.ts", from: "versionOf(key) !== version);", to: "versionOf(key) === undefined);" }],
  },
  "file: reads what the disk did not take": {
    store: "file",
    kind: "faults",
    from: 100,
    changes: [{ file: "file/store.ts", from: "if (!this.#journal?.suspect) return;", to: "return;" }],
  },
  "file: D1a, forgets what was void": {
    store: "file",
    kind: "cuts",
    from: 100,
    changes: [{ file: "file/journal.ts", from: "if (after < this.#end) {", to: "if (after < 0) {" }],
  },
  "file: D1b, counts what follows a void record": {
    store: "file",
    kind: "cuts",
    changes: [{ file: "file/journal.ts", from: "after > this.#end && !isVouched", to: "after > Infinity && !isVouched" }],
  },
  "file: D2, a damaged value fails every read": {
    store: "file",
    kind: "damage",
    changes: [
      { file: "file/journal.ts", from: ": damaged(row, `is not what was written", to: ": (() => { throw corrupt(`a value`); })() ?? damaged(row, `is not what was written" },
    ],
  },
  "file: D5, a damaged value stops the journal from being written anew": {
    store: "file",
    kind: "all",
    from: 370,
    changes: [{ file: "file/rewrite.ts", from: "puts.push([key, version, 0, 0, kept ?? from!.number]);", to: 'throw new Error("a damaged value");' }],
  },
  "file: takes a part of a write for all of it": {
    store: "file",
    kind: "faults",
    changes: [{ file: "file/journal.ts", from: "if (failure === undefined && size === expected && nlink > 0) {", to: "if (failure === undefined && nlink > 0) {" }],
  },
  "durable: acknowledges before the write is confirmed": {
    store: "durable",
    kind: "faults",
    changes: [{ file: "durable/store.ts", from: `if (owned.durability === "strict" || dropped.length > 0) await confirm();`, to: "" }],
  },
  "durable: checks nothing inside the transaction": {
    store: "durable",
    kind: "faults",
    changes: [{ file: "durable/tables.ts", from: "      this.#check(batch.expect);\n", to: "" }],
  },
  "durable: reads what is not confirmed": {
    store: "durable",
    kind: "faults",
    from: 360,
    changes: [{ file: "durable/store.ts", from: "      doubts++;\n", to: "" }],
  },
  "durable: leaves the parts of a value behind": {
    store: "durable",
    kind: "faults",
    from: 1_750,
    changes: [{ file: "durable/tables.ts", from: `if (row?.apart && row.object === null) this.#sql("DELETE`, to: `if (row?.apart === 7) this.#sql("DELETE` }],
  },
  "indexeddb: every commit is relaxed": {
    store: "indexeddb",
    kind: "faults",
    changes: [{ file: "database.ts", from: `options.durability === "relaxed" ? "relaxed" : owned.durability`, to: `"relaxed"` }],
  },
  "indexeddb: has no expectations": {
    store: "indexeddb",
    kind: "faults",
    changes: [{ file: "database.ts", from: "if (found !== version) throw", to: "if (found === undefined) throw" }],
  },
  "indexeddb: takes an abort for the end": {
    store: "indexeddb",
    kind: "faults",
    changes: [{ file: "transaction.ts", from: "tx.onabort = fail;", to: "tx.onabort = () => (end(), resolve(result));" }],
  },
  "indexeddb: takes anything for bytes": {
    store: "indexeddb",
    kind: "damage",
    from: 200,
    changes: [{ file: "database.ts", from: "bytes instanceof Uint8Array ? bytes : DAMAGED", to: "bytes ?? DAMAGED" }],
  },
  "encrypted: a damaged row fails every read": {
    store: "indexeddb, encrypted",
    kind: "damage",
    changes: [{ file: "encrypted.ts", from: `error.code === "store_corrupt") return { damaged`, to: `error.code === "closed") return { damaged` }],
  },
  "encrypted: the copy of a key is not read": {
    store: "durable, encrypted",
    kind: "damage",
    changes: [{ file: "keyring.ts", from: "if (isDamaged(value)) continue;", to: "if (isDamaged(value) || row.at(-1) === COPY) continue;" }],
  },
};
