/**
 * First pages of demo and docs as axe sees them, wide and narrow, light and dark; what is good practice on the demo's; how they load
 * is printed.
 */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";
import { axe } from "../../tests/support/axe.mjs";
import { launch } from "../../tests/support/browser.mjs";
import { serve } from "../../tests/support/serve.mjs";

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const WIDTHS = [1280, 768, 360];
const SCHEMES = ["light", "dark"];
const PAGES = ["/", "/docs/index.html", "/docs/sdk/ai-sdk.html", "/docs/comparison.html", "/docs/options.html", "/docs/api/ai-sdk.html"];
const site = mkdtempSync(join(tmpdir(), "pages-"));
let server, browser;

before(async () => {
  await build({ root: fileURLToPath(new URL("..", import.meta.url)), logLevel: "error", build: { outDir: site, emptyOutDir: true } });
  server = await serve(site);
  browser = await launch("chrome");
});
after(async () => {
  await browser?.close();
  await server?.close();
  rmSync(site, { recursive: true, force: true });
});

/** A page when all that it begins with is there; the demo's run has stopped at its first compaction. */
async function open(path, { width, scheme, motion = "reduce" }) {
  // As for whoever comes for the first time.
  const page = await (await browser.createBrowserContext()).newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => /^(error|warn)/.test(message.type()) && errors.push(message.text()));
  page.on("requestfailed", (request) => errors.push(`${request.url()} failed`));
  page.on("response", (response) => response.status() >= 400 && errors.push(`${response.url()}: ${response.status()}`));
  await page.setViewport({ width, height: 800 });
  await page.emulateMediaFeatures([
    { name: "prefers-color-scheme", value: scheme },
    { name: "prefers-reduced-motion", value: motion },
  ]);
  await page.goto(`${server.url}${path}`);
  const done = () => {
    if (document.querySelector(".rows")) globalThis.seen ??= performance.now();
    return globalThis.seen !== undefined && /Play/.test(document.querySelector(".transport .play").textContent);
  };
  if (path === "/") await page.waitForFunction(done, { timeout: 60_000, polling: 50 });
  return { page, errors };
}

for (const path of PAGES) {
  test(`E27: ${path} has no fault that axe finds, fits its width, and logs no error`, async () => {
    const faults = [];
    for (const width of WIDTHS) {
      for (const scheme of SCHEMES) {
        const { page, errors } = await open(path, { width, scheme });
        await page.addScriptTag({ path: axe });
        const found = await page.evaluate(async (values) => {
          const { violations } = await globalThis.axe.run(document, { runOnly: { type: "tag", values }, rules: { "target-size": { enabled: true } } });
          return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ target, any }) => `${target.join(" ")} ${any[0]?.message ?? ""}`).join("; ")} (${nodes.length})`);
        }, TAGS);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        const too = wide > 0 ? [`${wide} pixels too wide`] : [];
        faults.push(...[...found, ...too, ...errors].map((fault) => `${width}, ${scheme}: ${fault}`));
        await page.browserContext().close();
      }
    }
    assert.deepEqual(faults, []);
  });
}

/** What is wrong with a page by what is good practice; none of it is of axe's rules. */
function practices() {
  const faults = [];
  const expect = (isGood, fault) => isGood || faults.push(fault);
  const content = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";
  expect(document.compatMode === "CSS1Compat", "no doctype");
  expect(document.characterSet === "UTF-8", "charset");
  expect(/width=device-width/.test(content("viewport")) && !/maximum-scale|user-scalable/.test(content("viewport")), "viewport");
  expect(content("description").length > 50, "no description");
  expect(document.title.length > 10 && document.title.length < 70, "title");
  const levels = Array.from(document.querySelectorAll("h1, h2, h3, h4"), ({ localName }) => Number(localName.slice(1)));
  expect(levels[0] === 1 && levels.filter((level) => level === 1).length === 1, `headings ${levels}`);
  expect(levels.every((level, at) => at === 0 || level <= levels[at - 1] + 1), `a level of headings is left out: ${levels}`);
  const foreign = performance.getEntriesByType("resource").filter(({ name }) => !name.startsWith(location.origin) && !name.startsWith("data:"));
  expect(foreign.length === 0, `other origins: ${foreign.map(({ name }) => name)}`);
  expect(document.querySelectorAll("img:not([alt])").length === 0, "a picture without a text");
  // What can be pressed with a thumb, on a narrow screen.
  const buttons = Array.from(document.querySelectorAll(".first button, .top button, .top .button"), (button) => [button, button.getBoundingClientRect()]);
  const small = buttons.filter(([button, { width, height }]) => button.checkVisibility() && !button.matches(".link") && (width < 24 || height < 24));
  expect(small.length === 0, `small: ${small.map(([{ textContent }]) => textContent)}`);
  const shifts = globalThis.shifts.filter(({ hadRecentInput }) => !hadRecentInput).reduce((sum, { value }) => sum + value, 0);
  expect(shifts < 0.1, `what is read moves by ${shifts.toFixed(3)}`);
  return faults;
}

for (const width of WIDTHS) {
  test(`the demo's first page is as is good practice, at ${width}`, async () => {
    const { page, errors } = await open("/", { width, scheme: "light", motion: "no-preference" });
    await page.evaluate(
      () =>
        new Promise((resolve) => {
          globalThis.shifts = [];
          new PerformanceObserver((list) => globalThis.shifts.push(...list.getEntries())).observe({ type: "layout-shift", buffered: true });
          setTimeout(resolve, 200);
        }),
    );
    assert.deepEqual([...(await page.evaluate(practices)), ...errors], []);
    await page.browserContext().close();
  });
}

/** Of what a page has loaded, if it were sent compressed. */
function compressed(names) {
  const files = names.filter((name) => name.startsWith(server.url)).map((name) => decodeURIComponent(new URL(name).pathname));
  return files.reduce((sum, path) => sum + gzipSync(readFileSync(join(site, path.endsWith("/") ? `${path}index.html` : path))).length, 0);
}

test("E27: how the first pages load", async (context) => {
  for (const path of ["/", "/docs/index.html"]) {
    const { page } = await open(path, { width: 1280, scheme: "light", motion: "no-preference" });
    await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
    const { paint, load, seen, bytes, requests, names } = await page.evaluate(() => {
      const entries = performance.getEntriesByType("resource");
      const [navigation] = performance.getEntriesByType("navigation");
      return {
        paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
        load: navigation.loadEventEnd,
        seen: globalThis.seen,
        bytes: [navigation, ...entries].reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0),
        requests: entries.length + 1,
        names: [navigation, ...entries].map(({ name }) => name),
      };
    });
    const shown = seen === undefined ? "" : `first before and after seen after ${Math.round(seen)} ms, `;
    context.diagnostic(`${path}: first paint after ${Math.round(paint)} ms, loaded after ${Math.round(load)} ms, ${shown}${requests} requests, ${Math.round(bytes / 1_000)} KB, ${Math.round(compressed(names) / 1_000)} KB compressed`);
    if (path !== "/") assert.ok(bytes < 150_000 && requests <= 4, `${bytes} bytes, ${requests} requests`);
    await page.browserContext().close();
  }
});
