/**
 * What the store of Durable Objects promises beyond the suite of every store: faults of `storage.md` rows 16 and 17.
 * Runs inside workerd. A check is a list of steps, each a request to one object, that get
 *
 *     { ctx, bucket, make(changes), atomically, CompactionError }
 *
 * where `make` opens the store under test, with methods of the bucket (`put` …) or of the storage (`sync`, `exec`)
 * replaced: each gets the real one and its arguments. A step that ends the object says so with `crash`.
 */

import { check, codeIs, same } from "../../js/store/probe.ts";

const MIB = 1024 * 1024;
/** Over the bound for objects, and one piece of SQLite. */
const BIG = 300 * 1024;

export const key = (n) => ["blobs", "s", "b", n];
const none = { expect: [], puts: [], deletes: [], durability: "strict" };

function bytes(size, seed = 1) {
  const made = new Uint8Array(size);
  for (let i = 0; i < size; i++) made[i] = i * 31 + seed * 7 + (i >> 8);
  return made;
}

const commit = (store, batch) => store.commit({ ...none, ...batch });
const put = (store, n, size, seed) => commit(store, { puts: [[key(n), bytes(size, seed)]] });
const outcome = (promise) => promise.then(() => undefined, (error) => error);
const all = (store) => store.scan(["blobs"], { limit: 10_000, maxBytes: 64 * MIB });

/** Sizes and digests of all values by key. */
async function contents(store) {
  const digest = async (value) => String(new Uint8Array(await crypto.subtle.digest("SHA-256", value)));
  return Promise.all((await all(store)).map(async ([key, value]) => [key, value.length, await digest(value)]));
}

async function names(bucket) {
  return (await bucket.list()).objects.map(({ key }) => key);
}

const ledger = (ctx) => ctx.storage.sql.exec("SELECT name, state FROM context_compactor_objects").toArray();
const makeOld = (ctx) => ctx.storage.sql.exec("UPDATE context_compactor_objects SET since = 0");
const busy = () => Promise.reject(new Error("put: Reduce your rate of requests for the same object. (10058)"));
const lost = () => Promise.reject(new Error("Network connection lost."));

/** Ends the object with everything that is not on disk. */
function crash(ctx) {
  ctx.abort("a crash");
  return new Promise(() => {});
}

