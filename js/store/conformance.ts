/**
 * Checks of everything that sessions rely on in a store. They run anywhere: Node, pages, workers. Use them in any test
 * runner:
 *
 *     for (const { name, run } of storeConformance(async () => myStore(freshName()))) test(name, run);
 *
 * With a hook that damages stored bytes, they also check whether the store notices.
 */

import type { Key, MaybePromise, Store } from "../types.js";
import { DAMAGE_CHECKS } from "./damage.js";
import type { ScanOptions } from "./keys.js";
import { bytesOf, check, codeIs, Probe, same, textOf } from "./probe.js";
import type { Check, Row } from "./probe.js";

/** One check of `storeConformance`. */
export interface ConformanceCase {
  /** Name of the check, for a test. */
  name: string;
  /** Runs the check. Rejects with an error that has the expected and the actual value. */
  run(): Promise<void>;
}

/** Options of `storeConformance`. */
export interface ConformanceOptions {
  /** Changes the stored bytes of `key` without the store, for example one bit. With it, stores with `caps.reportsDamage`
   *  are checked for noticing that. */
  damage?: (store: Store, key: Key) => MaybePromise<void>;
}

/** Returns the checks that a store must pass to hold sessions (`atomic: "batch"`, `cas: true`), for any test runner: `for
 *  (const { name, run } of storeConformance(async () => myStore(freshName()))) test(name, run)`. `factory` makes an empty
 *  store for each check. */
export function storeConformance(
  factory: () => Promise<Store>,
  { damage }: ConformanceOptions = {},
): ConformanceCase[] {
  const ofDamage = damage ? Object.entries(DAMAGE_CHECKS) : [];
  return [...Object.entries(CHECKS), ...ofDamage].map(([name, check]) => ({
    name,
    async run() {
      const store = await factory();
      try {
        await check(new Probe(store), async (key) => damage?.(store, key));
      } finally {
        await store.close?.();
      }
    },
  }));
}

