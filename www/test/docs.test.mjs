/** The docs as the build makes them: no dead link, every export and option, search, and what can be read without JavaScript. */

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "vite";
import { launch } from "../../tests/support/browser.mjs";
import { serve } from "../../tests/support/serve.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const HOST = "https://github.com/context-compactor/context-compactor";
const site = mkdtempSync(join(tmpdir(), "docs-"));
const docs = join(site, "docs");
const pages = new Map();
let server, browser;

before(async () => {
  await build({ root: join(root, "www"), logLevel: "error", build: { outDir: site, emptyOutDir: true } });
  for (const path of readdirSync(docs, { recursive: true })) if (path.endsWith(".html")) pages.set(path, readFileSync(join(docs, path), "utf8"));
  server = await serve(site);
  browser = await launch("chrome");
});
after(async () => {
  await browser?.close();
  await server?.close();
  rmSync(site, { recursive: true, force: true });
});

/** What a page has, without what its blocks of code say. */
const attributes = (html, name) => Array.from(html.matchAll(new RegExp(`<[a-z][^<>]*? ${name}="([^"]*)"`, "g")), ([, value]) => value.replaceAll("&amp;", "&"));

test("E27: no link of the docs is dead: pages, anchors, pictures, and files of the repository", () => {
  assert.ok(pages.size > 60, `${pages.size} pages`);
  const ids = new Map(Array.from(pages, ([path, html]) => [path, attributes(html, "id")]));
  const dead = [];
  let internal = 0;
  for (const [path, html] of pages) {
    const doubled = ids.get(path).filter((id, at, all) => all.indexOf(id) !== at);
    if (doubled.length > 0) dead.push(`${path}: two of ${doubled}`);
    for (const link of [...attributes(html, "href"), ...attributes(html, "src")]) {
      if (/^(data|mailto):/.test(link)) continue;
      if (link.startsWith(HOST)) {
        const [, file] = /^\/(?:blob|tree)\/main\/([^#]+)/.exec(link.slice(HOST.length)) ?? [];
        if (file && !existsSync(join(root, file))) dead.push(`${path}: ${link}`);
        continue;
      }
      if (/^https?:/.test(link)) continue;
      internal++;
      const { pathname, hash } = new URL(link, pathToFileURL(join(docs, path)));
      const file = normalize(decodeURIComponent(pathname));
      if (!existsSync(file)) dead.push(`${path}: ${link}`);
      else if (hash !== "" && !ids.get(file.slice(docs.length + 1))?.includes(decodeURIComponent(hash.slice(1)))) dead.push(`${path}: ${link}`);
    }
  }
  assert.deepEqual(dead, []);
  assert.ok(internal > 5_000, `${internal} links`);
});

test("E27: every page of docs/, every example and every page that they name is in the list of pages", () => {
  const home = pages.get("index.html");
  const listed = new Set(attributes(home, "href"));
  for (const path of readdirSync(join(root, "docs"), { recursive: true })) {
    if (!path.endsWith(".md") || path === "README.md") continue;
    const page = path.replace(/README\.md$/, "index.md").replace(/\.md$/, ".html");
    assert.ok(listed.has(page), path);
  }
  for (const name of readdirSync(join(root, "examples"))) assert.ok(listed.has(`examples/${name}.html`), name);
});

test("E27: every entry of the package has a page with all that it exports, and each has a hover text", () => {
  const { exports } = JSON.parse(readFileSync(join(root, "pkg/package.json"), "utf8"));
  const entries = Object.keys(exports).filter((path) => !/\.(wasm|json)$/.test(path));
  assert.ok(entries.length >= 19, String(entries));
  const silent = [];
  let symbols = 0;
  for (const entry of entries) {
    const name = entry === "." ? "main" : entry.slice(2);
    const html = pages.get(`api/${name}.html`);
    assert.ok(html, entry);
    for (const section of html.split('<section class="symbol">').slice(1)) {
      symbols++;
      const [, id, said] = /^\n<h3 id="([^"]+)">[\s\S]*?<\/h3>\n(?:<pre[\s\S]*?<\/pre>\n)+([\s\S]*)/.exec(section);
      if (!said.startsWith("<p>")) silent.push(`${entry}: ${id}`);
    }
  }
  assert.ok(symbols > 150, `${symbols} exports`);
  assert.deepEqual(silent, []);
  assert.match(pages.get("api/main.html"), /id="Session\.prepare"/);
  assert.match(pages.get("api/node.html"), /id="fileStore"/);
});

