/** Two databases of a browser as copies of each other: one is damaged, removed, or behind after a kill (D23). */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { exchange } from "../support/api.mjs";
import { browsers } from "../support/browser.mjs";
import { launch, makeProfile } from "../support/session.mjs";
import { call, ready, serveSessions } from "../support/session-server.mjs";

const KILLS = Number(process.env.CC_KILLS ?? 3);
const TABLES = ["meta", "sessions", "log", "blobs", "views", "jobs"];

let acknowledged = 0;
let pages;
before(async () => {
  const told = { "/acknowledged": (nth) => ((acknowledged = nth + 1), null) };
  pages = await serveSessions(told, "mirror-page.mjs");
});
after(() => pages?.close());

const said = (count) => Array.from({ length: count }, (_, nth) => exchange(nth, 9_000)).flat();

const look = async (page, pair) => JSON.parse(await call(page, "look", pair));

/** Both databases are alike, row by row. */
async function checkSame(page, pair) {
  const { rows, differing } = await call(page, "differing", pair);
  assert.ok(rows > 0, "no rows");
  assert.deepEqual(differing, []);
}

for (const name of browsers) {
  describe(name, () => {
    let session, page;
    before(async () => {
      session = await launch(name);
      page = await pages.openPage(session);
    });
    after(() => session?.close());

    test("D23: two databases pass the suite that every store passes", async (t) => {
      const count = await call(page, "cases");
      assert.ok(count > 25);
      for (let i = 0; i < count; i++) {
        const { name, error } = await call(page, "runCase", i);
        await t.test(name, () => assert.equal(error, undefined));
      }
    });

    for (const [at, copy] of ["first", "second"].entries()) {
      test(`D23: the ${copy} database is damaged table by table, then removed: all of it comes back, and it is told`, async () => {
        const pair = `${copy} hurt`;
        await call(page, "openPair", pair);
        await call(page, "exchanges", pair, 0, 4);
        assert.equal(await call(page, "compactPair", pair), true);
        await call(page, "exchanges", pair, 4, 1);
        const whole = await look(page, pair);
        assert.deepEqual([whole.history, whole.lost, whole.told, whole.ok], [said(5), 0, [], true]);
        await call(page, "closePair", pair);
        await checkSame(page, pair);

        const hurts = TABLES.map((table) => [table, () => call(page, "damageTable", pair, at, table)]);
        hurts.push(["all of it", () => call(page, "removeDatabase", pair, at)]);
        let damaged = 0;
        for (const [what, hurt] of hurts) {
          if ((await hurt()) === 0) continue;
          damaged++;
          await page.reload();
          await ready(page);
          await call(page, "openPair", pair);
          const { told, ...found } = await look(page, pair);
          assert.deepEqual(found, { history: whole.history, prepared: whole.prepared, lost: 0, ok: true }, what);
          assert.ok(told.length > 0 && told.every(({ kind }) => kind === "repaired"), `${what}: ${JSON.stringify(told)}`);
          await call(page, "closePair", pair);
          await checkSame(page, pair);
        }
        assert.ok(damaged >= 6, `${damaged} kinds of damage`);
        await call(page, "openPair", pair);
        await call(page, "exchanges", pair, 5, 1);
        const { history, told } = await look(page, pair);
        assert.deepEqual([history, told], [said(6), []]);
        await call(page, "closePair", pair);
        await checkSame(page, pair);
      });
    }

    test("D23: two tabs append over one pair of databases: each message is in both once, in its tab's order", async () => {
      const tabs = [page, await pages.openPage(session)];
      const texts = ["left", "right"].map((from) => Array.from({ length: 20 }, (_, nth) => `${from} ${nth}`));
      for (const tab of tabs) await call(tab, "openPair", "shared");
      await Promise.all(tabs.map((tab, at) => call(tab, "texts", "shared", texts[at])));
      const { history, lost, told, ok } = await look(page, "shared");
      assert.deepEqual([lost, told, ok], [0, [], true]);
      const found = history.map(({ content }) => content);
      for (const own of texts) assert.deepEqual(found.filter((text) => own.includes(text)), own);
      assert.equal(found.length, 40);
      for (const tab of tabs) await call(tab, "closePair", "shared");
      await checkSame(page, "shared");
      await tabs[1].close();
    });

    test(`D23: killed ${KILLS} times over two databases, of which one is removed then: acknowledged is stored`, async (t) => {
      const profile = await makeProfile();
      let [running, stored] = [undefined, 0];
      try {
        for (let kill = 0; kill <= KILLS; kill++) {
          running = await launch(name, { profile });
          const tab = await pages.openPage(running);
          if (kill > 0) await call(tab, "removeDatabase", "killed", kill % 2);
          await call(tab, "openPair", "killed");
          const { history, lost, told, ok } = await look(tab, "killed");
          assert.deepEqual([lost, ok], [0, true]);
          assert.deepEqual(history, said(history.length >> 2));
          const least = acknowledged > stored ? acknowledged : stored;
          assert.ok(kill === 0 || (history.length >> 2 >= least && history.length >> 2 <= least + 1), `${history.length >> 2} of ${least}`);
          assert.deepEqual(told.map(({ kind }) => kind), kill > 0 ? ["repaired"] : []);
          stored = history.length >> 2;
          if (kill === KILLS) break;
          call(tab, "exchanges", "killed", stored, 1_000).catch(() => {});
          acknowledged = 0;
          while (acknowledged < stored + 3) await new Promise((resolve) => setTimeout(resolve, 10));
          await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
          await running.kill();
        }
        t.diagnostic(`${KILLS} kills, ${stored} exchanges stored`);
      } finally {
        await running?.close();
        await profile.remove();
      }
    });
  });
}
