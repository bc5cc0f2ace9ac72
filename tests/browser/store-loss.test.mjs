/** What is on disk, and what the store says when it is not there any more (storage rows 9 and 12, S7). */

import assert from "node:assert/strict";
import { appendFile, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { bundle } from "../support/bundle.mjs";
import { launch, makeProfile, serve, until } from "../support/session.mjs";

const ENGINES = {
  chromium: { browser: "chrome", data: "Default/IndexedDB" },
  "chromium-sqlite": { browser: "chrome", data: "Default/IndexedDB", args: ["--enable-features=IdbSqliteBackingStore"] },
  firefox: { browser: "firefox", data: "storage/default" },
};
const CHOSEN = process.env.CC_BROWSERS?.split(",") ?? Object.keys(ENGINES);
const PAGE = `<!doctype html><title>store</title><link rel="icon" href="data:,"><script type="module" src="/js/store.js"></script>`;

let folder, server;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "context-compactor-store-"));
  await bundle(`export * from "./tests/support/store-page.mjs";`, join(folder, "store.js"));
  server = await serve({ "/": PAGE, "/js/": folder });
});
after(async () => {
  await server?.close();
  if (folder) await rm(folder, { recursive: true });
});

/** All files under a folder. */
async function files(path) {
  const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

async function holds(path, words) {
  for (const file of await files(path)) if ((await readFile(file)).includes(words)) return true;
  return false;
}

for (const name of CHOSEN) {
  const { browser, data, args } = ENGINES[name];

  describe(name, () => {
    let profile;
    before(async () => (profile = await makeProfile()));
    after(() => profile?.remove());

    /** Runs steps in a page of a browser that ends in good order. */
    async function run(steps) {
      const session = await launch(browser, { args, profile });
      try {
        const { page } = await session.openPage(`${server.origin}/`);
        await page.waitForFunction(() => "stores" in globalThis);
        const call = (step, ...values) =>
          page.evaluate((step, values) => globalThis.stores[step](...values), step, values);
        return await steps(call, page);
      } finally {
        await session.close();
      }
    }

    test("S7: the files of an encrypted database do not hold what was said; another run reads it, with its key", async () => {
      const [inTheClear, encrypted] = ["in-the-clear-pelican", "encrypted-heron-4711"];
      await run(async (call) => {
        await call("write", "clear", inTheClear);
        await call("write", "sealed", encrypted, ["a"]);
      });
      assert.ok(await holds(join(profile.path, data), inTheClear), "what is in the clear is not found either: nothing was tested");
      assert.ok(!(await holds(profile.path, encrypted)));
      await run(async (call) => {
        assert.deepEqual(await call("written", "sealed", ["a"]), Array(3).fill(encrypted));
        assert.equal(await call("written", "sealed", ["b"]), "invalid_option");
        assert.equal(await call("written", "sealed"), "invalid_option");
        assert.deepEqual(await call("written", "sealed", ["b", "a"]), Array(3).fill(encrypted), "rotated");
        assert.deepEqual(await call("written", "sealed", ["b"]), Array(3).fill(encrypted));
        assert.equal(await call("written", "sealed", ["a"]), "invalid_option");
      });
    });

    test("row 12: a database that is there is not told as lost", async () => {
      for (let nth = 0; nth < 2; nth++) {
        await run(async (call) => {
          await call("increment", "here", 1);
          assert.equal(await call("dataLoss", "here"), null);
          assert.equal(await call("dataLoss", "here", true), null);
          assert.equal(await call("count", "here"), nth + 1);
        });
      }
    });

    const damages = {
      "its files are gone": async () => {
        for (const path of await files(join(profile.path, data))) {
          // Firefox keeps what else the site stored beside them.
          if (browser === "chrome" || path.includes(`${"/"}idb/`)) await rm(path, { force: true });
        }
      },
    };
    if (name === "chromium") {
      damages["its MANIFEST is overwritten"] = async () => {
        const found = (await files(join(profile.path, data))).filter((path) => path.includes("MANIFEST"));
        assert.ok(found.length > 0);
        for (const path of found) await writeFile(path, "this is no manifest".repeat(20));
      };
    }
    if (name === "chromium-sqlite") {
      damages["its file is cut off"] = async () => {
        for (const path of await files(join(profile.path, data))) await truncate(path, 0);
      };
    }
    for (const [what, damage] of Object.entries(damages)) {
      test(`row 12: ${what}: the store says so until somebody asked, and goes on empty`, async () => {
        await run((call) => call("increment", "kept", 3));
        await damage();
        await run(async (call) => assert.equal(await call("count", "kept"), 0));
        await run(async (call) => {
          assert.equal(await call("count", "kept"), 0);
          const why = await call("dataLoss", "kept");
          assert.match(why, /database "kept" (damaged|was gone|was replaced)/);
          assert.equal(await call("dataLoss", "kept"), why, "for as long as the store is open");
          assert.equal(await call("dataLoss", "kept", true), null, "it was told");
          await call("increment", "kept", 1);
        });
        await run(async (call) => {
          assert.equal(await call("dataLoss", "kept"), null);
          assert.equal(await call("count", "kept"), 1);
        });
      });
    }

    // Behind what is left of a record, the engine finds nothing or damage, by what that record's header says.
    for (const length of name === "chromium" ? [100, 60_000] : []) {
      test(`row 1: a kill in the midst of a record of ${length} bytes: what is written in the next run stays`, async () => {
        const database = `torn-${length}`;
        const logs = async () => (await files(join(profile.path, data))).filter((path) => path.endsWith(".log"));
        await run((call) => call("increment", database, 3));
        const torn = await logs();
        assert.ok(torn.length > 0);
        // Its checksum, its length, that it is whole, and three of its bytes.
        for (const path of torn) await appendFile(path, Buffer.from([1, 2, 3, 4, length & 0xff, length >> 8, 1, 7, 7, 7]));
        await run(async (call) => {
          await call("increment", database, 3);
          await until("another log is begun", async () => !(await logs()).some((path) => torn.includes(path)));
        });
        await run(async (call) => {
          assert.equal(await call("count", database), 6);
          assert.equal(await call("dataLoss", database), null);
        });
      });
    }

    test("row 9: site data cleared during a run: the store that had them says so", { skip: browser !== "chrome" && "needs CDP" }, async () => {
      await run(async (call, page) => {
        await call("increment", "cleared", 2);
        assert.equal(await call("dataLoss", "cleared"), null);
        const cdp = await page.createCDPSession();
        const losses = new Set();
        for (let nth = 0; nth < 2; nth++) {
          await cdp.send("Storage.clearDataForOrigin", { origin: server.origin, storageTypes: "all" });
          assert.equal(await call("count", "cleared"), 0);
          losses.add(await call("dataLoss", "cleared"));
          await call("increment", "cleared", 1);
        }
        assert.equal(losses.size, 2, "each loss is told in words of its own");
        for (const why of losses) assert.match(why, /database "cleared" was gone/);
      });
    });
  });
}
