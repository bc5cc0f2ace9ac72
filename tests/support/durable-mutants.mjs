/**
 * The store of Durable Objects with one thing wrong, by the check of `durable-protocol.mjs` or `durable-bucket.mjs` that
 * finds it. A mutant is a text that stands in a file of `js/store/durable/` exactly once, and what takes its place.
 */

export const mutants = {
  "flips the reference before its object is there": {
    file: "store.ts",
    from: "const uploaded = await upload(owned);",
    to: `const early = owned.puts.flatMap(([, value], i) => (value.byteLength > BIG_BYTES ? [[i, crypto.randomUUID()]] : []));
        tables.stage(early.map(([, name]) => name));
        tables.write({ ...owned, durability: "strict" }, new Map(early));
        const uploaded = await upload({ ...owned, expect: [] });`,
    caughtBy: "a reference is never there without its object",
  },
  "acknowledges before the write is confirmed": {
    file: "store.ts",
    from: `if (owned.durability === "strict" || dropped.length > 0) await confirm();`,
    to: "",
    caughtBy: "what was acknowledged survives the end of the object",
  },
  "writes in two transactions": {
    file: "store.ts",
    from: "dropped = tables.write(owned, uploaded);",
    to: `dropped = [
            ...tables.write({ ...owned, deletes: [] }, uploaded),
            ...tables.write({ ...owned, expect: [], puts: [] }, new Map()),
          ];`,
    caughtBy: "a batch that fails anywhere writes nothing",
  },
  "checks nothing inside the transaction": {
    file: "tables.ts",
    from: "      this.#check(batch.expect);\n",
    to: "",
    caughtBy: "expectations hold when the transaction runs, not when the upload began",
  },
  "deletes an object before the transaction that drops it": {
    file: "store.ts",
    from: "dropped = tables.write(owned, uploaded);",
    to: `for (const key of owned.deletes) {
            const stored = tables.find(key);
            if (stored && "object" in stored) await options.bigObjects?.delete([stored.object]);
          }
          dropped = tables.write(owned, uploaded);`,
    caughtBy: "an object is there until no row names it",
  },
  "takes a missing object for a missing value": {
    file: "store.ts",
    from: "if (!stored || values[i]) return false;",
    to: "if (stored !== null) return false;",
    caughtBy: "D13: an object that is gone or changed damages its row, is not taken for nothing, and costs no other",
  },
  "gives up on a value that is replaced while it is read": {
    file: "store.ts",
    from: "const TRIES = 10;",
    to: "const TRIES = 1;",
    caughtBy: "a value that is replaced while it is read is the old one or the new one",
  },
  "takes the bytes of an object as they are": {
    file: "objects.ts",
    from: "if (hash === undefined || hash === (await hashOf(bytes))) return bytes;",
    to: "if (hash !== null) return bytes;",
    caughtBy: "D13: an object that is gone or changed damages its row, is not taken for nothing, and costs no other",
  },
  "takes an object of another size": {
    file: "objects.ts",
    from: "if (body.byteLength !== size)",
    to: "if (size < 0)",
    caughtBy: "D13: an object of an earlier release, without its hash, is known by its size",
  },
  "refers to an object that was given up": {
    file: "tables.ts",
    from: "if (this.#sql(query, name).length === 1) return;",
    to: "if (this.#sql(query, name).length < 2) return;",
    caughtBy: "an object that was given up is not referred to",
  },
  "deletes what is being uploaded": {
    file: "objects.ts",
    from: "const ABANDONED_MS = 60 * 60 * 1000;",
    to: "const ABANDONED_MS = -1;",
    caughtBy: "what is being uploaded is left alone",
  },
  "forgets what a crash left in the bucket": {
    file: "tables.ts",
    from: "WHERE state = 'staged' AND since < ?",
    to: "WHERE state = 'gone' AND since < ?",
    caughtBy: "what a crash leaves in the bucket is deleted later",
  },
  "deletes at once what may arrive yet": {
    file: "objects.ts",
    from: "await each(names, (name, i) => this.#put(name, values[i] as Uint8Array<ArrayBuffer>));",
    to: `await each(names, (name, i) => this.#put(name, values[i] as Uint8Array<ArrayBuffer>)).catch(async (error) => {
      this.abandon(names);
      await this.sweep(confirm);
      throw error;
    });`,
    caughtBy: "a put that arrives after its batch has failed is deleted later",
  },
  "uploads before it has noted that it will": {
    file: "objects.ts",
    from: "    this.#tables.stage(names);\n    await confirm();\n",
    to: "    queueMicrotask(() => setTimeout(() => this.#tables.stage(names), 50));\n",
    caughtBy: "what a crash leaves in the bucket is deleted later",
  },
  "leaves objects that nothing names": {
    file: "store.ts",
    from: "if (dropped.length > 0) sweep();",
    to: "",
    caughtBy: "objects go with the values that they held",
  },
  "asks a busy bucket once": {
    file: "objects.ts",
    from: "const TRIES = 4;",
    to: "const TRIES = 1;",
    caughtBy: "a busy bucket is asked again, and a bucket that stays busy fails the batch",
  },
  "takes 412 for a failure": {
    file: "objects.ts",
    from: " ?? (await this.#bucket.head(name))",
    to: "",
    caughtBy: "a put whose answer was lost is not written twice",
  },
  "takes 412 for a success": {
    file: "objects.ts",
    from: "if (object?.size !== value.byteLength)",
    to: "if (object && object.size !== value.byteLength)",
    caughtBy: "a name that is refused though nobody has it fails the batch",
  },
  "tries again what a bucket will never take": {
    file: "errors.ts",
    from: `text.includes("(100100)")`,
    to: `text.includes("(never)")`,
    caughtBy: "a value that the bucket does not take is too large, at once",
  },
  "reads what is not confirmed": {
    file: "store.ts",
    from: "      doubts++;\n",
    to: "",
    caughtBy: "D21: what was not confirmed is not read before it is",
  },
  "reports what is not confirmed as not written": {
    file: "errors.ts",
    from: `"indeterminate",`,
    to: `"store_unavailable",`,
    caughtBy: "what cannot be confirmed is indeterminate",
  },
  "has no name for a full database": {
    file: "errors.ts",
    from: `case "FULL":`,
    to: `case "NEVER":`,
    caughtBy: "what SQLite throws has a code",
  },
  "opens whatever it finds": {
    file: "tables.ts",
    from: "if (value >= SCHEMA_END) {",
    to: "if (value >= 10 * SCHEMA_END) {",
    caughtBy: "tables of a later schema are refused, those of the same hundred are not",
  },
  "lets a transaction wait": {
    file: "tables.ts",
    from: `throw new TypeError("a transaction must not wait");`,
    to: "",
    caughtBy: "a transaction that waits is rolled back",
  },
  "does not wait when it is closed": {
    file: "store.ts",
    from: "while (running.size > 0) await Promise.all(running);",
    to: "",
    caughtBy: "close waits for what is under way, and ends the rest",
  },
  "leaves the parts of a value behind": {
    file: "tables.ts",
    from: `if (row?.apart && row.object === null) this.#sql("DELETE`,
    to: `if (row?.apart === 7) this.#sql("DELETE`,
    caughtBy: "values of every size come back, and leave nothing behind",
  },
  "puts every value in one piece": {
    file: "tables.ts",
    from: "const INLINE_BYTES = 64 * 1024;",
    to: "const INLINE_BYTES = 64 * 1024 * 1024;",
    caughtBy: "values of every size come back, and leave nothing behind",
  },
  "brings a whole table in one query": {
    file: "tables.ts",
    from: "const PAGE_ROWS = 64;",
    to: "const PAGE_ROWS = 4096;",
    caughtBy: "no query brings more than 4 MiB or takes 100 parameters",
  },
  "needs the bucket to drop a value": {
    file: "store.ts",
    from: "dropped = tables.write(owned, uploaded);",
    to: `for (const key of owned.deletes) {
            const stored = tables.find(key);
            if (stored && "object" in stored && !objects) throw new CompactionError("store_unavailable", "no bucket");
          }
          dropped = tables.write(owned, uploaded);`,
    caughtBy: "without its bucket a value says so, and can still be dropped",
  },
  "stays broken after deleteAll": {
    file: "tables.ts",
    from: "this.#ready = false;",
    to: "",
    caughtBy: "deleteAll() under an open store leaves an empty one",
  },
};
