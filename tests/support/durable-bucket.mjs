/** Checks like those of `durable-protocol.mjs`, of what is in a bucket. */

import { check, codeIs, same } from "../../js/store/probe.ts";
import { all, anHourLater, BIG, busy, bytes, commit, contents, crash, key, ledger, lost, makeOld, names, outcome, put } from "./durable-steps.mjs";

export const checks = {
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
      await anHourLater(ctx, make);
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

  "D13: an object that is gone or changed damages its row, is not taken for nothing, and costs no other": [
    async ({ bucket, make }) => {
      await commit(make(), { puts: [[key(1), bytes(BIG)], [key(2), bytes(BIG, 2)], [key(3), bytes(10)]] });
      const first = bytes(BIG)[0];
      let damaged;
      for (const name of await names(bucket)) {
        const value = new Uint8Array(await (await bucket.get(name)).arrayBuffer());
        if (value[0] === first) damaged = name;
      }
      const kinds = (values) => values.map((value) => (value?.damaged ? "damaged" : value?.length));
      const found = [];
      const flipped = bytes(BIG);
      flipped[BIG >> 1] ^= 1;
      for (const change of [() => bucket.put(damaged, flipped), () => bucket.put(damaged, bytes(BIG - 1)), () => bucket.delete(damaged)]) {
        await change();
        found.push(kinds(await make().read([key(2), key(1), key(3)])));
        found.push(kinds((await all(make())).map(([, value]) => value)));
      }
      const expected = [[BIG, "damaged", 10], ["damaged", BIG, 10]];
      same(found, [...expected, ...expected, ...expected], "what is found");
      same((await make().scan(["blobs"], { limit: 9, maxBytes: 9, keysOnly: true })).length, 3, "keys");
      await commit(make(), { expect: [{ key: key(1), version: 1 }], puts: [[key(1), bytes(5)]] });
      same(kinds(await make().read([key(1)])), [5], "the row once it is replaced");
    },
  ],

  "D13: an object of an earlier release, without its hash, is known by its size": [
    async ({ ctx, bucket, make }) => {
      await put(make(), 1, BIG);
      const [name] = await names(bucket);
      const old = name.replace(/\.[0-9a-f]{64}$/, "");
      check(old !== name, "the name has the hash");
      await bucket.put(old, bytes(BIG));
      await bucket.delete(name);
      ctx.storage.sql.exec("UPDATE context_compactor_rows SET object = ?", old);
      same((await make().read([key(1)]))[0]?.length, BIG, "bytes");
      await bucket.put(old, bytes(BIG - 1));
      check((await make().read([key(1)]))[0]?.damaged, "a shorter one is told as damaged");
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
      await anHourLater(ctx, make);
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
    async ({ ctx, bucket, make }) => {
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
      await anHourLater(ctx, make);
      same([(await names(bucket)).length, (await contents(make())).length], [1, 1], "objects and rows");
    },
  ],

  "a put that arrives after its batch has failed is deleted later": [
    async ({ ctx, bucket, make }) => {
      const sent = [];
      const store = make({ put: (real, ...args) => (sent.push(() => real(...args)), lost()), head: lost });
      codeIs("store_unavailable", await outcome(put(store, 1, BIG)));
      await store.close();
      await sent[0]();
      same([(await names(bucket)).length, await contents(make())], [1, []], "what arrived, and contents");
      await anHourLater(ctx, make);
      same([await names(bucket), ledger(ctx)], [[], []], "objects at last");
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
};
