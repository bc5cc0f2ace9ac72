/** Sessions in browsers that store nothing, or have no space left (storage rows 7 and 20). */

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { browsers } from "../support/browser.mjs";
import { launch, makeProfile } from "../support/session.mjs";
import { call, ready, serveSessions } from "../support/session-server.mjs";

const IN_MEMORY = { durable: "none", told: [["store_unavailable", "none"]] };
const ON_DISK = { durable: "synced", told: [] };

let pages;
before(async () => (pages = await serveSessions({})));
after(() => pages?.close());

/** A browser that forbids its sites to store anything, by the user's settings. */
async function withSiteDataBlocked(name, work) {
  const profile = await makeProfile();
  try {
    if (name === "chrome") {
      const blocked = { profile: { default_content_setting_values: { cookies: 2 } } };
      await mkdir(join(profile.path, "Default"), { recursive: true });
      await writeFile(join(profile.path, "Default/Preferences"), JSON.stringify(blocked));
    }
    const session = await launch(name, { profile, preferences: { "network.cookie.cookieBehavior": 2 } });
    await work(session).finally(() => session.close());
  } finally {
    await profile.remove();
  }
}

/** A life in memory: it works, says what it is, and ends with the page. */
async function livesInMemory(page) {
  assert.equal(await call(page, "codeOfOpening", "fleeting"), "ok");
  assert.deepEqual(await call(page, "durable", "fleeting"), IN_MEMORY);
  await call(page, "say", "fleeting", ["hello"]);
  assert.equal((await call(page, "seen", "fleeting")).messages.length, 1);
  assert.equal(await call(page, "codeOfOpeningOwn", "own"), "store_unavailable", "a store that was passed never falls back");
  await page.reload();
  await ready(page);
  assert.deepEqual((await call(page, "view", "fleeting")).messages, []);
}

for (const name of browsers) {
  describe(name, () => {
    let session;
    before(async () => (session = await launch(name)));
    after(() => session?.close());

    test("row 20: site data are forbidden: memory, and it says so", async () => {
      await withSiteDataBlocked(name, async (session) => livesInMemory(await pages.openPage(session)));
    });

    test("row 20: without IndexedDB: memory, and it says so", async () => {
      const page = await pages.openPage(session);
      await call(page, "hideIndexedDb");
      await livesInMemory(page);
      await page.close();
    });

    test("lesson: browser storage: an IndexedDB that fails is an error, not a silent fallback to memory", async () => {
      const page = await pages.openPage(session);
      assert.equal(await call(page, "codeOfOpening", "there"), "ok");
      await call(page, "failIndexedDb");
      assert.equal(await call(page, "codeOfOpening", "there"), "store_unavailable");
      await page.close();
    });

    // No page can tell: what the window promises is what it keeps, as long as it is open.
    test("row 20: in a private window a session works, and outlives a reload", async () => {
      const window = name === "chrome" ? session : await launch(name, { preferences: { "browser.privatebrowsing.autostart": true } });
      try {
        const context = await window.browser.createBrowserContext();
        const openPage = async (url) => {
          const page = await context.newPage();
          await page.goto(url);
          return { page };
        };
        const page = await pages.openPage({ openPage });
        assert.equal(await call(page, "codeOfOpening", "private"), "ok");
        assert.deepEqual(await call(page, "durable", "private"), ON_DISK);
        await call(page, "say", "private", ["hello"]);
        await page.reload();
        await ready(page);
        assert.equal((await call(page, "view", "private")).messages.length, 1);
        await context.close();
      } finally {
        if (window !== session) await window.close();
      }
    });

    test("row 20: persist() that stays pending is asked for once, and nothing waits for it", async () => {
      const page = await pages.openPage(session);
      assert.equal(await call(page, "usePersisted", "persisted", 3), 1);
      await page.close();
    });

    for (const { what, answers, opened, used } of [
      {
        what: "what the browser may remove is warned of, once and after the first append",
        answers: { before: false, answer: false },
        opened: { persisted: false, warnings: [] },
        used: { persisted: false, warnings: ["not_persisted"], asked: 1 },
      },
      {
        what: "a browser that agrees is believed",
        answers: { before: false, answer: true },
        opened: { persisted: false, warnings: [] },
        used: { persisted: true, warnings: [], asked: 1 },
      },
      {
        what: "an app that asks by itself is told all the same",
        answers: { before: false, answer: true, persist: false },
        opened: { persisted: false, warnings: [] },
        used: { persisted: false, warnings: ["not_persisted"], asked: 0 },
      },
    ]) {
      test(`D19: ${what}`, async () => {
        const page = await pages.openPage(session);
        assert.deepEqual(await call(page, "persistence", `persistence ${what}`, answers), { opened, used });
        await page.close();
      });
    }

    test("row 7: no space left: the app deletes a session and goes on; what was acknowledged is there", async () => {
      const preferences = { "dom.quotaManager.temporaryStorage.fixedLimit": 6_000, "dom.quotaManager.testing": true };
      const small = await launch(name, { preferences });
      try {
        const page = await pages.openPage({
          async openPage(url) {
            const { page } = await small.openPage("about:blank");
            if (name === "chrome") {
              const cdp = await page.createCDPSession();
              const origin = new URL("/", url).href;
              await cdp.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 4_000_000 });
            }
            await page.goto(url);
            return { page };
          },
        });
        const { acknowledged, intact, ...how } = await call(page, "fillAndFree", "kept", "filler", 400_000, 40);
        assert.deepEqual(how, { refusal: "quota_exceeded", read: true, deleted: "ok", again: "ok" });
        assert.ok(acknowledged >= 2);
        assert.equal(intact, acknowledged);
      } finally {
        await small.close();
      }
    });
  });
}
