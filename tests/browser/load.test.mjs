import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { browsers, launch, resultOf } from "../support/browser.mjs";
import { serve } from "../support/serve.mjs";

const pkg = fileURLToPath(new URL("../../pkg/", import.meta.url));
const { version } = JSON.parse(readFileSync(`${pkg}package.json`, "utf8"));

const module = (code) => `<!doctype html><link rel="icon" href="data:,"><script type="module">${code}</script>`;
/** A session in IndexedDB, opened twice. */
const opened = (name) => `
  const turns = async () => {
    const session = await openSession({ id: ${JSON.stringify(name)}, contextWindow: 8_000 });
    await session.append({ role: "user", content: "Hello" });
    await session.close();
    return session.archive.durability;
  };
  const result = [version(), await turns(), await turns()];`;
const pages = {
  "/main": module(`import { openSession, version } from "/dist/entry/main.js"; ${opened("main")} globalThis.result = result;`),
  "/inline": module(`import { openSession, version } from "/dist/entry/inline.js"; ${opened("inline")} globalThis.result = result;`),
  "/slim": module(`import { initialize, openSession, version } from "/dist/entry/slim.js";
    await initialize(new URL("/core.wasm", location)); ${opened("slim")} globalThis.result = result;`),
  // All of it comes from another server.
  "/cdn": module(`import { initialize, openSession, version } from "/dist/entry/slim.js";
    const place = new URL(new URLSearchParams(location.search).get("place"));
    await initialize((name) => new URL(name, place)); ${opened("cdn")}
    const session = await openSession({ id: "cdn", contextWindow: 8_000 });
    const verified = await session.archive.verify();
    const loaded = performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => name.endsWith(".wasm"));
    const wanted = ["core", "rest", "shared"].map((name) => place + name + ".wasm");
    globalThis.result = verified.ok && String(loaded.sort()) === String(wanted) ? result : loaded;`),
  "/worker": module(`const code = ${JSON.stringify(`${opened("worker")} postMessage(result);`)};
    const from = 'import { openSession, version } from "' + location.origin + '/dist/entry/main.js";';
    const worker = new Worker(URL.createObjectURL(new Blob([from, code], { type: "text/javascript" })), { type: "module" });
    worker.onmessage = ({ data }) => { globalThis.result = data; };`),
};

let server;
let other;
before(async () => {
  server = await serve(pkg, { pages });
  other = createServer(({ url }, response) => {
    response.writeHead(200, { "content-type": "application/wasm", "access-control-allow-origin": "*" }).end(readFileSync(join(pkg, url)));
  });
  await new Promise((listening) => other.listen(0, "127.0.0.1", listening));
});
after(async () => {
  await server.close();
  other.closeAllConnections();
  await new Promise((closed) => other.close(closed));
});

for (const name of browsers) {
  test(name, async (context) => {
    const browser = await launch(name);
    context.after(() => browser.close());
    for (const page of Object.keys(pages)) {
      await context.test(`loads by ${page.slice(1)}, without a bundler`, async () => {
        assert.deepEqual(await resultOf(browser, `${server.url}${page}?place=http://127.0.0.1:${other.address().port}/`), [version, "synced", "synced"]);
      });
    }
  });
}
