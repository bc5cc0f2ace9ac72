/** `sqlStore` on Cloudflare D1 in workerd (E6): the suite that every store passes, and kills of workerd. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { killRounds } from "../support/kills-rounds.mjs";
import { bundleWorker, startMortal } from "../support/worker.mjs";

const kills = Number(process.env.CC_KILLS ?? 4);
const seed = Number(process.env.CC_KILLS_SEED ?? Date.now() % 1_000_000);

let bundled, folder, host;
const start = () => startMortal(bundled, { d1Databases: ["DB"], d1Persist: folder });
const ask = async (body) => {
  const response = await host.worker.dispatchFetch("http://localhost/", { method: "POST", body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return JSON.parse(text);
};

before(async () => {
  bundled = await bundleWorker(fileURLToPath(new URL("../support/", import.meta.url)), "./d1-worker.mjs");
  folder = await mkdtemp(join(tmpdir(), "context-compactor-d1-"));
  host = await start();
});
after(async () => {
  await host.kill();
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

test("E6 D1: conformance", async (t) => {
  const names = await ask({ action: "names" });
  assert.ok(names.length > 20);
  for (const check of names) await t.test(check, async () => assert.deepEqual(await ask({ action: "check", check }), {}));
});

test("E6 D1: says synced", async () => assert.equal(await ask({ action: "durable" }), "synced"));

test("E6 D1: workerd killed: what was acknowledged is there, once and in order", async (t) => {
  const sum = await killRounds("d1", { kills, seed, version: "D1" }, async (origin) => {
    const open = new Set();
    return {
      write: (options) => void open.add(ask({ action: "write", origin, ...options }).catch(() => {})),
      async kill() {
        await host.kill();
        host = await start();
        await Promise.all(open);
        open.clear();
        return "process";
      },
      read: (options) => ask({ action: "read", ...options }),
      end: async () => {},
    };
  });
  const counts = sum.counts();
  t.diagnostic(`count ${JSON.stringify(counts)}`);
  assert.deepEqual(sum.problems, [], `CC_KILLS_SEED=${seed} repeats it`);
  assert.equal(counts.kills, kills);
});
