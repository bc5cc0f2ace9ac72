/** Sessions whose engine runs in a worker of the page, of the app, or of all tabs (P15). */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { browsers } from "../support/browser.mjs";
import { launch, serve } from "../support/session.mjs";
import { call, ready } from "../support/session-server.mjs";

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const IMPORTS = { imports: { "context-compactor/": "/pkg/dist/entry/", "context-compactor/worker": "/pkg/dist/entry/worker.js" } };
/** The modules as they are, as a server without a bundler has them. */
const page = (policy = "") =>
  `<!doctype html><title>worker</title><link rel="icon" href="data:,">${policy}
  <script type="importmap">${JSON.stringify(IMPORTS)}</script><script type="module" src="/tests/worker-page.mjs"></script>`;
const POLICY = `<meta http-equiv="Content-Security-Policy" content="worker-src 'none'">`;

/** With it waits and the longest task of the page are held to their bounds, which only an idle machine keeps. */
const measured = process.env.CC_TURNS !== undefined;
const APPENDS = measured ? 500 : 100;

const KINDS = { "worker of the package": "default", "worker of the app": "own", "shared worker": "shared" };

let server, folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "context-compactor-thread-"));
  await writeFile(join(folder, "thread.js"), 'import { serve } from "/pkg/dist/entry/worker-thread.js";\nserve();\n');
  server = await serve({ "/": page(), "/forbidden": page(POLICY), "/pkg/": at("pkg"), "/tests/": at("tests/support"), "/thread/": folder });
});
after(async () => {
  await server?.close();
  if (folder) await rm(folder, { recursive: true });
});

async function openPage(session, path = "/") {
  const { page } = await session.openPage(`${server.origin}${path}`);
  await ready(page);
  return page;
}

for (const name of browsers) {
  describe(name, () => {
    let session;
    before(async () => (session = await launch(name)));
    after(() => session?.close());

    for (const [where, kind] of Object.entries(KINDS)) {
      test(`P15: a session in a ${where}, from its beginning to its deletion`, async () => {
        const page = await openPage(session);
        const id = `life in a ${where}`;
        assert.equal(await call(page, "open", id, kind), "synced");
        const said = await call(page, "exchange", id, 20, 2_000);
        assert.ok(said.offloaded > 0, JSON.stringify(said));
        assert.equal(said.own, said.total - said.offloaded, "all but those with references are the page's own");
        assert.ok((await call(page, "texts", id)).every((text) => text.includes("😀")));
        const compacted = await call(page, "compact", id);
        assert.deepEqual([compacted.success, compacted.checkpoints], [true, 1], compacted.code);
        assert.ok((await call(page, "databases")).includes("context-compactor"));
        assert.ok((await call(page, "marks")).length > 0, "the watermark is the page's");
        const before = await call(page, "messages", id);

        await page.reload();
        await ready(page);
        assert.ok((await call(page, "list")).includes(id));
        await call(page, "open", id, kind);
        assert.deepEqual(await call(page, "messages", id), before);
        await call(page, "close", id);
        await call(page, "delete", id);
        assert.ok(!(await call(page, "list")).includes(id));
        await page.close();
      });
    }

    test("P15: a worker that the app terminates ends its sessions with `poisoned`", async () => {
      const page = await openPage(session);
      await call(page, "open", "ended", "own");
      await call(page, "exchange", "ended", 1, 100);
      await call(page, "terminate");
      for (let tries = 0; (await call(page, "codeOfUse", "ended")) !== "poisoned"; tries++) assert.ok(tries < 50, "it answers still");
      assert.equal(await call(page, "codeOfOpening", "ended", "own"), "poisoned");
      assert.equal(await call(page, "open", "ended"), "synced");
      assert.equal((await call(page, "messages", "ended")).length, 4);
      await page.close();
    });

    test("P15: a policy that forbids workers is a typed error", async () => {
      const page = await openPage(session, "/forbidden");
      assert.equal(await call(page, "codeOfOpening", "forbidden"), "stage_unavailable");
      await page.close();
    });

    test("P15: two tabs of a shared worker append at once: nothing is lost, nobody waits long, and each hears of the other", async (context) => {
      const tabs = [await openPage(session), await openPage(session)];
      for (const tab of tabs) await call(tab, "open", "shared by tabs", "shared");
      const waits = await Promise.all(tabs.map((tab, nth) => call(tab, "appendMany", "shared by tabs", `tab ${nth}`, APPENDS)));
      for (const of of waits) {
        const longest = Math.max(...of);
        context.diagnostic(`longest ${longest.toFixed(1)} ms, in all ${of.reduce((sum, ms) => sum + ms, 0).toFixed(0)} ms`);
        if (measured) assert.ok(longest <= 100, `${longest} ms`);
      }
      const found = await call(tabs[0], "logged", "shared by tabs");
      for (const [nth, tab] of tabs.entries()) {
        assert.deepEqual(found.filter((text) => text.startsWith(`tab ${nth} `)), Array.from({ length: APPENDS }, (_, at) => `tab ${nth} ${at}`));
        assert.deepEqual((await call(tab, "messages", "shared by tabs")).map(({ content }) => content), found);
        assert.ok((await call(tab, "changes", "shared by tabs")).length > 0);
      }
      // A tab that is closed leaves the other one its session.
      await tabs[0].close();
      await call(tabs[1], "appendMany", "shared by tabs", "later", 3);
      assert.equal((await call(tabs[1], "logged", "shared by tabs")).length, 2 * APPENDS + 3);
      await tabs[1].close();
    });

    test("P15: the page stays free while a long history is compacted", async (context) => {
      const page = await openPage(session);
      const turns = measured ? 60 : 8;
      const { turn, compaction, success, tokens } = await call(page, "longTask", "long", turns, 64_000);
      assert.equal(success, true);
      context.diagnostic(`${tokens} tokens: longest task of a turn ${turn.toFixed(1)} ms, of the compaction ${compaction.toFixed(1)} ms`);
      if (measured) assert.ok(compaction <= 8, `${compaction} ms`);
      await page.close();
    });
  });
}
