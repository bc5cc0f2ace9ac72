/** Sessions in Durable Objects: put away and opened again, two requests at once, ended in the middle, and killed. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bundleWorker, startMortal } from "../support/worker.mjs";

const kills = Number(process.env.CC_KILLS ?? 3);
/** A seed makes the moments of the kills the same, as far as the machine lets them be. */
const seed = Number(process.env.CC_SEED ?? Date.now() % 1_000_000);

let bundled, folder;
before(async () => {
  bundled = await bundleWorker(fileURLToPath(new URL("../support", import.meta.url)), "./durable-session.mjs");
  folder = await mkdtemp(join(tmpdir(), "context-compactor-durable-"));
});
after(() => folder && rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

/** Starts workerd on the data of `name`. `ask` resolves to what the object answers; `kill` ends the process at once. */
async function start(name, { bucket = true } = {}) {
  const { worker, kill, processes } = await startMortal(bundled, {
    durableObjects: { CHAT: { className: "Chat", useSQLite: true } },
    durableObjectsPersist: join(folder, name, "objects"),
    ...(bucket && { r2Buckets: ["BIG"], r2Persist: join(folder, name, "bucket") }),
  });
  assert.equal(processes, 1);
  return {
    worker,
    kill,
    async ask(action, given) {
      const body = JSON.stringify({ name, action, ...given });
      const response = await worker.dispatchFetch("http://localhost/", { method: "POST", body });
      const text = await response.text();
      if (!response.ok) throw new Error(text);
      return JSON.parse(text);
    },
    dispose: () => worker.dispose(),
  };
}

for (const bucket of [true, false]) {
  test(`a session is there when the object was put away, ${bucket ? "with" : "without"} a bucket`, async () => {
    const name = `whole-${bucket}`;
    let host = await start(name, { bucket });
    let looked;
    try {
      assert.equal(await host.ask("append", { to: 40 }), 40);
      await host.ask("prepare");
      assert.equal(await host.ask("append", { to: 60 }), 60);
      assert.equal(await host.ask("compact"), true);
      looked = await host.ask("look");
      assert.deepEqual([looked.count, looked.problems], [60, []]);
      assert.ok(looked.fates.summarized > 0, JSON.stringify(looked.fates));
      if (bucket) {
        const objects = await (await host.worker.getR2Bucket("BIG")).list();
        assert.ok(objects.objects.length > 0, "nothing big was in the bucket");
      }
      // The object ends and begins anew in the same process …
      await assert.rejects(host.ask("abort"), /aborted by the test/);
      assert.deepEqual(await host.ask("look"), looked);
    } finally {
      await host.dispose();
    }
    // … and in another.
    host = await start(name, { bucket });
    try {
      assert.deepEqual(await host.ask("look"), looked);
      assert.equal(await host.ask("append", { to: 64 }), 64);
      assert.deepEqual((await host.ask("look")).problems, []);
    } finally {
      await host.dispose();
    }
  });
}

test("P17: what a large result took of the memory of an isolate is given back, and its sessions go on", async () => {
  const host = await start("large");
  try {
    await host.ask("append", { to: 40 });
    const before = await host.ask("look");
    const { logged, ok, messages } = await host.ask("outgrow");
    assert.deepEqual(logged, ["The session goes on in a fresh engine: most of the memory of the other one was not used any more."]);
    assert.deepEqual([ok, messages], [true, 12]);
    assert.deepEqual(await host.ask("look"), before);
    await host.ask("prepare");
    assert.equal(await host.ask("append", { to: 60 }), 60);
    assert.equal(await host.ask("compact"), true);
    assert.deepEqual((await host.ask("look")).problems, []);
  } finally {
    await host.dispose();
  }
});

describe("two requests on one session", () => {
  test("both handles append at once: each message is there once, and a loser says so", async () => {
    const host = await start("two");
    try {
      await host.ask("append", { to: 4 });
      const together = ["one handle", "the other"].map((content) => ({ role: "user", content }));
      const outcomes = await host.ask("both", { together });
      for (const outcome of outcomes) assert.match(outcome, /^(written|conflict)$/);
      assert.ok(outcomes.includes("written"), outcomes.join());
      const { count, problems } = await host.ask("look");
      const written = together.filter((_, nth) => outcomes[nth] === "written");
      assert.equal(count, 4 + written.length);
      for (const { content } of written) assert.equal(problems.filter((problem) => problem.includes(content)).length, 1, content);
    } finally {
      await host.dispose();
    }
  });

  test("both handles compact at once: one wins, and the history is whole", async () => {
    const host = await start("both");
    try {
      await host.ask("append", { to: 60 });
      const outcomes = await host.ask("both");
      for (const outcome of outcomes) assert.match(outcome, /^(compacted|conflict)$/);
      assert.ok(outcomes.includes("compacted"), outcomes.join());
      const { count, fates, problems } = await host.ask("look");
      assert.deepEqual([count, problems], [60, []]);
      assert.ok(fates.summarized > 0);
    } finally {
      await host.dispose();
    }
  });

  test("requests at once to one object are all answered, and none is lost", async () => {
    const host = await start("many");
    try {
      const texts = Array.from({ length: 12 }, (_, nth) => `request ${nth}.`);
      await Promise.all(texts.map((content) => host.ask("say", { say: [{ role: "user", content }] })));
      const { count, problems } = await host.ask("look");
      assert.equal(count, texts.length);
      for (const text of texts) assert.equal(problems.filter((problem) => problem.includes(text)).length, 1, text);
    } finally {
      await host.dispose();
    }
  });
});

test(`killed ${kills} times during appends and compactions: what was acknowledged is there, whole`, async (t) => {
  t.diagnostic(`CC_SEED=${seed}`);
  let state = seed;
  const random = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
  let [acknowledged, compactions, stored] = [0, 0, 0];
  for (let kill = 0; kill <= kills; kill++) {
    const host = await start("killed");
    const { count, problems } = await host.ask("look");
    assert.deepEqual(problems, []);
    assert.ok(count >= acknowledged, `${acknowledged} were acknowledged, ${count} are stored`);
    assert.ok(count <= acknowledged + 1, `${count} are stored, but ${acknowledged} were sent and acknowledged`);
    acknowledged = stored = count;
    if (kill === kills) {
      await host.dispose();
      break;
    }
    const work = (async () => {
      for (;;) {
        acknowledged = await host.ask("append", { to: acknowledged + 1 });
        if (acknowledged % 7 === 0) await host.ask("prepare");
        if (acknowledged % 10 === 0 && (await host.ask("compact")) === true) compactions++;
      }
    })().catch(() => {});
    while (acknowledged < count + 8 + 12 * random()) await new Promise((resolve) => setTimeout(resolve, 5));
    await new Promise((resolve) => setTimeout(resolve, 120 * random()));
    await host.kill();
    await work;
  }
  t.diagnostic(`${kills} kills, ${stored} messages stored, ${compactions} compactions`);
  assert.ok(stored >= 8 * kills);
});
