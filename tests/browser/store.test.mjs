/** The IndexedDB store in real browsers: the suite that every store passes, and the faults of `storage` rows 1 and 7-10. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { launch, makeProfile, serve } from "../support/session.mjs";
import { bundle } from "../support/bundle.mjs";

const SQLITE = ["--enable-features=IdbSqliteBackingStore"];
/** Chromium stores in LevelDB now and in SQLite soon. */
const ENGINES = {
  chromium: { browser: "chrome", kills: 3 },
  "chromium-sqlite": { browser: "chrome", kills: 3, args: SQLITE },
  firefox: { browser: "firefox", kills: 2 },
};
/** Comma-separated names of engines; default all. */
const CHOSEN = process.env.CC_BROWSERS?.split(",") ?? Object.keys(ENGINES);

const PAGE = `<!doctype html><title>store</title><link rel="icon" href="data:,"><script type="module" src="/js/store.js"></script>`;

let folder, server;
const acknowledged = [];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "context-compactor-store-"));
  await bundle(`export * from "./tests/support/store-page.mjs";`, join(folder, "store.js"));
  server = await serve({
    "/": PAGE,
    "/js/": folder,
    "/ack": (body) => void acknowledged.push(Number(body)),
  });
});

after(async () => {
  await server?.close();
  if (folder) await rm(folder, { recursive: true });
});

/** Opens the test page and waits until `globalThis.stores` is there. */
async function openStores(session) {
  const { page, errors } = await session.openPage(`${server.origin}/`);
  await page.waitForFunction(() => "stores" in globalThis);
  return { page, errors };
}

