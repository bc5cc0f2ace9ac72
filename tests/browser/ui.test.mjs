/** X16: the parts of a page, in real browsers over real sessions, as docs/ui.md has them. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { exec } from "../packaging/project.mjs";
import { programs } from "../packaging/readme.mjs";
import { axe } from "../support/axe.mjs";
import { browsers, launch } from "../support/browser.mjs";
import { majorsOf } from "../support/majors.mjs";
import { serve } from "../support/serve.mjs";

const [panel, chat] = programs(readFileSync(new URL("../../docs/ui.md", import.meta.url), "utf8")).map(({ code }) => code);
/** The newest is installed. */
const reacts = majorsOf({ 18: "18.3.1", 19: undefined });
const html = `<!doctype html><html lang="en"><title>A chat</title><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><link rel="stylesheet" href="main.css">
<style>:root { color-scheme: light dark; background: light-dark(#fff, #111); color: light-dark(#111, #eee); }</style><body><h1>A chat</h1></body><script type="module" src="main.js"></script></html>`;
const rootOf = (name) => dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
let folder, server;

async function bundle(name, contents, react) {
  const outdir = join(folder, name);
  await mkdir(outdir, { recursive: true });
  // One React for all; the engine is part of the script.
  const alias = { "context-compactor": "context-compactor/inline", react: rootOf("react"), "react-dom": rootOf("react-dom") };
  if (react) {
    await writeFile(join(outdir, "package.json"), "{}");
    await exec("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", `react@${react}`, `react-dom@${react}`], { cwd: outdir });
    for (const part of ["react", "react-dom"]) alias[part] = join(outdir, "node_modules", part);
  }
  const stdin = { contents: `${contents}\nglobalThis.session = session;`, loader: "jsx", resolveDir: fileURLToPath(new URL("./", import.meta.url)) };
  await build({ stdin, outdir, alias, entryNames: "main", bundle: true, format: "esm", target: "es2022", jsx: "automatic", logLevel: "error", define: { "process.env.NODE_ENV": '"production"' } });
  await writeFile(join(outdir, "index.html"), html);
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "ui-"));
  await bundle("panel", panel);
  for (const [major, version] of reacts) await bundle(`react-${major}`, chat, version);
  server = await serve(folder);
});
after(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

for (const name of browsers) describe(name, () => partsIn(name));

function partsIn(name) {
  let browser;
  const errors = [];
  before(async () => (browser = await launch(name)));
  after(() => browser?.close());

  async function open(path, { width = 900, scheme = "light" } = {}) {
    const page = await (await browser.createBrowserContext()).newPage();
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.setViewport({ width, height: 800 });
    if (name === "chrome") await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.goto(`${server.url}/${path}/index.html`);
    await page.waitForFunction("globalThis.session", { timeout: 60_000, polling: 50 });
    return page;
  }
  const until = (page, condition, ...values) => page.waitForFunction(condition, { timeout: 60_000, polling: 50 }, ...values);
  const text = (page, selector) => page.$eval(selector, ({ textContent }) => textContent);
  const button = (page, word) => page.evaluate((word) => [...document.querySelectorAll("button")].find(({ textContent }) => textContent.startsWith(word)).click(), word);
  /** Faults that axe finds, and how many pixels the page is too wide. */
  async function faults(page) {
    await page.addScriptTag({ path: axe });
    return page.evaluate(async () => {
      const { violations } = await globalThis.axe.run(document, { rules: { region: { enabled: false }, "landmark-one-main": { enabled: false } } });
      const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
      return [...violations.map(({ id, nodes }) => `${id}: ${nodes[0].target} ${nodes[0].any[0]?.message ?? ""}`), ...(wide > 0 ? [`${wide} pixels too wide`] : [])];
    });
  }
  /** Many results of tools, which a compaction stores. */
  const fill = (page, count) =>
    page.evaluate(async (count) => {
      await globalThis.session.append({ role: "user", content: "Read the files." });
      for (let nth = 0; nth < count; nth++) {
        const call = { id: `c${nth}`, type: "function", function: { name: "read_file", arguments: `{"path":"${nth}.md"}` } };
        await globalThis.session.append({ role: "assistant", content: null, tool_calls: [call] }, { role: "tool", tool_call_id: `c${nth}`, content: `file ${nth} of the house ${"some text ".repeat(300)}` });
      }
    }, count);

  test("X16: the panel follows the session: what fills the window, what a compaction would do, and each message with its text", async () => {
    const page = await open("panel");
    assert.match(await text(page, ".cc-reading"), /^Tokens in context0 of 16,000/);
    await fill(page, 6);
    const used = () => page.evaluate(() => globalThis.session.context.usage().usedTokens.toLocaleString());
    await until(page, (used) => document.querySelector(".cc-reading strong").textContent === used, await used());
    assert.ok((await page.$$eval(".cc-categories li", (rows) => rows.map(({ textContent }) => textContent))).some((row) => /result[a-z ]*[1-9]/i.test(row)));
    const meter = await page.$eval("[role=meter]", (bar) => [bar.ariaValueMax, bar.ariaValueText]);
    assert.equal(meter[0], "16000");
    assert.match(meter[1], /of 16,000 tokens, compacts at [\d,]+$/);

    await button(page, "Preview a compaction");
    await until(page, () => /→ about [\d,]+ tokens, \d+ messages? changed, 0 model calls\.|Nothing would change/.test(document.querySelector(".cc-answer").textContent));
    const before = await used();
    await fill(page, 30);
    await page.evaluate(() => globalThis.session.prepare());
    await until(page, (before) => document.querySelector(".cc-reading strong").textContent !== before && /offloaded|summarized/.test(document.querySelector(".cc-legend").textContent), before);

    // By the keyboard alone.
    await page.focus(".cc-messages > summary");
    await page.keyboard.press("Enter");
    await until(page, () => document.querySelectorAll(".cc-messages li .cc-preview").length > 20 && document.querySelector(".cc-messages li pre").textContent !== "");
    const rows = await page.$$eval(".cc-messages li", (rows) => rows.map((row) => [row.querySelector(".cc-fate").textContent, row.querySelector("pre").textContent]));
    const ledger = await page.evaluate(() => globalThis.session.context.explain());
    assert.deepEqual(rows.map(([fate]) => fate), ledger.map(({ fate }) => fate));
    const left = rows.find(([fate]) => fate !== "verbatim");
    assert.match(left[1], /file \d+ of the house some text|read_file/);
    await page.evaluate(() => globalThis.session.close());
    await page.browserContext().close();
  });

  for (const [major] of reacts) {
    test(`X16: React ${major}: the divider says what left, shows it and undoes it; the hook follows every call`, async () => {
      const page = await open(`react-${major}`);
      const percent = () => text(page, "main > p").then((said) => parseFloat(said));
      assert.equal(await percent(), 0);
      await fill(page, 40);
      await until(page, () => parseFloat(document.querySelector("main > p").textContent) > 50);
      const full = await percent();
      await page.type("input", "Go on.\n");
      await until(page, () => document.querySelector(".cc-divider"));
      const said = await text(page, ".cc-divider p");
      const [before, after] = /([\d,]+) → ([\d,]+) tokens/.exec(said).slice(1).map((number) => Number(number.replace(",", "")));
      assert.ok(before > after && after > 0, said);
      assert.ok((await percent()) < full);

      await button(page, "Show what left");
      await until(page, () => document.querySelector(".cc-left ol li"));
      assert.match(await text(page, ".cc-left ol"), /file 0 of the house some text/);
      assert.equal(await page.$eval(".cc-divider [aria-expanded]", (one) => one.ariaExpanded), "true");
      assert.deepEqual(await faults(page), []);

      await button(page, "Undo");
      await until(page, () => /^Undone/.test(document.querySelector(".cc-divider p").textContent));
      const fates = await page.evaluate(async () => (await globalThis.session.context.explain()).map(({ fate }) => fate));
      assert.deepEqual([...new Set(fates)], ["verbatim"]);
      await until(page, (before) => parseFloat(document.querySelector("main > p").textContent) > (before / 16_000) * 95, before);
      await page.browserContext().close();
    });
  }

  test("X16: axe finds no fault in the parts, wide and narrow, light and dark", async () => {
    for (const width of [900, 360]) {
      for (const scheme of name === "chrome" ? ["light", "dark"] : ["light"]) {
        const page = await open("panel", { width, scheme });
        await fill(page, 40);
        await page.evaluate(() => globalThis.session.prepare());
        await button(page, "Preview a compaction");
        await page.$eval(".cc-messages > summary", (summary) => summary.click());
        await until(page, () => document.querySelector(".cc-messages li .cc-fate-offloaded, .cc-messages li .cc-fate-summarized"));
        await page.$eval(".cc-messages li summary", (summary) => summary.click());
        assert.deepEqual(await faults(page), [], `${width}, ${scheme}`);
        await page.browserContext().close();
      }
    }
  });

  test("no error reached the console", () => assert.deepEqual(errors, []));
}
