/** Two copies on disks in memory, under processes that a seed kills, and disks that it cuts the power of, damages and loses. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundle, mutation } from "./bundle.mjs";
import { frail } from "./frail.mjs";
import { generator } from "./random.mjs";

/** The mirror out of its sources. Each of `changes`, `{ file, from, to }`, replaces a text that occurs once. */
export async function loadMirror(changes = []) {
  const path = await mkdtemp(join(tmpdir(), "context-compactor-"));
  try {
    const outfile = join(path, "bundle.mjs");
    const source = `
      export { CompactionError } from "./js/errors.ts";
      export { memoryStore } from "./js/store/memory.ts";
      export { mirrorStore } from "./js/store/mirror.ts";
    `;
    await bundle(source, outfile, { platform: "node", plugins: [mutation([HASTY, ...changes], "js/store/mirror")] });
    return await import(pathToFileURL(outfile).href);
  } finally {
    await rm(path, { recursive: true });
  }
}

/** Nobody waits for the clock. */
const HASTY = { file: "pair.ts", from: "const GRACE_MS = 4;", to: "const GRACE_MS = 0;" };

const never = () => new Promise(() => {});
export const TABLES = ["meta", "sessions", "log", "blobs", "views", "jobs"];
export const EVERYTHING = { limit: Infinity, maxBytes: Infinity };

/** A process: what it asks of disks ends where it dies. */
export class Process {
  steps = 0;
  dieAt = Infinity;
  /** A disk that does not open for it. */
  without = undefined;
  constructor(random = () => 0) {
    this.random = random;
    this.died = new Promise((resolve) => (this.die = resolve));
  }
  get isDead() {
    return this.steps >= this.dieAt;
  }
  /** Lets others go first, and may be the last that it does. */
  async step() {
    for (let turns = this.random(4); turns > 0; turns--) await undefined;
    if (++this.steps >= this.dieAt) {
      this.die();
      await never();
    }
  }
}

/** A disk with a store on it: what was not synced may be lost in a power cut. */
export class Disk {
  #memoryStore;
  #CompactionError;
  batches = [];
  synced = 0;
  lost = undefined;
  /** One commit of so many fails, if any. */
  failing = 0;
  random = () => 0;