export const checks = {
  "what was acknowledged survives the end of the object": [
    async ({ ctx, make }) => {
      await commit(make(), { puts: [[key(1), bytes(100)], [key(2), bytes(3 * MIB)], [key(3), bytes(BIG)]] });
      await crash(ctx);
    },
    async ({ make }) => {
      const values = await make().read([key(1), key(2), key(3)]);
      same(values.map((value) => value?.length), [100, 3 * MIB, BIG], "lengths");
    },
  ],

  "a batch that fails anywhere writes nothing": [
    async ({ ctx, bucket, make }) => {
      for (const options of [{ bigObjects: undefined }, {}]) {
        await ctx.storage.deleteAll();
        const clean = make({}, options);
        const sizes = [10, MIB + 1, BIG, 20];
        await commit(clean, { puts: sizes.map((size, n) => [key(n), bytes(size)]) });
        const before = await contents(clean);
        const batch = {
          expect: [{ key: key(0), version: 1 }],
          puts: [[key(0), bytes(MIB + 2, 2)], [key(1), bytes(5, 2)], [key(4), bytes(BIG, 2)], [key(5), bytes(9, 2)]],
          deletes: [key(2), key(3)],
        };
        let nth = 0;
        for (let left = Infinity; ; nth++) {
          const exec = (real, ...args) => {
            if (left-- === 0) throw new Error("disk I/O error: SQLITE_IOERR");
            return real(...args);
          };
          const store = make({ exec }, options);
          await store.read([key(0)]);
          left = nth;
          const error = await outcome(commit(store, batch));
          left = Infinity;
          if (!error) break;
          codeIs("store_unavailable", error);
          same(await contents(clean), before, `contents after a failure of statement ${nth}`);
        }
        check(nth > 15, `only ${nth} statements`);
        same((await contents(clean)).map(([, size]) => size), [MIB + 2, 5, BIG, 9], "sizes at last");
        makeOld(ctx);
        const store = make();
        await store.read([key(5)]);
        await store.close();
        same((await names(bucket)).length, "bigObjects" in options ? 0 : 2, "objects");
      }
    },
  ],

  "what cannot be confirmed is indeterminate": [
    async ({ make }) => {
      const error = await outcome(put(make({ sync: () => Promise.reject(new Error("internal error")) }), 1, 10));
      codeIs("indeterminate", error);
      same((await make().read([key(1)]))[0]?.length, 10, "length");
    },
  ],

  "a reference is never there without its object": [
    async ({ ctx, make }) => {
      const store = make({
        async put() {
          await ctx.storage.sync();
          return crash(ctx);
        },
      });
      await commit(store, { puts: [[key(1), bytes(BIG)], [key(2), bytes(10)]] });
    },
    async ({ make }) => same(await contents(make()), [], "contents"),
  ],

  "an object is there until no row names it": [
    async ({ make }) => commit(make(), { puts: [[key(1), bytes(BIG)], [key(2), bytes(BIG)]] }),
    async ({ ctx, make }) => {
      const store = make({
        async delete(real, names) {
          await real(names);
          return crash(ctx);
        },
      });
      await commit(store, { puts: [[key(2), bytes(10)]], deletes: [key(1)] });
      await store.close();
    },
    async ({ bucket, make }) => {
      const store = make();
      const values = await store.read([key(1), key(2)]);
      const lengths = values.map((value) => value?.length);
      check(["[null,10]", `[${BIG},${BIG}]`].includes(JSON.stringify(lengths)), `lengths are ${lengths}`);
      await store.close();
      same((await names(bucket)).length, lengths.filter((length) => length === BIG).length, "objects in the bucket");
    },
  ],

  "what a crash leaves in the bucket is deleted later": [
    async ({ ctx, make }) => {
      const store = make({
        async put(real, ...args) {
          await real(...args);
          return crash(ctx);
        },
      });
      await put(store, 1, BIG);
    },
    async ({ ctx, bucket, make }) => {
      same((await names(bucket)).length, 1, "objects in the bucket after the crash");
      const young = make();
      same(await contents(young), [], "contents");
      await young.close();
      same((await names(bucket)).length, 1, "objects in the bucket before their time");
      makeOld(ctx);
      const store = make();
      await store.read([key(1)]);
      await store.close();
      same(await names(bucket), [], "objects in the bucket");
      same(ledger(ctx), [], "the table of objects");
    },
  ],

  "what is being uploaded is left alone": [
    async ({ make }) => {
      const store = make({
        async put(real, ...args) {
          const stored = await real(...args);
          const other = make();
          await put(other, 7, 10);
          await other.close();
          return stored;
        },
      });
      await put(store, 1, BIG);
      same((await make().read([key(1)]))[0]?.length, BIG, "length");
    },
  ],

  "an object that was given up is not referred to": [
    async ({ ctx, bucket, make }) => {
      const store = make({
        async put(real, ...args) {
          const stored = await real(...args);
          makeOld(ctx);
          const other = make();
          await other.read([key(1)]);
          await other.close();
          return stored;
        },
      });
      codeIs("store_unavailable", await outcome(put(store, 1, BIG)));
      await store.close();
      same(await contents(make()), [], "contents");
      same(await names(bucket), [], "objects in the bucket");
    },
  ],

  "expectations hold when the transaction runs, not when the upload began": [
    async ({ bucket, make }) => {
      await put(make(), 0, 1);
      const store = make({
        async put(real, ...args) {
          await commit(make(), { expect: [{ key: key(0), version: 1 }], puts: [[key(0), bytes(2)]] });
          return real(...args);
        },
      });
      const batch = { expect: [{ key: key(0), version: 1 }], puts: [[key(0), bytes(3)], [key(1), bytes(BIG)]] };
      codeIs("conflict", await outcome(commit(store, batch)));
      await store.close();
      same((await contents(make())).map(([, size]) => size), [2], "sizes");
      same(await names(bucket), [], "objects in the bucket");
    },
    async ({ bucket, make }) => {
      let uploads = 0;
      const store = make({ put: (real, ...args) => (uploads++, real(...args)) });
      const batch = { expect: [{ key: key(0), version: 1 }], puts: [[key(1), bytes(BIG)]] };
      codeIs("conflict", await outcome(commit(store, batch)));
      same([uploads, await names(bucket)], [0, []], "uploads in vain");
    },
  ],

  "a value that is replaced while it is read is the old one or the new one": [
    async ({ make }) => {
      await commit(make(), { puts: [[key(1), bytes(BIG)], [key(2), bytes(10)]] });
      let replaced = false;
      const store = make({
        async get(real, name) {
          if (!replaced) {
            replaced = true;
            const other = make();
            await commit(other, { puts: [[key(1), bytes(BIG + 1, 2)], [key(2), bytes(11)]] });
            await other.close();
          }
          return real(name);
        },
      });
      const lengths = (await store.read([key(1), key(2)])).map((value) => value?.length);
      same(lengths, [BIG + 1, 11], "lengths, both of one moment");
      replaced = false;
      same((await all(store)).map(([, value]) => value.length), [BIG + 1, 11], "lengths of a scan");
    },
  ],

  "an object that is gone is reported, not taken for nothing": [
    async ({ bucket, make }) => {
      await put(make(), 1, BIG);
      const [name] = await names(bucket);
      await bucket.put(name, bytes(BIG - 1));
      codeIs("store_corrupt", await outcome(make().read([key(1)])));
      await bucket.delete(name);
      codeIs("store_corrupt", await outcome(make().read([key(1)])));
      codeIs("store_corrupt", await outcome(all(make())));
      same((await make().scan(["blobs"], { limit: 9, maxBytes: 9, keysOnly: true })).length, 1, "keys");
    },
  ],

  "objects go with the values that they held": [
    async ({ ctx, bucket, make }) => {
      const store = make();
      await commit(store, { puts: [1, 2, 3].map((n) => [key(n), bytes(BIG)]) });
      same((await names(bucket)).length, 3, "objects");
      check((await names(bucket)).every((name) => name.startsWith(`context-compactor/${ctx.id}/`)), "names");
      await commit(store, { puts: [[key(1), bytes(BIG, 2)], [key(2), bytes(5)]], deletes: [key(3)] });
      await store.close();
      same((await names(bucket)).length, 1, "objects after a commit");
      const next = make();
      same((await next.read([key(1)]))[0]?.[0], bytes(BIG, 2)[0], "first byte");
      await commit(next, { deletes: [key(1)] });
      await next.close();
      same([await names(bucket), ledger(ctx)], [[], []], "objects at last");
    },
  ],

  "a busy bucket is asked again, and a bucket that stays busy fails the batch": [
    async ({ ctx, bucket, make }) => {
      const counts = { put: 0, get: 0 };
      const twice = (method) => (real, ...args) => (++counts[method] <= 2 ? busy() : real(...args));
      const store = make({ put: twice("put"), get: twice("get") });
      await put(store, 1, BIG);
      same((await store.read([key(1)]))[0]?.length, BIG, "length");
      const batch = { puts: [[key(1), bytes(BIG, 2)], [key(2), bytes(1)]] };
      const refused = make({ put: busy });
      codeIs("store_unavailable", await outcome(commit(refused, batch)));
      codeIs("store_unavailable", await outcome(make({ get: busy }).read([key(1)])));
      await refused.close();
      same((await contents(make())).map(([, size]) => size), [BIG], "sizes");
      same([(await names(bucket)).length, ledger(ctx)], [1, []], "objects");
    },
    async ({ ctx, bucket, make }) => {
      // Nobody waits for a deletion: what the bucket refuses today goes another time.
      const store = make({ delete: busy });
      await commit(store, { deletes: [key(1)] });
      await store.close();
      same([(await names(bucket)).length, ledger(ctx).map(({ state }) => state)], [1, ["dropped"]], "objects");
      const next = make();
      await next.read([key(1)]);
      await next.close();
      same([await names(bucket), ledger(ctx)], [[], []], "objects at last");
    },
  ],

  "a put whose answer was lost is not written twice": [
    async ({ bucket, make }) => {
      let puts = 0;
      const store = make({
        async put(real, ...args) {
          const stored = await real(...args);
          return ++puts === 1 ? lost() : stored;
        },
      });
      await put(store, 1, BIG);
      same([puts, (await names(bucket)).length], [2, 1], "puts and objects");
      same((await make().read([key(1)]))[0]?.length, BIG, "length");
      const never = make({
        async put(real, ...args) {
          await real(...args);
          return lost();
        },
        head: lost,
      });
      codeIs("store_unavailable", await outcome(put(never, 2, BIG)));
      await never.close();
      same([(await names(bucket)).length, (await contents(make())).length], [1, 1], "objects and rows");
    },
  ],

  "a name that is refused though nobody has it fails the batch": [
    async ({ make }) => {
      codeIs("store_unavailable", await outcome(put(make({ put: async () => null }), 1, BIG)));
      same(await contents(make()), [], "contents");
    },
  ],

  "a value that the bucket does not take is too large, at once": [
    async ({ make }) => {
      let puts = 0;
      const refuse = async () => {
        puts++;
        throw new Error("put: Your proposed upload exceeds the maximum allowed object size. (100100)");
      };
      codeIs("too_large", await outcome(put(make({ put: refuse }), 1, BIG)));
      same([puts, await contents(make())], [1, []], "puts and contents");
    },
  ],

  "without its bucket a value says so, and can still be dropped": [
    async ({ bucket, make }) => {
      await put(make(), 1, BIG);
      const without = make({}, { bigObjects: undefined });
      const error = await outcome(without.read([key(1)]));
      codeIs("store_unavailable", error);
      check(error.message.includes("bigObjects"), error.message);
      await commit(without, { deletes: [key(1)] });
      await put(without, 2, BIG);
      const store = make();
      same((await contents(store)).map(([, size]) => size), [BIG], "sizes");
      await store.close();
      same(await names(bucket), [], "objects in the bucket");
    },
  ],

  "what SQLite throws has a code": [
    async ({ make }) => {
      const codes = {
        "database or disk is full: SQLITE_FULL": "quota_exceeded",
        "Exceeded allowed rows written in Durable Objects free tier.": "quota_exceeded",
        "string or blob too big: SQLITE_TOOBIG": "too_large",
        "database disk image is malformed: SQLITE_CORRUPT": "store_corrupt",
        "file is not a database: SQLITE_NOTADB": "store_corrupt",
        "disk I/O error: SQLITE_IOERR_WRITE": "store_unavailable",
        "out of memory: SQLITE_NOMEM": "store_unavailable",
        "Durable Object reset because its code was updated.": "store_unavailable",
      };
      for (const [message, code] of Object.entries(codes)) {
        const error = new Error(message);
        const store = make({
          exec(real, query, ...args) {
            if (query.startsWith("INSERT INTO context_compactor_rows")) throw error;
            return real(query, ...args);
          },
        });
        const thrown = await outcome(put(store, 1, 10));
        codeIs(code, thrown);
        check(thrown.cause === error, `the cause of ${message}`);
      }
      same(await contents(make()), [], "contents");
    },
  ],

  "tables of a later schema are refused, those of the same hundred are not": [
    async ({ ctx, make }) => {
      await put(make(), 1, 10);
      const set = (value) => ctx.storage.sql.exec("UPDATE context_compactor_meta SET value = ? WHERE name = 'schema'", value);
      set(199);
      await put(make(), 2, 10);
      for (const [value, code] of [[200, "schema_too_new"], [301, "schema_too_new"], ["x", "store_corrupt"]]) {
        set(value);
        codeIs(code, await outcome(make().read([key(1)])));
        codeIs(code, await outcome(all(make())));
        codeIs(code, await outcome(put(make(), 3, 10)));
      }
      set(100);
      same((await contents(make())).length, 2, "rows");
    },
  ],

  "a transaction that waits is rolled back": [
    async ({ ctx, make, atomically }) => {
      await put(make(), 1, 10);
      let thrown;
      try {
        atomically(ctx.storage, async () => ctx.storage.sql.exec("DELETE FROM context_compactor_rows"));
      } catch (error) {
        thrown = error;
      }
      check(thrown instanceof TypeError, `thrown: ${thrown}`);
      same((await contents(make())).length, 1, "rows");
    },
  ],

  "close waits for what is under way, and ends the rest": [
    async ({ make }) => {
      let release;
      const held = new Promise((resolve) => (release = resolve));
      const store = make({ put: (real, ...args) => held.then(() => real(...args)) });
      const writing = put(store, 1, BIG);
      const order = [];
      const closing = store.close().then(() => order.push("closed"));
      writing.then(() => order.push("written"));
      codeIs("closed", await outcome(store.read([key(1)])));
      codeIs("closed", await outcome(all(store)));
      codeIs("closed", await outcome(put(store, 2, 1)));
      release();
      await closing;
      same(order, ["written", "closed"], "order");
      await store.close();
    },
  ],

  "values of every size come back, and leave nothing behind": [
    async ({ ctx, make }) => {
      const sizes = [0, 1, 65_536, 65_537, MIB - 1, MIB, MIB + 1, 2 * MIB, 2 * MIB + 1, 5 * MIB];
      for (const options of [{ bigObjects: undefined }, {}]) {
        const store = make({}, options);
        await commit(store, { puts: sizes.map((size, n) => [key(n), bytes(size, n)]) });
        const values = await store.read(sizes.map((_, n) => key(n)));
        const scanned = (await all(store)).map(([, value]) => value);
        for (const found of [values, scanned]) {
          for (const [n, size] of sizes.entries()) {
            const [wanted, value] = [bytes(size, n), found[n]];
            check(value?.length === size && wanted.every((byte, i) => byte === value[i]), `value of ${size} bytes differs`);
            check(value.buffer.byteLength === size, `buffer of ${size} bytes`);
          }
        }
        await commit(store, { puts: sizes.map((_, n) => [key(n), bytes(3, n)]) });
        const parts = () => ctx.storage.sql.exec("SELECT count(*) AS n FROM context_compactor_parts").toArray()[0].n;
        same([parts(), (await contents(store)).every(([, size]) => size === 3)], [0, true], "parts and values");
        await put(store, 0, 3 * MIB);
        await commit(store, { deletes: sizes.map((_, n) => key(n)) });
        same([parts(), await contents(store)], [0, []], "parts and values at last");
        await store.close();
      }
    },
  ],

  "no query brings more than 4 MiB or takes 100 parameters": [
    async ({ make }) => {
      let [most, parameters] = [0, 0];
      const store = make(
        {
          exec(real, query, ...args) {
            parameters = Math.max(parameters, args.length);
            const rows = real(query, ...args).toArray();
            const sizes = rows.flatMap((row) => Object.values(row).map((value) => value?.byteLength ?? 0));
            most = Math.max(most, sizes.reduce((sum, size) => sum + size, 0));
            return { toArray: () => rows };
          },
        },
        { bigObjects: undefined },
      );
      const puts = Array.from({ length: 200 }, (_, n) => [key(n), bytes(60_000, n)]);
      await commit(store, { puts, expect: puts.map(([key]) => ({ key, version: null })) });
      await commit(store, { puts: [300, 301, 302].map((n) => [key(n), bytes(3 * MIB, n)]) });
      for (const reverse of [false, true]) {
        const rows = await store.scan(["blobs"], { limit: 1_000, maxBytes: 64 * MIB, reverse });
        same([rows.length, rows.reduce((sum, [, value]) => sum + value.length, 0)], [203, 200 * 60_000 + 9 * MIB], "a scan");
      }
      const read = await store.read([...puts, [key(300)]].map(([key]) => key));
      same(read.filter(Boolean).length, 201, "values read");
      await commit(store, { deletes: puts.map(([key]) => key) });
      check(most > MIB && most <= 4 * MIB + 64 * 64, `a query brought ${most} bytes`);
      check(parameters < 100, `${parameters} parameters`);
    },
  ],

  "deleteAll() under an open store leaves an empty one": [
    async ({ ctx, make }) => {
      const store = make();
      await put(store, 1, 10);
      await ctx.storage.deleteAll();
      same(await contents(store), [], "contents");
      await ctx.storage.deleteAll();
      await put(store, 1, 20);
      same((await store.read([key(1)]))[0]?.length, 20, "length");
    },
  ],
};
