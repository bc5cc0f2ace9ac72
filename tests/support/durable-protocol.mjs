/**
 * What the store of Durable Objects promises beyond the suite of every store: what faults must not do.
 * Runs inside workerd. A check is a list of steps, each a request to one object, that get
 *
 *     { ctx, bucket, make(changes, options), atomically }
 *
 * where `make` opens the store under test, with methods of the bucket (`put` …) or of the storage (`sync`, `exec`)
 * replaced: each gets the real one and its arguments. A step that ends the object says so with `crash`.
 */

import { check, codeIs, same } from "../../js/store/probe.ts";
import { all, anHourLater, BIG, bytes, commit, contents, crash, key, MIB, names, outcome, put } from "./durable-steps.mjs";

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
        await anHourLater(ctx, make);
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

  "D21: what was not confirmed is not read before it is": [
    async ({ make }) => {
      let broken = true;
      const store = make({ sync: (real) => (broken ? Promise.reject(new Error("internal error")) : real()) });
      codeIs("indeterminate", await outcome(put(store, 1, 10)));
      codeIs("indeterminate", await outcome(store.read([key(1)])));
      codeIs("indeterminate", await outcome(all(store)));
      broken = false;
      same((await store.read([key(1)]))[0]?.length, 10, "length");
      same((await contents(store)).length, 1, "rows");
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
