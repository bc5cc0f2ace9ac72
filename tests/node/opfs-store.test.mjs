/** `opfsStore` over a simulated origin (D23): the suite, workers that are killed or lose power at any change, and workers side by side. */

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import * as zlib from "node:zlib";
import { opfsStore } from "context-compactor/worker-thread";
import { batch, contents } from "../support/file-store.mjs";
import { loadOpfs, Origin } from "../support/sim-opfs.mjs";

/** Where one worker waits for another, it is not for long. */
const QUICK = [
  { file: "file/store.ts", from: "const HELP_MS = 1_000;", to: "const HELP_MS = 20;" },
  { file: "opfs/turns.ts", from: "const KEEP_MS = 100;", to: "const KEEP_MS = 5;" },
  { file: "opfs/faults.ts", from: "export const WAIT_MS = 10_000;", to: "export const WAIT_MS = 200;" },
];
const code = await loadOpfs(QUICK);
const NAME = "files";
const OPTIONS = { name: NAME, rewriteBytes: 1_500 };
const ROUNDS = 14;

const put = (nth, durability = "strict") =>
  batch({ puts: [[["log", "s", nth], `text ${nth}`], [["views", "s", 1], `${nth} `.repeat(150)]], durability });

/** Flips a bit of a value, whatever file has it. */
function flip(origin, text) {
  for (const file of origin.folders.get(NAME).values()) {
    const at = Buffer.from(file.data).indexOf(text);
    if (at < 0) continue;
    file.data = file.data.slice();
    file.data[at] ^= 1;
    file.kept = file.data;
  }
}

/** A worker that writes until it is done or dies; what it was told. With `flips` one of its first values is damaged meanwhile. */
async function written(origin, code, killAt, flips) {
  const { opfsStore, owner } = origin.worker(code, killAt);
  let stored = 0;
  const work = async () => {
    const store = opfsStore(OPTIONS);
    for (let nth = 0; nth < ROUNDS; nth++) {
      await store.commit(put(nth));
      if (owner.dead) return;
      stored = nth + 1;
      if (nth === 2 && flips) flip(origin, "text 1");
    }
    await store.close();
  };
  await Promise.race([work(), owner.died]);
  return { stored, isDead: owner.dead };
}

/** What the next worker finds is what was acknowledged, or one commit more, and it goes on. */
async function check(origin, code, stored, what) {
  const { opfsStore } = origin.worker(code);
  const store = opfsStore(OPTIONS);
  const found = await contents(store);
  const texts = Object.keys(found).filter((key) => key.startsWith('["log"'));
  assert.ok(texts.length === stored || texts.length === stored + 1, `${what}: ${texts.length} of ${stored}`);
  for (const key of texts) {
    const [, , nth] = JSON.parse(key);
    if (nth === 1 && found[key].damaged) continue;
    assert.equal(found[key], `text ${nth}`, what);
  }
  if (texts.length > 0) assert.equal(found['["views","s",1]'], `${texts.length - 1} `.repeat(150), what);
  assert.equal(await store.dataLoss(), undefined, what);
  await store.commit(put(texts.length));
  await store.close();
  const again = origin.worker(code).opfsStore(OPTIONS);
  assert.equal(Object.keys(await contents(again)).length, texts.length + 2, what);
  await again.close();
}

async function killEverywhere(code, isPower) {
  for (let at = 1; ; at++) {
    const origin = new Origin();
    const { stored, isDead } = await written(origin, code, at, !isPower);
    if (!isDead) return at - 1;
    if (isPower) origin.cut();
    await check(origin, code, stored, `${isPower ? "power cut" : "killed"} at change ${at}`);
  }
}

test("D23: the suite that every store passes", async (t) => {
  const { storeConformance } = new Origin().worker(code);
  const factory = async () => new Origin().worker(code).opfsStore();
  for (const { name, run } of storeConformance(factory)) await t.test(name, run);
});

for (const isPower of [false, true]) {
  test(`D23: ${isPower ? "the power is cut" : "killed"} at any change, also while the files are written anew: acknowledged is stored`, async (t) => {
    const changes = await killEverywhere(code, isPower);
    assert.ok(changes > 60, `${changes} changes`);
    t.diagnostic(`${changes} changes`);
  });
}

test("D23: two workers write side by side while each writes the files anew", async () => {
  const origin = new Origin();
  const stores = [0, 1].map(() => origin.worker(code).opfsStore(OPTIONS));
  await Promise.all(stores.map(async (store, at) => {
    for (let nth = 0; nth < 30; nth++) await store.commit(put(2 * nth + at));
  }));
  for (const store of stores) assert.equal(Object.keys(await contents(store)).length, 61);
  assert.ok(![...origin.folders.get(NAME).keys()].includes("journal-000000000001"));
  for (const store of stores) await store.close();
});

