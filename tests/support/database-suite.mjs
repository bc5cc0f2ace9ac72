/** What every store on a database must stand: the suite of stores, a fault at every call, kills, and several processes. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { openSession } from "context-compactor";
import { storeConformance } from "context-compactor/testing";
import { placesOn, placesOnOne } from "./databases.mjs";
import { failpoints } from "./failpoints.mjs";
import { killProcess } from "./kills-node.mjs";
import * as library from "./offload.mjs";

const CHILD = fileURLToPath(new URL("databases-child.mjs", import.meta.url));
const kills = Number(process.env.CC_KILLS ?? 6);
const seed = Number(process.env.CC_KILLS_SEED ?? Date.now() % 1_000_000);

/** A place for each check, removed after it. */
export function conformance(name, make) {
  describe(`${name}: conformance`, () => {
    const places = [];
    const fresh = async () => {
      places.push(await make());
      return places.at(-1).open();
    };
    for (const { name, run } of storeConformance(fresh)) {
      test(name, async () => {
        try {
          await run();
        } finally {
          await Promise.all(places.splice(0).map(({ remove }) => remove()));
        }
      });
    }
  });
}

/** `at()` is where the server of `client` is, once it runs; `server()` that which is killed; `quick` the client that syncs
 *  less, for faults that are no kills. */
export function durability(client, { at, server = () => undefined, quick = client, execPath = process.execPath }) {
  const make = () => placesOn(client, at())();

  test(`${client}: every operation survives a fault at every commit`, async (t) => {
    const shared = await placesOnOne(quick, at());
    const { counts, problems } = await failpoints({ library, make: shared.make, methods: ["commit"] });
    await shared.close();
    t.diagnostic(`count ${JSON.stringify({ check: "failpoints", of: client, ...counts })}`);
    assert.deepEqual(problems, []);
    assert.ok(counts.crashes > 20 && counts.failures > 20);
  });

  test(`${client}: killed processes and servers have lost nothing that was acknowledged`, async (t) => {
    const sum = await killProcess(client, { kills, seed, make, server: server(), execPath });
    const counts = sum.counts();
    t.diagnostic(`count ${JSON.stringify(counts)}`);
    assert.deepEqual(sum.problems, [], `CC_KILLS_SEED=${seed} repeats it`);
    assert.equal(counts.kills, kills);
  });

  test(`${client}: four processes append 500 messages each to one session`, async () => {
    const { where, open, remove } = await make();
    try {
      const names = ["a", "b", "c", "d"];
      const child = (name) => promisify(execFile)(execPath, [CHILD, JSON.stringify({ where, id: "chat", name, count: 500 })]);
      await Promise.all(names.map(child));
      const session = await openSession({ id: "chat", store: open(), contextWindow: 32_000 });
      const found = [];
      for await (const { content } of session.archive.history()) found.push(content);
      assert.equal(found.length, 2_000);
      for (const name of names) {
        const own = found.filter((content) => content.startsWith(name));
        assert.deepEqual(own, Array.from({ length: 500 }, (_, at) => `${name} ${at}`));
      }
      assert.deepEqual(await session.archive.verify(), { ok: true, problems: [] });
      await session.close();
    } finally {
      await remove();
    }
  });
}
