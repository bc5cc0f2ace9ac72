import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { browsers, launch, resultOf } from "../support/browser.mjs";
import { serve } from "../support/serve.mjs";

const pkg = fileURLToPath(new URL("../../pkg/", import.meta.url));
const { version } = JSON.parse(readFileSync(`${pkg}package.json`, "utf8"));

const module = (code) => `<!doctype html><link rel="icon" href="data:,"><script type="module">${code}</script>`;
const pages = {
  "/inline": module('import { version } from "/dist/entry/inline.js"; globalThis.result = version();'),
  "/slim": module(`import { initialize, version } from "/dist/entry/slim.js";
    await initialize(new URL("/core.wasm", location));
    globalThis.result = version();`),
  "/worker": module(`const code = 'import { version } from "' + location.origin + '/dist/entry/inline.js"; postMessage(version())';
    const worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })), { type: "module" });
    worker.onmessage = ({ data }) => { globalThis.result = data; };`),
};

let server;
before(async () => {
  server = await serve(pkg, { pages });
});
after(() => server.close());

for (const name of browsers) {
  test(name, async (context) => {
    const browser = await launch(name);
    context.after(() => browser.close());
    for (const page of Object.keys(pages)) {
      await context.test(`loads by ${page.slice(1)}, without a bundler`, async () => {
        assert.equal(await resultOf(browser, server.url + page), version);
      });
    }
  });
}