for (const name of CHOSEN) {
  const { browser, args } = ENGINES[name];
  const kills = Number(process.env.CC_KILLS ?? ENGINES[name].kills);

  describe(name, () => {
    describe("in one run", () => {
      let session;
      before(async () => {
        session = await launch(browser, { args });
      });
      after(() => session?.close());

      test("passes the suite that every store passes", async (t) => {
        const { page, errors } = await openStores(session);
        const count = await page.evaluate(() => globalThis.stores.cases());
        assert.ok(count > 25);
        for (let i = 0; i < count; i++) {
          const { name, error, ms } = await page.evaluate((i) => globalThis.stores.runCase(i), i);
          await t.test(`${name} (${ms} ms)`, () => assert.equal(error, undefined));
        }
        assert.deepEqual(errors, []);
        await page.close();
      });

      test("passes the suite in a worker", async () => {
        const { page } = await openStores(session);
        assert.deepEqual(await page.evaluate(() => globalThis.stores.runAllInWorker("/js/store.js")), []);
        await page.close();
      });

      test("passes the suite encrypted", async () => {
        const { page } = await openStores(session);
        assert.deepEqual(await page.evaluate(() => globalThis.stores.runAllEncrypted()), []);
        await page.close();
      });

      test("a database is encrypted from its beginning or never: the other store is refused", async () => {
        const { page } = await openStores(session);
        for (const isEncrypted of [true, false]) {
          const mixed = (flag) => globalThis.stores.mixed(`mixed ${flag}`, flag);
          const { codes, count } = await page.evaluate(mixed, isEncrypted);
          assert.deepEqual(codes, ["invalid_option", "invalid_option"]);
          assert.equal(count, 1, "the database is what it was");
        }
        await page.close();
      });

      test("two pages, 100 increments each: none is lost", async () => {
        const pages = [await openStores(session), await openStores(session)];
        const name = "two-pages";
        const tries = await Promise.all(
          pages.map(({ page }) => page.evaluate((name) => globalThis.stores.increment(name, 100), name)),
        );
        assert.equal(await pages[0].page.evaluate((name) => globalThis.stores.count(name), name), 200);
        assert.ok(tries[0] + tries[1] > 200, "the pages never met: nothing was tested");
        for (const { page } of pages) await page.close();
      });

      test("D13: a row that the engine cannot read is damaged, and costs no other; a database that it cannot read is an error", async () => {
        const { page } = await openStores(session);
        const [read, found, some, few, left] = await page.evaluate(() => globalThis.stores.unreadable("rows"));
        const why = "the browser cannot read it (InvalidStateError)";
        const values = Array.from({ length: 10 }, (_, nth) => [nth, nth === 4 ? why : nth]);
        assert.deepEqual(read, [...values.map(([, value]) => value), "none"]);
        assert.deepEqual(found, values);
        assert.deepEqual(some, values.slice(3, 6));
        assert.deepEqual(few, values.slice(0, 7));
        assert.deepEqual(left, values.filter(([nth]) => nth !== 4));
        assert.deepEqual(await page.evaluate(() => globalThis.stores.unreadable("nothing", true)), ["store_unavailable", "store_unavailable"]);
        await page.close();
      });

      test("an upgrade by another page goes through, and the older page says what to do", async () => {
        const [old, newer] = [await openStores(session), await openStores(session)];
        await old.page.evaluate(() => globalThis.stores.increment("upgraded", 1));
        // A compatible release: the old page goes on.
        assert.equal(await newer.page.evaluate(() => globalThis.stores.upgrade("upgraded", 101)), "success");
        await old.page.evaluate(() => globalThis.stores.increment("upgraded", 1));
        assert.equal(await old.page.evaluate(() => globalThis.stores.count("upgraded")), 2);
        // An incompatible one.
        assert.equal(await newer.page.evaluate(() => globalThis.stores.upgrade("upgraded", 200)), "success");
        const refused = () => globalThis.stores.code(() => globalThis.stores.count("upgraded"));
        assert.equal(await old.page.evaluate(refused), "schema_too_new");
        for (const { page } of [old, newer]) await page.close();
      });

      test("a tab that never closes an older version: an error in seconds, not a hang", async () => {
        const [old, newer] = [await openStores(session), await openStores(session)];
        await old.page.evaluate(() => globalThis.stores.hold("held", 1));
        const started = Date.now();
        const refused = () => globalThis.stores.code(() => globalThis.stores.count("held"));
        assert.equal(await newer.page.evaluate(refused), "store_unavailable");
        assert.ok(Date.now() - started < 8_000);
        await old.page.close();
        assert.equal(await newer.page.evaluate(() => globalThis.stores.count("held")), 0);
        await newer.page.close();
      });

      test("a database deleted by another page: the store opens a new one", async () => {
        const [one, other] = [await openStores(session), await openStores(session)];
        await one.page.evaluate(() => globalThis.stores.increment("deleted", 3));
        assert.equal(await other.page.evaluate(() => globalThis.stores.remove("deleted")), "success");
        assert.equal(await one.page.evaluate(() => globalThis.stores.count("deleted")), 0);
        await one.page.evaluate(() => globalThis.stores.increment("deleted", 1));
        assert.equal(await one.page.evaluate(() => globalThis.stores.count("deleted")), 1);
        for (const { page } of [one, other]) await page.close();
      });

      test("a closed store rejects with `closed`", async () => {
        const { page } = await openStores(session);
        assert.equal(await page.evaluate(() => globalThis.stores.afterClose()), "closed");
        await page.close();
      });
    });

    test("no space: quota_exceeded, and what was stored stays", async () => {
      // Chromium takes an override for the origin, Firefox a limit in KB for all sites.
      const preferences = {
        "dom.quotaManager.temporaryStorage.fixedLimit": 6_000,
        "dom.quotaManager.testing": true,
      };
      const session = await launch(browser, { args, preferences });
      try {
        const { page } = await session.openPage("about:blank");
        if (browser === "chrome") {
          const cdp = await page.createCDPSession();
          await cdp.send("Storage.overrideQuotaForOrigin", {
            origin: `${server.origin}/`,
            quotaSize: 3_000_000,
          });
        }
        await page.goto(`${server.origin}/`);
        await page.waitForFunction(() => "stores" in globalThis);
        const { stored, code, intact, again } = await page.evaluate(() =>
          globalThis.stores.fill("full", 500_000, 40),
        );
        assert.equal(code, "quota_exceeded");
        assert.ok(stored >= 1);
        assert.ok(intact, "rows that were acknowledged differ");
        assert.ok(again, "no write after deleting");
      } finally {
        await session.close();
      }
    });

    test(
      "site data cleared during a run: connects again",
      { skip: browser !== "chrome" && "needs CDP" },
      async (t) => {
        const session = await launch(browser, { args });
        try {
          const { page } = await openStores(session);
          await page.evaluate(() => globalThis.stores.increment("cleared", 3));
          const cdp = await page.createCDPSession();
          const clear = { origin: server.origin, storageTypes: "all" };
          await cdp.send("Storage.clearDataForOrigin", clear);
          assert.equal(await page.evaluate(() => globalThis.stores.count("cleared")), 0);
          await page.evaluate(() => globalThis.stores.increment("cleared", 2));
          // And while commits are on their way: each settles, also those that the engine forgot.
          for (let round = 0; round < 8; round++) {
            const running = page.evaluate(() => globalThis.stores.settleMany("cleared", 200));
            if (round % 2) await new Promise((resolve) => setTimeout(resolve, 3 * round));
            await cdp.send("Storage.clearDataForOrigin", clear);
            const { settled, codes } = await running;
            assert.equal(settled, 200);
            for (const code of codes) assert.match(code, /^(ok|store_unavailable|indeterminate)$/);
            // A clearing that meets an open request can leave the page without IndexedDB altogether.
            if (!(await page.evaluate(() => globalThis.stores.answers(5_000)))) {
              t.diagnostic(`round ${round}: the engine answers this page no more`);
              assert.ok(codes.includes("store_unavailable"), codes.join());
              await page.reload();
              await page.waitForFunction(() => "stores" in globalThis);
            }
          }
          await page.evaluate(() => globalThis.stores.increment("cleared-after", 1));
          assert.equal(await page.evaluate(() => globalThis.stores.count("cleared-after")), 1);
        } finally {
          await session.close();
        }
      },
    );

    test(`killed ${kills} times during strict commits: what was acknowledged is there, whole`, async (t) => {
      const profile = await makeProfile();
      acknowledged.length = 0;
      let session;
      try {
        for (let kill = 0; kill <= kills; kill++) {
          session = await launch(browser, { args, profile });
          const { page } = await openStores(session);
          const { head, problem } = await page.evaluate(() => globalThis.stores.verifyLog("killed"));
          const last = acknowledged.at(-1) ?? 0;
          assert.equal(problem, undefined);
          assert.ok(head >= last, `${last} was acknowledged, ${head} are stored`);
          if (kill === kills) {
            t.diagnostic(`${kills} kills, ${acknowledged.length} acknowledged commits, ${head} stored`);
            break;
          }
          page.evaluate(() => globalThis.stores.appendForEver("killed")).catch(() => {});
          const before = acknowledged.length;
          while (acknowledged.length < before + 15) await new Promise((resolve) => setTimeout(resolve, 20));
          await new Promise((resolve) => setTimeout(resolve, Math.random() * 300));
          await session.kill();
        }
      } finally {
        await session?.close();
        await profile.remove();
      }
    });
  });
}
