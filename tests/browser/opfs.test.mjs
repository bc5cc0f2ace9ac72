/** Stores in the private file system of an origin, and as copies of a database (D23): suites, damage, kills, tabs, and where there is none. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { openSession } from "context-compactor";
import { fileStore } from "context-compactor/node";
import { browsers } from "../support/browser.mjs";
import { missing, startEngine } from "../support/engines.mjs";
import { Pairs, said } from "../support/pairs.mjs";
import { launch, makeProfile, serve } from "../support/session.mjs";
import { call as callInPage, callInWorker as call, ready } from "../support/session-server.mjs";

const KILLS = Number(process.env.CC_KILLS ?? 3);
const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
/** What an app has: a page, and a worker of its own. */
const IMPORTS = { imports: { "context-compactor": "/pkg/dist/entry/main.js", "context-compactor/worker": "/pkg/dist/entry/worker.js" } };
const APP = `<!doctype html><title>app</title><link rel="icon" href="data:,"><script type="importmap">${JSON.stringify(IMPORTS)}</script>
  <script type="module">
    import { openSession } from "context-compactor/worker";
    const worker = new Worker("/thread/thread.js", { type: "module" });
    globalThis.sessions = {
      async say(id, ...texts) {
        const session = await openSession({ id, worker, contextWindow: 32_000 });
        for (const content of texts) await session.append({ role: "user", content });
        const { messages } = await session.prepare();
        const found = { durability: session.archive.durability, texts: messages.map(({ content }) => content) };
        await session.close();
        return found;
      },
    };
  </script>`;
/** The program of the page about threads, at the addresses of this server. */
const [, PROGRAM] = /```js thread\n([^]*?)```/.exec(readFileSync(at("docs/threads.md"), "utf8"));
const THREAD = PROGRAM.replace('"context-compactor"', '"/pkg/dist/entry/main.js"').replace('"context-compactor/worker-thread"', '"/pkg/dist/entry/worker-thread.js"');

const pairs = new Pairs(call);
let app, folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "context-compactor-opfs-"));
  await writeFile(join(folder, "thread.js"), THREAD);
  await pairs.serve("opfs-page.mjs");
  app = await serve({ "/": APP, "/pkg/": at("pkg"), "/thread/": folder });
});
after(async () => {
  await pairs.close();
  await app?.close();
  if (folder) await rm(folder, { recursive: true });
});

test("D23: WebKitGTK has no such files, and it says so", { skip: missing("webkitgtk") }, async () => {
  const profile = await makeProfile();
  const engine = await startEngine("webkitgtk", { profile });
  try {
    const page = await pairs.pages.openPage(engine);
    assert.match(await callInPage(page, "inWorker", "refusal", {}), /^store_unavailable: opfsStore: this browser has no private file system .*WebKitGTK.*indexedDbStore\(\) alone$/);
  } finally {
    await engine.close();
    await profile.remove();
  }
});

