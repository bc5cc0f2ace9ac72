/** A session in two Durable Objects that are copies of each other: one is damaged, emptied, or behind after a kill (D23). */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bundleWorker, startMortal } from "../support/worker.mjs";

const KILLS = Number(process.env.CC_KILLS ?? 3);

let bundled, folder;
before(async () => {
  bundled = await bundleWorker(fileURLToPath(new URL("../support", import.meta.url)), "./durable-mirror.mjs");
  folder = await mkdtemp(join(tmpdir(), "context-compactor-durable-"));
});
after(() => folder && rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

/** Starts workerd on the data of `name`. `ask` resolves to what the object answers; `kill` ends the process at once. */
async function start(name) {
  const { worker, kill } = await startMortal(bundled, {
    durableObjects: { CHAT: { className: "Mirrored", useSQLite: true }, COPY: { className: "Copy", useSQLite: true } },
    durableObjectsPersist: join(folder, name, "objects"),
    r2Buckets: ["BIG"],
    r2Persist: join(folder, name, "bucket"),
  });
  const ask = async (action, given) => {
    const body = JSON.stringify({ name, action, ...given });
    const response = await worker.dispatchFetch("http://localhost/", { method: "POST", body });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return JSON.parse(text);
  };
  /** What was done to it is met by an object that begins anew. */
  const restart = () => assert.rejects(ask("abort"), /aborted by the test/);
  return { ask, kill, restart, dispose: () => worker.dispose() };
}

test("D23: two Durable Objects pass the suite that every store passes", async () => {
  const host = await start("suite");
  try {
    const { count, failed } = await host.ask("conformance");
    assert.ok(count > 20);
    assert.deepEqual(failed, []);
  } finally {
    await host.dispose();
  }
});

test("D23: an object is damaged table by table, loses its part of the bucket, or all: it comes back from the other", async () => {
  const host = await start("hurt");
  try {
    assert.equal(await host.ask("append", { to: 40 }), 40);
    await host.ask("prepare");
    assert.equal(await host.ask("compact"), true);
    assert.equal(await host.ask("append", { to: 44 }), 44);
    const whole = await host.ask("look");
    assert.deepEqual([whole.count, whole.problems], [44, []]);
    const { rows, ...compared } = await host.ask("compare");
    assert.deepEqual(compared, { repaired: 0, lost: 0, differing: [], told: [] });

    const hurts = ["meta", "sessions", "log", "blobs", "views", "jobs"].map((table) => ["damageRows", { table }]);
    hurts.push(["damageObjects"], ["clearFirst"], ["clearSecond"]);
    let done = 0;
    for (const [action, given] of hurts) {
      const what = `${action} ${given?.table ?? ""}`;
      if ((await host.ask(action, given)) === 0) continue;
      done++;
      await host.restart();
      assert.deepEqual(await host.ask("look"), whole, what);
      const { repaired, told, ...found } = await host.ask("compare");
      assert.deepEqual(found, { rows, lost: 0, differing: [] }, what);
      assert.ok(told.length > 0 && told.every(([kind]) => kind === "repaired"), `${what}: ${JSON.stringify(told)}`);
      await host.restart();
    }
    assert.ok(done >= 8, `${done} kinds of damage`);
    assert.equal(await host.ask("append", { to: 48 }), 48);
    assert.deepEqual((await host.ask("look")).problems, []);
  } finally {
    await host.dispose();
  }
});

test(`D23: killed ${KILLS} times over two objects, of which one is emptied then: acknowledged is stored`, async (t) => {
  let [acknowledged, stored] = [0, 0];
  for (let kill = 0; kill <= KILLS; kill++) {
    const host = await start("killed");
    try {
      if (kill > 0) {
        await host.ask(kill % 2 ? "clearFirst" : "clearSecond");
        await host.restart();
      }
      const { count, problems } = await host.ask("look");
      const { repaired, told, rows, ...compared } = await host.ask("compare");
      assert.deepEqual([problems, compared], [[], { lost: 0, differing: [] }]);
      assert.ok(told.every(([kind]) => kind === "repaired"), JSON.stringify(told));
      assert.ok(count >= acknowledged && count <= acknowledged + 1, `${count} are stored, ${acknowledged} were acknowledged`);
      acknowledged = stored = count;
      if (kill === KILLS) break;
      const work = (async () => {
        for (;;) {
          acknowledged = await host.ask("append", { to: acknowledged + 1 });
          if (acknowledged % 10 === 0) await host.ask("compact");
        }
      })().catch(() => {});
      while (acknowledged < stored + 8) await new Promise((resolve) => setTimeout(resolve, 5));
      await new Promise((resolve) => setTimeout(resolve, 120 * Math.random()));
      await host.kill();
      await work;
    } finally {
      await host.dispose().catch(() => {});
    }
  }
  t.diagnostic(`${KILLS} kills, ${stored} messages stored`);
});
