/** A tab that is stopped while it writes makes no other tab wait for ever (D7, D17). */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { browsers, launch } from "../support/browser.mjs";
import { serve } from "../support/serve.mjs";

const pkg = fileURLToPath(new URL("../../pkg/", import.meta.url));
const module = (code) => `<!doctype html><link rel="icon" href="data:,"><script type="module">${code}</script>`;

const pages = {
  "/session": module(`import { openSession } from "/dist/entry/main.js";
    const session = await openSession({ id: "s", contextWindow: 16_000 });
    globalThis.say = async (content) => {
      const started = performance.now();
      const code = await session.append({ role: "user", content }).then(() => "written", (error) => error.code);
      return { code, ms: performance.now() - started };
    };
    globalThis.said = async () => {
      const found = [];
      for await (const { content } of session.archive.history()) found.push(content);
      return found;
    };
    globalThis.ready = true;`),
  // A transaction lives as long as it asks for something.
  "/stopped": module(`const opening = indexedDB.open("context-compactor");
    opening.onsuccess = () => {
      const tables = [...opening.result.objectStoreNames];
      globalThis.write = () => new Promise((begun) => {
        globalThis.stops = false;
        const table = opening.result.transaction(tables, "readwrite").objectStore(tables[0]);
        const again = () => { begun(); if (!globalThis.stops) table.count().onsuccess = again; };
        again();
      });
      globalThis.ready = true;
    };`),
};

let server;
before(async () => (server = await serve(pkg, { pages })));
after(() => server.close());

for (const name of browsers) {
  test(`D17: ${name}: an append behind another tab's endless transaction fails in time, and the next one works`, async (context) => {
    const browser = await launch(name);
    context.after(() => browser.close());
    const open = async (path) => {
      const page = await browser.newPage();
      await page.goto(server.url + path);
      await page.waitForFunction("globalThis.ready");
      return page;
    };
    const session = await open("/session");
    const say = (text) => session.evaluate((text) => globalThis.say(text), text);
    assert.equal((await say("one")).code, "written");
    const stopped = await open("/stopped");
    await stopped.evaluate(() => void globalThis.write());
    await session.bringToFront();
    const { code, ms } = await say("two");
    context.diagnostic(`${code} after ${Math.round(ms)} ms`);
    // Firefox tells nothing of a transaction that is aborted while it waits for another one.
    assert.equal(code, name === "chrome" ? "store_unavailable" : "indeterminate");
    assert.ok(ms > 9_000 && ms < 31_000, `${ms} ms`);
    await stopped.evaluate(() => void (globalThis.stops = true));
    assert.equal((await say("three")).code, "written");
    assert.deepEqual(await session.evaluate(() => globalThis.said()), ["one", "three"]);
  });
}