const MIB = 1024 * 1024;
const CHECKS: Record<string, Check> = {
  "caps: says what it can, in whole numbers": async ({ caps }) => {
    same(caps.atomic, "batch", "caps.atomic");
    same(caps.cas, true, "caps.cas");
    check(["synced", "process", "none"].includes(caps.durable), `caps.durable is ${caps.durable}`);
    check(caps.maxValueBytes >= MIB, `caps.maxValueBytes is ${caps.maxValueBytes}, under 1 MiB`);
    check(caps.maxBatchOps >= 100, `caps.maxBatchOps is ${caps.maxBatchOps}, under 100`);
  },

  "read: values in the order of the keys, undefined for a missing one": async (probe) => {
    await probe.put([["log", "s", 1], "one"], [["log", "s", 2], "two"]);
    const keys: Key[] = [
      ["log", "s", 2],
      ["log", "s", 3],
      ["log", "s", 1],
      ["meta", "none"],
      ["log", "s", 2],
    ];
    same((await probe.read(keys)).map(textOf), ["two", undefined, "one", undefined, "two"], "values");
  },

  "read: no keys, no values": async (probe) => {
    same(await probe.read([]), [], "values");
  },

  "read: sees no half of a batch": async (probe) => {
    const [left, right]: Key[] = [
      ["meta", "left"],
      ["views", "s", 1],
    ];
    const writes = Array.from({ length: 20 }, (_, i) => probe.put([left!, `${i}`], [right!, `${i}`]));
    for (let i = 0; i < 20; i++) {
      const [a, b] = await probe.read([left!, right!]);
      same(textOf(a), textOf(b), "two values that are always written together");
    }
    await Promise.all(writes);
  },

  "commit: puts, replaces and deletes in one batch": async (probe) => {
    await probe.put([["log", "s", 1], "old"], [["log", "s", 2], "gone"]);
    await probe.commit({
      puts: [
        [["log", "s", 1], bytesOf("new")],
        [["blobs", "s", "b", 0], bytesOf("blob")],
      ],
      deletes: [["log", "s", 2]],
    });
    same(await probe.contents("log"), [[["log", "s", 1], "new"]], "log");
    same(await probe.contents("blobs"), [[["blobs", "s", "b", 0], "blob"]], "blobs");
  },

  "commit: an empty batch changes nothing": async (probe) => {
    await probe.put([["meta", "a"], "1"]);
    await probe.commit({});
    await probe.commit({ durability: "relaxed" });
    same(await probe.contents("meta"), [[["meta", "a"], "1"]], "meta");
  },

  "commit: deleting a missing key is no error": async (probe) => {
    await probe.commit({ deletes: [["meta", "none"]], puts: [[["meta", "a"], bytesOf("1")]] });
    same(await probe.contents("meta"), [[["meta", "a"], "1"]], "meta");
  },

  "commit: can be read as soon as it is acknowledged": async (probe) => {
    for (let i = 0; i < 10; i++) {
      await probe.put([["sessions", "s"], `${i}`], [["log", "s", i], `${i}`]);
      same(
        (
          await probe.read([
            ["sessions", "s"],
            ["log", "s", i],
          ])
        ).map(textOf),
        [`${i}`, `${i}`],
        `commit ${i}`,
      );
    }
  },

  "versions: count the commits that put the key, expected or not": async (probe) => {
    const key: Key = ["sessions", "s"];
    await probe.put([key, "1"]);
    await probe.put([key, "2"]);
    await probe.commit({ expect: [{ key, version: 2 }], puts: [[key, bytesOf("3")]] });
    await probe.commit({ expect: [{ key, version: 3 }], puts: [[["meta", "other"], bytesOf("x")]] });
    await probe.put([key, "4"]);
    await probe.refused("conflict", { expect: [{ key, version: 3 }], puts: [[key, bytesOf("late")]] });
    await probe.commit({ expect: [{ key, version: 4 }], deletes: [key] });
    same(await probe.read([key]), [undefined], "the deleted key");
  },

  "versions: a key that was deleted begins again at 1": async (probe) => {
    const key: Key = ["sessions", "s"];
    await probe.put([key, "1"]);
    await probe.put([key, "2"]);
    await probe.commit({ deletes: [key] });
    await probe.refused("conflict", { expect: [{ key, version: 2 }] });
    await probe.commit({ expect: [{ key, version: null }], puts: [[key, bytesOf("new")]] });
    await probe.commit({ expect: [{ key, version: 1 }] });
  },

  "expect: null means that the key must not exist": async (probe) => {
    const key: Key = ["sessions", "s"];
    await probe.refused("conflict", { expect: [{ key, version: 1 }], puts: [[key, bytesOf("x")]] });
    await probe.commit({ expect: [{ key, version: null }], puts: [[key, bytesOf("first")]] });
    await probe.refused("conflict", { expect: [{ key, version: null }], puts: [[key, bytesOf("x")]] });
    same(await probe.contents("sessions"), [[key, "first"]], "sessions");
  },

  "expect: a conflict writes and deletes nothing": async (probe) => {
    await probe.put([["sessions", "s"], "1"], [["log", "s", 0], "kept"], [["meta", "a"], "1"]);
    await probe.refused("conflict", {
      expect: [
        { key: ["sessions", "s"], version: 1 },
        { key: ["meta", "a"], version: 7 },
      ],
      puts: [
        [["sessions", "s"], bytesOf("2")],
        [["log", "s", 1], bytesOf("new")],
      ],
      deletes: [["log", "s", 0]],
    });
    same(await probe.contents("sessions"), [[["sessions", "s"], "1"]], "sessions");
    same(await probe.contents("log"), [[["log", "s", 0], "kept"]], "log");
    await probe.commit({ expect: [{ key: ["sessions", "s"], version: 1 }] });
  },

  "atomicity: a value that is no Uint8Array writes nothing": async (probe) => {
    const bad = "text" as unknown as Uint8Array;
    await probe.refused(undefined, {
      puts: [
        [["log", "s", 0], bytesOf("before")],
        [["log", "s", 1], bad],
        [["log", "s", 2], bytesOf("after")],
      ],
    });
    same(await probe.contents("log"), [], "log");
  },

  "atomicity: a value over maxValueBytes writes nothing": async (probe) => {
    if (probe.caps.maxValueBytes > 256 * MIB) return;
    await probe.refused("too_large", {
      puts: [
        [["blobs", "s", "b", 0], bytesOf("before")],
        [["blobs", "s", "b", 1], new Uint8Array(probe.caps.maxValueBytes + 1)],
      ],
    });
    same(await probe.contents("blobs"), [], "blobs");
  },

  "atomicity: a batch over maxBatchOps writes nothing": async (probe) => {
    if (probe.caps.maxBatchOps > 100_000) return;
    const puts = Array.from({ length: probe.caps.maxBatchOps + 1 }, (_, i): Row => [
      ["log", "s", i],
      bytesOf("x"),
    ]);
    await probe.refused("too_large", { puts });
    same(await probe.contents("log"), [], "log");
  },

  "atomicity: a key that is written twice is refused": async (probe) => {
    const key: Key = ["log", "s", 0];
    await probe.refused("invalid_option", {
      puts: [
        [key, bytesOf("a")],
        [[...key], bytesOf("b")],
      ],
    });
    await probe.refused("invalid_option", { puts: [[key, bytesOf("a")]], deletes: [[...key]] });
    same(await probe.contents("log"), [], "log");
  },

  "concurrency: exactly one of many conflicting commits wins": async (probe) => {
    const key: Key = ["sessions", "s"];
    await probe.put([key, "start"]);
    const attempts = Array.from({ length: 20 }, (_, i) =>
      probe.outcome({
        expect: [{ key, version: 1 }],
        puts: [
          [key, bytesOf(`${i}`)],
          [["log", "s", i], bytesOf(`${i}`)],
        ],
      }),
    );
    const outcomes = await Promise.all(attempts);
    const winners = outcomes.flatMap((outcome, i) => (outcome === undefined ? [i] : []));
    same(winners.length, 1, "commits that won");
    for (const outcome of outcomes) if (outcome !== undefined) codeIs("conflict", outcome);
    same(await probe.contents("sessions"), [[key, `${winners[0]}`]], "the winner's value");
    same(await probe.contents("log"), [[["log", "s", winners[0]!], `${winners[0]}`]], "the winner's rows");
  },

  "concurrency: no increment is lost": async (probe) => {
    const key: Key = ["sessions", "s"];
    await probe.put([key, "0"]);
    const add = async () => {
      for (let done = 0, tries = 0; done < 10; tries++) {
        check(tries < 1_000, "a commit that is tried again and again never wins");
        const count = Number(textOf((await probe.read([key]))[0]));
        const batch = {
          expect: [{ key, version: count + 1 }],
          puts: [[key, bytesOf(`${count + 1}`)] as Row],
        };
        const error = await probe.outcome(batch);
        if (error === undefined) done++;
        else codeIs("conflict", error);
      }
    };
    await Promise.all(Array.from({ length: 5 }, add));
    same(await probe.contents("sessions"), [[key, "50"]], "the counter");
  },

  "order: numbers by value, then strings by code unit, a prefix first": async (probe) => {
    const parts = [
      0,
      1,
      2,
      10,
      2 ** 40,
      "",
      "\u0000",
      "0",
      "10",
      "2",
      "A",
      "a",
      "aa",
      "b",
      "é",
      "😀",
      "\uff5e",
    ];
    const keys: Key[] = parts.flatMap((part): Key[] => [
      ["log", part],
      ["log", part, 0],
      ["log", part, "z"],
    ]);
    const shuffled = keys.map((_, i) => keys[(i * 23) % keys.length]!);
    await probe.put(...shuffled.map((key): [Key, string] => [key, "x"]));
    same(await probe.keys(["log"]), keys, "keys");
    same(await probe.keys(["log"], { reverse: true }), [...keys].reverse(), "keys in reverse");
  },

  "keys: hostile strings stay apart": async (probe) => {
    const names = [
      "__proto__",
      "constructor",
      "a/b",
      "a",
      "a:b",
      "a?1",
      "a?2",
      "a\u0000b",
      "a\u0000",
      '["a"]',
      "1",
      "%31",
    ];
    const keys: Key[] = [...names.map((name): Key => ["blobs", name]), ["blobs", 1], ["blobs", "a", "b"]];
    await probe.put(...keys.map((key, i): [Key, string] => [key, `${i}`]));
    same(
      (await probe.read(keys)).map(textOf),
      keys.map((_, i) => `${i}`),
      "values",
    );
    same((await probe.keys(["blobs"])).length, keys.length, "number of keys");
  },

  "keys: a key without a known table is refused": async (probe) => {
    for (const key of [["nowhere", "a"], ["log"], [], ["log", NaN], ["log", -1], ["log", 0.5], ["log", 2 ** 53]] as Key[]) {
      await probe.refused("invalid_option", {
        puts: [
          [["meta", "a"], bytesOf("1")],
          [key, bytesOf("x")],
        ],
      });
    }
    same(await probe.contents("meta"), [], "meta");
  },

  "scan: a prefix ends at a part, and tables are apart": async (probe) => {
    const under: Key[] = [
      ["log", "a"],
      ["log", "a", 1],
      ["log", "a", 2, "x"],
      ["log", "a", "1"],
    ];
    const others: Key[] = [
      ["log", "", "a"],
      ["log", "A", 1],
      ["log", "a\u0000", 1],
      ["log", "ab", 1],
      ["log", 1, "a"],
    ];
    const elsewhere: Key[] = [
      ["views", "a", 1],
      ["meta", "a"],
    ];
    await probe.put(...[...others, ...under, ...elsewhere].map((key): [Key, string] => [key, "x"]));
    same(await probe.keys(["log", "a"]), under, "keys under a");
    same(await probe.keys(["log", "a", 2]), [["log", "a", 2, "x"]], "keys under a, 2");
    same(await probe.keys(["log", "none"]), [], "keys under nothing");
    same((await probe.keys(["log"])).length, under.length + others.length, "keys in the table");
    same(await probe.keys(["log", "a"], { reverse: true }), [...under].reverse(), "keys under a in reverse");
  },

  "scan: pages by limit are whole and in order, both ways": async (probe) => {
    const keys = Array.from({ length: 25 }, (_, i): Key => ["log", "s", i]);
    await probe.put(
      ...keys.map((key, i): [Key, string] => [key, `${i}`]),
      [["log", "t", 0], "x"],
      [["log", "r", 0], "x"],
    );
    for (const reverse of [false, true]) {
      for (const keysOnly of [false, true]) {
        const pages = await probe.pages(["log", "s"], { limit: 7, reverse, keysOnly });
        same(
          pages.map((page) => page.length),
          [7, 7, 7, 4],
          "page lengths",
        );
        same(
          pages.flat().map(([key]) => key),
          reverse ? [...keys].reverse() : keys,
          "keys of the pages",
        );
        const values = pages.flat().map(([key, value]) => textOf(value) === (keysOnly ? "" : `${key[2]}`));
        check(values.every(Boolean), `values do not belong to their keys (keysOnly ${keysOnly})`);
      }
    }
  },

  "scan: stops before maxBytes, but returns one entry at least": async (probe) => {
    const sizes = [10, 30, 100, 40, 5, 200, 1, 1, 1, 1, 1, 1, 1];
    await probe.commit({
      puts: sizes.map((size, i): Row => [["log", "s", i], new Uint8Array(size).fill(i)]),
    });
    const lengths = async (options: Partial<ScanOptions>) =>
      (await probe.pages(["log", "s"], options)).map((page) => page.map(([, value]) => value.byteLength));
    same(
      await lengths({ maxBytes: 50 }),
      [[10, 30], [100], [40, 5], [200], [1, 1, 1, 1, 1, 1, 1]],
      "pages of 50 bytes",
    );
    same(
      await lengths({ maxBytes: 40, limit: 3 }),
      [[10, 30], [100], [40], [5], [200], [1, 1, 1], [1, 1, 1], [1]],
      "both",
    );
    same((await lengths({ maxBytes: 45, reverse: true }))[1], [200], "second page in reverse");
    same((await probe.pages(["log", "s"], { maxBytes: 1, keysOnly: true })).length, 1, "pages of keys only");
  },

  "scan: `after` may be a key that is gone": async (probe) => {
    await probe.put(...[1, 3, 5].map((i): [Key, string] => [["log", "s", i], "x"]));
    const after: Key = ["log", "s", 2];
    same(
      await probe.keys(["log", "s"], { after }),
      [
        ["log", "s", 3],
        ["log", "s", 5],
      ],
      "keys after 2",
    );
    same(await probe.keys(["log", "s"], { after, reverse: true }), [["log", "s", 1]], "keys before 2");
  },

  "values: every byte comes back, in an array of exact length": async (probe) => {
    const all = Uint8Array.from({ length: 256 }, (_, i) => i);
    const inside = all.subarray(100, 228);
    const badText = Uint8Array.of(0xef, 0xbb, 0xbf, 0xff, 0xed, 0xa0, 0x80, 0);
    const values = [all, inside, badText, new Uint8Array()];
    await probe.commit({ puts: values.map((value, i): Row => [["blobs", "s", "b", i], value]) });
    const read = await probe.read(values.map((_, i): Key => ["blobs", "s", "b", i]));
    const scanned = (await probe.scan(["blobs", "s"])).map(([, value]) => value);
    for (const found of [read, scanned]) {
      same(
        found.map((value) => [...(value ?? [])]),
        values.map((value) => [...value]),
        "bytes",
      );
      for (const value of found)
        same(value?.buffer.byteLength, value?.byteLength, "length of the buffer behind a value");
    }
  },

  "values: big ones come back whole": async (probe) => {
    const size = Math.min(probe.caps.maxValueBytes, 8 * MIB);
    const value = new Uint8Array(size).map((_, i) => (i * 31) >>> 7);
    await probe.commit({ puts: [[["blobs", "s", "b", 0], value]] });
    const [found] = await probe.read([["blobs", "s", "b", 0]]);
    same(found?.byteLength, size, "bytes");
    check(
      value.every((byte, i) => byte === found?.[i]),
      "the bytes differ",
    );
  },

  "values: many come in one batch": async (probe) => {
    const count = Math.min(probe.caps.maxBatchOps, 2_000);
    await probe.put(...Array.from({ length: count }, (_, i): [Key, string] => [["log", "s", i], `${i}`]));
    const rows = await probe.scan(["log", "s"]);
    check(
      rows.length === count && rows.every(([key, value], i) => key[2] === i && textOf(value) === `${i}`),
      "rows differ",
    );
    await probe.commit({ deletes: rows.map(([key]) => key) });
    same(await probe.contents("log"), [], "log");
  },

  "values: the caller's later changes do not reach the store": async (probe) => {
    const bytes = bytesOf("mine");
    const key = ["log", "s", 0];
    const batch = {
      expect: [],
      puts: [[key, bytes] as [Key, Uint8Array]],
      deletes: [],
      durability: "strict" as const,
    };
    const pending = probe.commit(batch);
    bytes.fill(0);
    key[2] = 9;
    batch.puts.push([["log", "s", 1], bytes]);
    await pending;
    same(await probe.contents("log"), [[["log", "s", 0], "mine"]], "log");
    const [read] = await probe.read([["log", "s", 0]]);
    const [[scannedKey, scanned] = []] = await probe.scan(["log"]);
    read?.fill(0);
    scanned?.fill(0);
    (scannedKey as (string | number)[])[2] = 9;
    same(await probe.contents("log"), [[["log", "s", 0], "mine"]], "log");
  },

  "changes: where it tells of commits, the session and its version, as long as somebody listens": async (probe) => {
    if (!probe.changes) return;
    const key: Key = ["sessions", "s"];
    const write = (version: number | null) => ({ expect: [{ key, version }], puts: [[key, bytesOf("row")] as Row] });
    const told: [string, number][] = [];
    const end = probe.changes((sid, ver) => told.push([sid, ver]));
    await probe.commit(write(null));
    await probe.refused("conflict", write(7));
    await probe.commit(write(1));
    for (let waits = 0; told.length < 2 && waits < 100; waits++) await moment(50);
    same(told, [["s", 1], ["s", 2]], "what was told");
    end();
    end();
    await probe.commit(write(2));
    await moment(100);
    same(told.length, 2, "commits told");
  },
};

function moment(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