  constructor({ memoryStore, CompactionError }) {
    [this.#memoryStore, this.#CompactionError] = [memoryStore, CompactionError];
    this.rows = frail(memoryStore());
  }

  open(process = new Process()) {
    const later = (work) => async (...given) => {
      await process.step();
      if (process.without === this) throw new this.#CompactionError("store_unavailable", "the disk is not there");
      const answer = work(...given);
      await process.step();
      return answer;
    };
    return {
      caps: { ...this.rows.caps, durable: "synced" },
      read: later((keys) => this.rows.read(keys)),
      scan: later((prefix, options) => this.rows.scan(prefix, options)),
      commit: later((batch) => this.#commit(batch)),
      dataLoss: later(() => {
        const { lost } = this;
        this.lost = undefined;
        return lost;
      }),
    };
  }

  #commit(batch) {
    const fails = this.failing > 0 && batch.puts.length > 0 ? this.random(this.failing) : -1;
    if (fails === 0) throw new this.#CompactionError("store_unavailable", "the disk fails");
    if (fails === 1) throw new this.#CompactionError("indeterminate", "the disk does not answer");
    this.rows.commit(batch);
    if (batch.puts.length + batch.deletes.length > 0) {
      this.batches.push({ ...batch, expect: [], puts: batch.puts.map(([key, value]) => [key, value.slice()]) });
      if (batch.durability === "strict") this.synced = this.batches.length;
    }
    if (fails === 2) throw new this.#CompactionError("indeterminate", "the disk did it and does not answer");
  }

  /** What was synced stays, and of what came later the first `keep` batches. */
  cut(keep = 0) {
    this.batches.length = Math.min(this.batches.length, this.synced + keep);
    this.rows = frail(this.#memoryStore());
    for (const batch of this.batches) this.rows.commit(batch);
  }

  lose(reason) {
    [this.batches, this.synced, this.lost] = [[], 0, reason];
    this.rows = frail(this.#memoryStore());
  }

  /** What a mirror keeps in it for its caller, by key. */
  contents() {
    const found = {};
    for (const table of TABLES) {
      for (const [key, value] of this.rows.scan([table], EVERYTHING)) {
        if (key[1] !== "mirror") found[JSON.stringify(key)] = value.damaged ? { damaged: true } : Buffer.from(value).toString();
      }
    }
    return found;
  }

  keys() {
    return TABLES.flatMap((table) => this.rows.scan([table], { ...EVERYTHING, keysOnly: true })).map(([key]) => key);
  }

  /** True where `key` has been put so often. */
  has(key, version) {
    try {
      this.rows.commit({ expect: [{ key, version }], puts: [], deletes: [], durability: "relaxed" });
      return true;
    } catch {
      return false;
    }
  }
}

export const SESSION = ["sessions", "s"];
const bytes = (value) => new TextEncoder().encode(JSON.stringify(value));
const parsed = (value) => JSON.parse(new TextDecoder().decode(value));

/** What is known of the messages of a session: acknowledged, refused, or neither. */
export class Model {
  acknowledged = new Set();
  refused = new Set();
  erased = new Set();
  /** Whether they are there is open. */
  #open = new Set();
  #count = 0;

  /** Appends a message as the engine does: with the session's row expected as it was read, and after an answer that leaves
   *  it open, read again. */
  async append(store, process = new Process(), tries = 6) {
    const text = `message ${this.#count++}`;
    for (; tries > 0; tries--) {
      let next;
      try {
        const session = await this.#session(store);
        ({ next } = session);
        const expect = [{ key: SESSION, version: session.ver || null }];
        const puts = [
          [["log", "s", next], bytes(text)],
          [SESSION, bytes({ ver: session.ver + 1, next: next + 1 })],
        ];
        await store.commit({ expect, puts, deletes: [], durability: "strict" });
        if (!process.isDead) this.#acknowledge(text);
        return true;
      } catch (error) {
        if (!error.code) throw error;
        if (error.code === "conflict") continue;
        if (error.code !== "indeterminate") {
          if (next === undefined || tries === 6) this.refused.add(text);
          return false;
        }
        const isThere = await this.#isThere(store, text, next).catch(() => undefined);
        if (isThere === undefined) return false;
        if (isThere) {
          this.#acknowledge(text);
          return true;
        }
        // It was there, and another process erased it: written again it would be no failure of the erasing.
        if (this.#open.has(text)) return false;
      }
    }
    return false;
  }

  /** The session's row; where it is missing or damaged, what the log says of it, as the engine does (R2). */
  async #session(store) {
    const [row] = await store.read([SESSION]);
    if (row && !row.damaged && row[0] !== 0) return parsed(row);
    if (row) await store.commit({ expect: [], puts: [], deletes: [SESSION], durability: "strict" });
    const [last] = await store.scan(["log", "s"], { limit: 1, maxBytes: 1, keysOnly: true, reverse: true });
    return { ver: 0, next: last ? last[0][2] + 1 : 0 };
  }

  #acknowledge(text) {
    // Another process may have erased it since.
    if (!this.#open.has(text)) this.acknowledged.add(text);
  }

  async #isThere(store, text, from) {
    const { next } = await this.#session(store);
    const keys = Array.from({ length: next - from }, (_, i) => ["log", "s", from + i]);
    const found = keys.length > 0 ? await store.read(keys) : [];
    return found.some((value) => value && !value.damaged && parsed(value) === text);
  }

  /** Removes a message for good. */
  async erase(store, random = () => 0) {
    const rows = await store.scan(["log", "s"], { limit: 1_000, maxBytes: 1e9 });
    if (rows.length === 0) return;
    const [key, value] = rows[random(rows.length)];
    if (value.damaged) return;
    const session = await this.#session(store);
    if (session.ver === 0) return;
    const puts = [[SESSION, bytes({ ...session, ver: session.ver + 1 })]];
    const text = parsed(value);
    this.#open.add(text);
    this.acknowledged.delete(text);
    await store.commit({ expect: [{ key: SESSION, version: session.ver }], puts, deletes: [key], durability: "strict" });
    this.erased.add(text);
  }

  /** The messages of the session, each once, and those that are missing; fails for what must not be there. */
  async missing(store) {
    const { next } = await this.#session(store);
    const rows = await store.scan(["log", "s"], { limit: 10_000, maxBytes: 1e9 });
    const texts = rows.map(([, value]) => (value.damaged ? value : parsed(value)));
    assert.equal(new Set(texts).size, texts.length, "a message is there twice");
    for (const [key] of rows) assert.ok(key[2] < next, `a row of the log is behind the session's end: ${key[2]} of ${next}`);
    for (const text of texts) {
      assert.ok(!this.refused.has(text), `what was refused is there: ${text}`);
      assert.ok(!this.erased.has(text), `what was erased is there: ${text}`);
    }
    return [...this.acknowledged].filter((text) => !texts.includes(text));
  }
}

/** Both copies are one, and the session's row has the version that it says. */
export function checkSame(one, two) {
  assert.deepEqual(two.contents(), one.contents(), "the copies differ");
  const row = one.contents()[JSON.stringify(SESSION)];
  for (const disk of row ? [one, two] : []) assert.ok(disk.has(SESSION, JSON.parse(row).ver), "the version of the session's row");
}

/** One seed: processes over a pair, killed, with power cuts, damage and lost copies. Resolves to counts of what happened. */
export async function run(library, seed) {
  const random = generator(seed);
  const acknowledge = random(3) === 0 ? "first" : "both";
  const disks = [new Disk(library), new Disk(library)];
  for (const disk of disks) disk.random = random;
  const model = new Model();
  const counts = { acknowledged: 0, kills: 0, cuts: 0, losses: 0, damaged: 0, lost: 0 };
  /** The copies that a fault may have left with less than the other. */
  let hurt = new Set();

  const open = (process) => library.mirrorStore(disks[0].open(process), disks[1].open(process), { acknowledge });

  for (let life = 2 + random(4); life > 0; life--) {
    for (const disk of disks) disk.failing = random(4) === 0 ? 12 : 0;
    const processes = Array.from({ length: 1 + random(2) }, () => new Process(random));
    const stores = processes.map(open);
    const acknowledged = model.acknowledged.size;
    const dies = random(4) > 0;
    if (dies) for (const process of processes) process.dieAt = 1 + random(160);
    const work = async (store, process) => {
      for (let calls = 1 + random(6); calls > 0; calls--) {
        const kind = random(10);
        const before = model.acknowledged.size;
        if (kind === 0) await model.erase(store, random).catch(tolerated);
        else if (kind === 1) await store.check().then(({ lost }) => lost === 0 && hurt.clear(), tolerated);
        else await model.append(store, process);
        // In both copies: then the whole of it is.
        if (acknowledge === "both" && model.acknowledged.size > before && !hurt.has("rows")) hurt = new Set();
      }
      if (!dies) await store.close();
    };
    const behind = () => Math.max(...stores.map((store) => store.behind));
    const all = processes.map((process, i) => Promise.race([work(stores[i], process), process.died]));
    await Promise.all(all);
    const lag = behind();
    // Who has not opened the pair yet does not know how far the second is.
    const isKnown = acknowledge === "both" || (lag < Infinity && model.acknowledged.size > acknowledged);
    if (dies) counts.kills++;
    // All of them are gone now, also those that lived on in the meantime.
    for (const process of processes) process.dieAt = 0;
    for (const disk of disks) disk.failing = 0;

    const fault = random(6);
    const at = random(2);
    if (fault === 0 || fault === 1) {
      counts.cuts++;
      for (const disk of fault === 0 ? disks : [disks[at]]) disk.cut(random(3));
    } else if (fault === 2 && !hurt.has(1 - at) && !hurt.has("rows") && (at === 1 || isKnown)) {
      counts.losses++;
      disks[at].lose(random(2) === 0 ? "the platform removed it" : undefined);
      hurt.add(at);
      // Erasing is one of the commits that the second may not have.
      if (at === 0 && acknowledge === "first") model.erased.clear();
    } else if (fault === 4 && acknowledge === "both" && hurt.size === 0) {
      // Both at once: each has synced what was acknowledged.
      counts.cuts++;
      counts.losses++;
      disks[at].cut();
      disks[1 - at].lose();
      hurt.add(1 - at);
    } else if (fault === 3 && hurt.size === 0) {
      const keys = disks[at].keys();
      const isEqual = JSON.stringify(disks[0].contents()) === JSON.stringify(disks[1].contents());
      if (keys.length > 0 && isEqual) {
        for (let rows = 1 + random(3); rows > 0; rows--) disks[at].rows.report(keys[random(keys.length)]);
        counts.damaged++;
        hurt.add(at).add("rows");
      }
    }
    if (hurt.size === 0 && acknowledge === "both" && random(3) === 0) await checkAlone(model, disks[random(2)], open);
    const store = open(new Process(random));
    const missing = await model.missing(store);
    if (missing.length > 0) {
      assert.equal(acknowledge, "first", `lost: ${missing.join(", ")}`);
      assert.ok(hurt.has(0) && missing.length <= lag, `${missing.length} lost, ${lag} behind: ${missing.join(", ")}`);
      // An empty pair is one that nothing was written to.
      if (disks[1].keys().length > 0) assert.ok(await store.dataLoss(), "a loss was not told");
      counts.lost += missing.length;
      for (const text of missing) model.acknowledged.delete(text);
    }
    if (random(2) === 0) {
      const { lost } = await store.check();
      assert.equal(lost, 0, "rows are in neither copy");
      checkSame(...disks);
      hurt.clear();
    }
    assert.ok(await model.append(store), "the next append");
    await store.close();
    if (acknowledge === "both" && !hurt.has("rows")) hurt.clear();
  }
  const store = open(new Process(random));
  await store.check();
  assert.deepEqual(await model.missing(store), [], "missing at the end");
  checkSame(...disks);
  await store.close();
  counts.acknowledged = model.acknowledged.size;
  return counts;
}

/** What one copy has while `without`, the other one, does not open: all of it can be read, and nothing is written. */
async function checkAlone(model, without, open) {
  const process = Object.assign(new Process(), { without });
  const store = open(process);
  const found = await model.missing(store).catch(tolerated);
  // A copy that is half written is read by nobody, and neither is a pair that was never written to.
  if (found) assert.deepEqual(found, [], "lost without one copy");
  assert.equal(await model.append(store, process), false, "an append is in one copy alone");
  await store.close();
}

/** An error of the store is one of the faults; others are those of the test. */
function tolerated(error) {
  if (!error.code) throw error;
}
