/**
 * Hostile text and sizes through the stores that browsers have (fault 21). `CC_HOSTILE=1` takes 10^5
 * messages and the largest results.
 */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browsers } from "../support/browser.mjs";
import { bundle } from "../support/bundle.mjs";
import { launch, serve } from "../support/session.mjs";

const PAGE = `<!doctype html><title>hostile</title><link rel="icon" href="data:,"><script type="module" src="/js/hostile.js"></script>`;
const options = process.env.CC_HOSTILE === "1" ? { most: 100_000, large: true } : { most: 2_000 };

let folder, server;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "context-compactor-hostile-"));
  await bundle(`import "./tests/support/hostile-page.mjs";`, join(folder, "hostile.js"));
  server = await serve({ "/": PAGE, "/js/": folder });
});
after(async () => {
  await server?.close();
  await rm(folder, { recursive: true });
});

for (const name of browsers) {
  test(`hostile text and sizes in ${name}`, async (context) => {
    const session = await launch(name);
    context.after(() => session.close());
    const { page, errors } = await session.openPage(`${server.origin}/`);
    await page.waitForFunction(() => "hostile" in globalThis);
    const cases = await page.evaluate((options) => globalThis.hostile.names(options), options);
    for (const [store, named] of cases) {
      await context.test(`${store}: ${named}`, async () => {
        const wrong = await page.evaluate((...args) => globalThis.hostile.run(...args), store, named, options);
        assert.equal(wrong, null);
      });
    }
    assert.deepEqual(errors, []);
  });
}