test("D23: a worker that was away finds the journal that others wrote in place of its own; rows are read whole or not at all", async () => {
  const origin = new Origin();
  const [late, busy] = [0, 1].map(() => origin.worker(code).opfsStore(OPTIONS));
  await late.commit(put(0));
  for (let nth = 1; nth < 40; nth++) await busy.commit(put(nth));
  assert.equal(Object.keys(await contents(late)).length, 41);
  await late.commit(put(40));
  assert.equal(Object.keys(await contents(busy)).length, 42);
  await late.close();
  await busy.close();
});

test("D23: another one's files under the same name are an error, and nothing is written to them", async () => {
  const origin = new Origin();
  const store = origin.worker(code).opfsStore(OPTIONS);
  await store.commit(put(0));
  await new Promise((resolve) => setTimeout(resolve, 30));
  origin.folders.get(NAME).clear();
  const other = origin.worker(code).opfsStore(OPTIONS);
  for (let nth = 0; nth < 3; nth++) await other.commit(put(nth));
  await new Promise((resolve) => setTimeout(resolve, 30));
  await assert.rejects(async () => store.commit(put(9)), { code: "store_corrupt" });
  assert.equal(Object.keys(await contents(other)).length, 4);
  await store.close();
  await other.close();
});

test("D24: what was deleted or replaced is in no file after `purge`", async () => {
  const origin = new Origin();
  const store = origin.worker(code).opfsStore();
  const bytes = () => [...origin.folders.get("context-compactor").values()].map(({ data }) => Buffer.from(data).toString("latin1")).join("");
  await store.commit(batch({ puts: [[["log", "s", 1], "a secret"], [["log", "s", 2], "what stays"]] }));
  await store.commit(batch({ deletes: [["log", "s", 1]] }));
  assert.match(bytes(), /a secret/);
  await store.purge();
  assert.doesNotMatch(bytes(), /a secret/);
  assert.deepEqual(await contents(store), { '["log","s",2]': "what stays" });
  await store.close();
});

describe("the tests find what is wrong", () => {
  const mutants = {
    "a copy begins with its first byte": {
      power: false,
      changes: [{ file: "opfs/directory.ts", from: "for (let at = 1; at < size; at += PIECE)", to: "for (let at = 0; at < size; at += PIECE)" }],
    },
    "takes a copy that was begun for a journal": {
      power: false,
      changes: [{ file: "opfs/directory.ts", from: "return begin[0] !== 0;", to: "return true;" }],
    },
    "does not flush what it acknowledges": {
      power: true,
      changes: [{ file: "opfs/file.ts", from: "await this.#use((open) => open.flush());", to: "" }],
    },
    "does not flush a copy before its first byte": {
      power: true,
      changes: [{ file: "opfs/directory.ts", from: "        copy.flush();\n        take(0, 1);\n        copy.flush();", to: "        take(0, 1);" }],
    },
  };
  for (const [name, { power, changes }] of Object.entries(mutants)) {
    test(name, async () => {
      const wrong = await loadOpfs([...QUICK, ...changes]);
      await assert.rejects(killEverywhere(wrong, power));
    });
  }
});

test("D23: sums are those of Node where there is no Node", () => {
  const { crc32, sha256 } = new Origin().worker(code);
  for (const length of [0, 1, 53, 54, 55, 61, 62, 63, 64, 117, 118, 119, 1_000]) {
    const bytes = randomBytes(length);
    assert.equal(sha256("id", bytes), createHash("sha256").update("id").update(bytes).digest("hex"));
    assert.equal(sha256("id", `${length} 数据`), createHash("sha256").update(`id${length} 数据`).digest("hex"));
    assert.equal(crc32(bytes), zlib.crc32(bytes));
  }
});

test("D23: without these files every call says so, and names that are none are refused", async () => {
  const store = opfsStore();
  assert.deepEqual([store.name, store.caps.durable, store.caps.reportsDamage], ["files/context-compactor", "synced", true]);
  await assert.rejects(async () => store.read([["meta", "a"]]), { code: "store_unavailable", message: /^opfsStore: this browser has no private file system .*WebKitGTK.*indexedDbStore\(\) alone$/ });
  await store.close();
  await assert.rejects(async () => store.read([["meta", "a"]]), { code: "closed" });
  for (const name of ["", ".", "..", "a/b", "a\\b", "\0", 7]) assert.throws(() => opfsStore({ name }), { code: "invalid_option", field: "name" });
  assert.throws(() => opfsStore({ durability: "lax" }), { code: "invalid_option", field: "durability" });
  assert.throws(() => opfsStore({ directory: "a" }), { code: "invalid_option", field: "directory" });
});