for (const name of browsers) {
  describe(name, () => {
    let session, page;
    before(async () => {
      session = await launch(name);
      page = await pairs.pages.openPage(session);
    });
    after(() => session?.close());

    for (const [kind, what] of [["opfs", "a store of files"], ["pair", "files and a database"], ["turned", "a database and files"]]) {
      test(`D23: ${what} in a worker: the suite that every store passes`, (t) => pairs.checkSuite(t, page, kind));
    }

    for (const [nth, copy] of ["files", "database"].entries()) {
      test(`D23: of files and a database, the ${copy}: damaged table by table, then removed: all of it comes back, and it is told`, () => pairs.checkHurt(page, `hurt ${nth}`, nth));
    }

    for (const [kind, what] of [["pair", "files and a database"], ["turned", "a database and files"], ["small", "files that are written anew all the time"]]) {
      test(`D23: two tabs append to ${what}: each message is there once, in its tab's order`, async (t) => {
        const tabs = [page, await pairs.pages.openPage(session)];
        const shared = `shared ${kind}`;
        await pairs.checkTabs(t, tabs, shared, kind, 30);
        if (kind !== "small") await pairs.checkSame(page, shared);
        else assert.ok(!(await call(page, "files", shared)).includes("journal-000000000001"), "it was never written anew");
        await tabs[1].close();
      });
    }

    test(`D23: killed ${KILLS} times over files and a database, of which one is removed then: acknowledged is stored`, (t) => pairs.checkKills(t, name, KILLS));

    test("D23: a tab that is closed while it appends stops nobody, and what it was told of is there", async () => {
      const other = await pairs.pages.openPage(session);
      for (const tab of [page, other]) await call(tab, "open", "left", "pair");
      pairs.acknowledged = 0;
      call(other, "exchanges", "left", 0, 1_000).catch(() => {});
      while (pairs.acknowledged < 3) await new Promise((resolve) => setTimeout(resolve, 10));
      await other.close();
      await call(page, "texts", "left", ["still here"]);
      const { history, lost, ok } = await pairs.look(page, "left");
      assert.deepEqual([lost, ok, history.at(-1).content], [0, true, "still here"]);
      assert.ok(history.length > 4 * pairs.acknowledged, `${history.length} of ${pairs.acknowledged}`);
      assert.deepEqual(history.slice(0, -1), said((history.length - 1) >> 2));
      await call(page, "close", "left");
      await pairs.checkSame(page, "left");
    });

    test("D23: a database that has sessions gets files as its copy", async () => {
      await call(page, "open", "grown", "database");
      await call(page, "exchanges", "grown", 0, 3);
      await call(page, "close", "grown");
      await call(page, "open", "grown");
      await call(page, "exchanges", "grown", 3, 1);
      const { history, lost, ok } = await pairs.look(page, "grown");
      assert.deepEqual([history, lost, ok], [said(4), 0, true]);
      await call(page, "close", "grown");
      await pairs.checkSame(page, "grown");
    });

    test("D23: the files are those of `fileStore`, which goes on with them, and its files are theirs", async (context) => {
      await call(page, "open", "moved", "opfs");
      await call(page, "exchanges", "moved", 0, 3);
      await call(page, "close", "moved");
      const directory = await mkdtemp(join(tmpdir(), "context-compactor-opfs-"));
      context.after(() => rm(directory, { recursive: true }));
      for (const [file, text] of Object.entries(await call(page, "bytes", "moved"))) await writeFile(join(directory, file), text, "latin1");
      const store = fileStore(directory);
      const opened = await openSession({ id: "s", store, contextWindow: 32_000 });
      const history = [];
      for await (const message of opened.archive.history()) history.push(message);
      assert.deepEqual(history, said(3));
      await opened.append({ role: "user", content: "on a disk 😀" });
      await store.close();
      for (const file of await readdir(directory)) await call(page, "put", "moved", file, (await readFile(join(directory, file))).toString("latin1"));
      await call(page, "open", "moved", "opfs");
      const found = await pairs.look(page, "moved");
      assert.deepEqual([found.history, found.told], [[...said(3), { role: "user", content: "on a disk 😀" }], []]);
      await call(page, "close", "moved");
    });

    test("D23: a damaged value costs its message, and `salvage` has the others", async () => {
      await call(page, "open", "alone", "opfs");
      await call(page, "texts", "alone", ["one", "two", "three"]);
      await call(page, "close", "alone");
      assert.ok((await call(page, "damageTable", "alone", 0, "log")) >= 3);
      const [{ id, gaps }] = await call(page, "salvage", "alone");
      assert.deepEqual([id, gaps > 0], ["s", true]);
      await call(page, "open", "alone", "opfs");
      await call(page, "texts", "alone", ["four"]);
      const { history, told } = await pairs.look(page, "alone");
      assert.deepEqual(history, [{ role: "user", content: "four" }]);
      assert.ok(told.length > 0);
      await call(page, "close", "alone");
    });

    test("D17: another tab has the files: `store_unavailable` in time, and the next append works", async () => {
      const other = await pairs.pages.openPage(session);
      await call(page, "open", "held", "opfs");
      await call(page, "texts", "held", ["before"]);
      await call(other, "hold", "held");
      const begun = Date.now();
      assert.equal(await call(page, "codeOfAppend", "held", "meanwhile"), "store_unavailable");
      assert.ok(Date.now() - begun < 45_000, `${Date.now() - begun} ms`);
      await call(other, "letGo");
      assert.equal(await call(page, "codeOfAppend", "held", "after"), "ok");
      const { history } = await pairs.look(page, "held");
      assert.deepEqual(history.map(({ content }) => content), ["before", "after"]);
      await call(page, "close", "held");
      await other.close();
    });

    test("D23: closed, removed while open, and names that are none", async () => {
      assert.deepEqual(await call(page, "ends", "ended"), ["closed", "store_unavailable", "store_unavailable", "ok", 1]);
      for (const name of ["", ".", "..", "a/b", "a\\b", "\0"]) assert.match(await call(page, "refusal", { name }), /^invalid_option: name: /);
      assert.match(await call(page, "refusal", { durability: "lax" }), /^invalid_option: durability: /);
      assert.match(await call(page, "refusal", { directory: "a" }), /^invalid_option: directory: /);
      assert.equal(await call(page, "refusal", { name: "数据 😀" }), "ok");
    });

    test("D23: no page and no shared worker can use them, and it says so", async () => {
      const inPage = (script) => page.evaluate(script);
      assert.match(await inPage(`sessions.refusal({ name: "page" })`), /^store_unavailable: opfsStore: only a dedicated worker/);
      const inShared = `new Promise((resolve, reject) => {
        const { port } = new SharedWorker("/js/sessions.js", { type: "module" });
        port.onmessage = ({ data: { value, error } }) => (error ? reject(new Error(error)) : resolve(value));
        port.postMessage({ step: "refusal", args: [{ name: "shared" }] });
      })`;
      assert.match(await inPage(inShared), /^store_unavailable: opfsStore: only a dedicated worker/);
    });

    test("no space: quota_exceeded, and what was stored stays", async () => {
      const preferences = { "dom.quotaManager.temporaryStorage.fixedLimit": 6_000, "dom.quotaManager.testing": true };
      const small = await launch(name, { preferences });
      try {
        const tab = await pairs.pages.openPage(small);
        if (name === "chrome") {
          const cdp = await tab.createCDPSession();
          await cdp.send("Storage.overrideQuotaForOrigin", { origin: pairs.pages.origin, quotaSize: 3_000_000 });
        }
        const { stored, refusal, read, intact } = await call(tab, "fill", "full", 1_000_000, 200);
        assert.equal(refusal, "quota_exceeded");
        assert.ok(stored > 2, `${stored} stored`);
        assert.deepEqual([read, intact], [stored, stored]);
      } finally {
        await small.close();
      }
    });

    test("D23: an append to files and a database takes little longer than to one of them", async (t) => {
      const ms = await call(page, "times", 40, "Line 42 of src/parser.rs fails with E0502. ".repeat(20));
      t.diagnostic(Object.entries(ms).map(([kind, ms]) => `${kind} ${ms.toFixed(1)} ms`).join(", "));
      const ratio = ms.pair / Math.max(ms.database, ms.opfs);
      t.diagnostic(`${ratio.toFixed(2)} times one copy`);
      if (process.env.CC_TURNS !== undefined) assert.ok(ratio <= 1.5, `${ratio}`);
    });

    test("D23: a worker of the app keeps its sessions in files and a database", async () => {
      const { page } = await session.openPage(`${app.origin}/`);
      await ready(page);
      const say = (...args) => page.evaluate((args) => globalThis.sessions.say(...args), args);
      assert.deepEqual(await say("chat", "one", "two"), { durability: "synced", texts: ["one", "two"] });
      await page.evaluate(() => new Promise((resolve, reject) => {
        const request = indexedDB.deleteDatabase("context-compactor");
        request.onsuccess = () => resolve();
        request.onerror = () => reject(request.error);
      }));
      await page.reload();
      await ready(page);
      assert.deepEqual(await say("chat", "three"), { durability: "synced", texts: ["one", "two", "three"] });
      await page.close();
    });
  });
}