test("E27: the page of options has each with its default, and the numbers of the presets", () => {
  const html = pages.get("options.html");
  for (const option of ["contextWindow", "keep.messages", "summarize.provider", "advanced.carry.factsFraction", "mustExist"]) {
    assert.ok(html.includes(`<dt id="${option}">`), option);
  }
  const [, numbers] = /<dt id="keep\.userMessages">[\s\S]*?<p class="defaults">(.*?)<\/p>/.exec(html);
  assert.match(numbers, /<code>checkpoint<\/code> 10/);
  // Every number of docs/presets.md finds its option.
  const paths = Array.from(readFileSync(join(root, "docs/presets.md"), "utf8").matchAll(/^\| `([\w.]+)` \|/gm), ([, path]) => path);
  const lost = paths.filter((path) => !path.startsWith("presetOptions.") && !html.includes(`<dt id="${path}">`));
  assert.deepEqual(lost, []);
});

test("E27: every code of errors has its row, and no other", () => {
  const types = readFileSync(join(root, "pkg/dist/errors.d.ts"), "utf8");
  const codes = Array.from(/type ErrorCode = ([^;]+);/.exec(types)[1].matchAll(/"(\w+)"/g), ([, code]) => code);
  const rows = Array.from(readFileSync(join(root, "docs/errors.md"), "utf8").matchAll(/^\| `(\w+)` \|/gm), ([, code]) => code);
  assert.deepEqual(rows.sort(), codes.sort());
});

test("E27: without JavaScript a page can be read, and shows no control that would do nothing", async () => {
  const page = await browser.newPage();
  await page.setJavaScriptEnabled(false);
  await page.goto(`${server.url}/docs/sdk/ai-sdk.html`);
  assert.match(await page.$eval("main", (main) => main.textContent), /prepareStep: cc\.prepareStep/);
  assert.equal(await page.$eval("[aria-current]", (link) => link.textContent), "AI SDK");
  for (const control of [".search", "#theme"]) assert.equal(await page.$eval(control, (element) => element.checkVisibility()), false, control);
  assert.equal((await page.$$(".copy")).length, 0);
  await page.close();
});

test("E27: search finds options, exports and guides by the keyboard alone, and opens what is chosen", async () => {
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  const find = async (query) => {
    await page.goto(`${server.url}/docs/sdk/index.html`);
    await page.keyboard.press("/");
    await page.keyboard.type(query);
    await page.waitForFunction(() => document.querySelector("#found [aria-selected=true]"), { timeout: 30_000 });
    return page.$$eval("#found li b", (items) => items.map(({ textContent }) => textContent));
  };
  for (const [query, expected] of [["userMessages", "keep.userMessages"], ["openSession", "openSession"], ["durable object", "In a Cloudflare Worker"], ["trimMessages", "From trimMessages of LangChain"], ["watermark server", "A watermark on your server"]]) {
    const found = await find(query);
    assert.ok(found.slice(0, 6).includes(expected), `${query}: ${found}`);
  }
  await find("keep.userMessages");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.match(page.url(), /options\.html#keep\.userMessages$|api\//);
  await page.goto(`${server.url}/docs/index.html`);
  await page.keyboard.press("/");
  await page.keyboard.type("zzzzqqqq");
  await page.waitForFunction(() => document.querySelector("#found .none"));
  await page.keyboard.press("Escape");
  assert.equal(await page.$eval("#found", (list) => list.hidden), true);
  assert.deepEqual(errors, []);
  await page.close();
});

test("E27: docs and demo lead to each other", async () => {
  const page = await browser.newPage();
  await page.goto(`${server.url}/docs/index.html`);
  await Promise.all([page.waitForNavigation(), page.click('nav[aria-label="Site"] a[href="../index.html"]')]);
  await page.waitForSelector(".top a[href='docs/index.html']");
  await Promise.all([page.waitForNavigation(), page.click(".top a[href='docs/index.html']")]);
  assert.equal(new URL(page.url()).pathname, "/docs/index.html");
  await page.close();
});
