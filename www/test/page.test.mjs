import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { browsers, launch } from "../../tests/support/browser.mjs";
import { serve } from "../../tests/support/serve.mjs";

const outDir = mkdtempSync(join(tmpdir(), "demo-"));
let server;

before(async () => {
  const root = fileURLToPath(new URL("..", import.meta.url));
  await build({ root, logLevel: "error", build: { outDir, emptyOutDir: true } });
  server = await serve(outDir);
});
after(async () => {
  await server?.close();
  rmSync(outDir, { recursive: true, force: true });
});

for (const name of browsers) describe(name, () => demoIn(name));

function demoIn(name) {
  let browser, page;
  const errors = [];

  before(async () => {
    browser = await launch(name);
    page = await browser.newPage();
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    // Nothing plays by itself then.
    await page.evaluateOnNewDocument(() => {
      const matches = window.matchMedia.bind(window);
      window.matchMedia = (query) => matches(query.includes("reduced-motion") ? "all" : query);
    });
    await page.goto(`${server.url}/`);
  });
  after(() => browser?.close());

  const text = (selector) => page.$eval(selector, (element) => element.textContent);
  const click = (selector) => page.$eval(selector, (element) => element.click());
  const until = (condition, ...values) => page.waitForFunction(condition, { timeout: 30_000 }, ...values);
  const ready = () => until(() => document.querySelector(".transport .play")?.disabled === false);
  const input = (selector, value) =>
    page.$eval(
      selector,
      (element, value) => {
        element.value = value;
        element.dispatchEvent(new Event("input", { bubbles: true }));
      },
      value,
    );
  async function runTo(x) {
    await input(".strip input", x);
    await until((x) => document.querySelector(".position b").textContent === x, String(x));
  }
  async function say(line, answer) {
    await click("#tab-chat");
    await page.type(".chat textarea", line);
    await page.keyboard.press("Enter");
    await until(
      (answer) => new RegExp(answer).test([...document.querySelectorAll(".said")].at(-1)?.textContent),
      answer,
    );
    return page.$$eval(".said", (items) => items.at(-1).textContent);
  }

  test("the recorded run stays inside its window where it would not without compaction", async () => {
    await ready();
    await runTo(168);
    const peak = await page.$eval(".chart svg", (chart) => chart.getAttribute("aria-label"));
    const [, used, , compactions, without] =
      /at most ([\d.,]+) of ([\d.,]+), (\d+) compactions.*: ([\d.,]+)\./.exec(peak);
    const number = (digits) => Number(digits.replace(/\D/g, ""));
    assert.ok(number(used) < 32_768, peak);
    assert.ok(number(without) > 60_000, peak);
    assert.ok(Number(compactions) >= 3, peak);
    assert.match(await text(".without"), /context_length_exceeded/);
  });

  test("s1_13 the commands work in the chat", async () => {
    assert.match(
      await say("/context", "offloads$"),
      /\/ 32\D768 tokens \([\d.,]+\s?%\)\n[█░┃]+\nCompaction at [\d.,]+ tokens\n/,
    );
    assert.match(
      await say("/compact keep the invoice number", "offloads?\\."),
      /^[\d.,]+ → [\d.,]+ tokens\nFreed [\d.,]+ tokens, deleted \d+ offloads?\./,
    );
    assert.match(await say("/help", "compact"), /Compress conversation history/);
    assert.match(await say("hello", "no model"), /add your own endpoint/);
  });

  test("an offload is read back from the session", async () => {
    await click("#tab-offloads");
    await click(".offloads .head");
    await until(() => document.querySelector(".offloads pre")?.getAttribute("aria-busy") === "false");
    assert.equal((await text(".offloads pre")).length > 50, true);
  });

  test("the run's costs by policy, and what compactors retain of it", async () => {
    const loaded = () =>
      page.evaluate(() => {
        const files = performance.getEntriesByType("resource");
        return files.filter(({ name }) => /\/evaluator[^/]*$/.test(name)).length;
      });
    assert.equal(await loaded(), 0, "the evaluator comes with the page");
    // Whoever leaves stops it, and finds it as new.
    await click("#tab-cost");
    await until(() => document.querySelectorAll(".costs tbody tr").length === 6);
    await click("#tab-chat");
    await click("#tab-cost");
    await until(() => document.querySelector(".costs tbody td")?.textContent !== "…");
    assert.ok((await loaded()) > 0);
    const lines = await page.$$eval(".cost-chart .plot path.line", (paths) =>
      paths.map((path) => path.getAttribute("d").split("L").length),
    );
    assert.deepEqual(lines, [54, 54, 54, 54, 54]);
    const cells = (table) =>
      page.$$eval(`${table} tbody tr`, (rows) =>
        rows.map(({ cells }) => [...cells].map(({ textContent }) => textContent)),
      );
    const rows = await cells(".costs");
    assert.deepEqual(
      rows.map(([name]) => name),
      ["No compaction", "Fixed threshold", "Sliding window", "Clear every turn", "balanced", "Optimum"],
    );
    for (const [name, cost, ratio, ...counts] of rows) {
      assert.match(cost, /^\D*\d[.,]\d{3}\D*$/, name);
      assert.match(ratio, /^\d\.\d\d×$/, name);
      for (const count of counts) assert.match(count, name === "Optimum" ? /^–$/ : /^\d/, name);
    }
    assert.equal(rows.at(-1)[2], "1.00×");
    assert.match(rows[0].at(-1), /does not fit/);
    assert.doesNotMatch(rows[4].at(-1), /does not fit/);

    const sheets = await page.$$eval(".cost select option", (options) => options.map(({ value }) => value));
    assert.ok(sheets.length >= 2);
    await page.select(".cost select", sheets[1]);
    await until(
      (first) => !["…", first].includes(document.querySelector(".costs tbody td").textContent),
      rows[0][1],
    );

    await until(() => /%/.test(document.querySelector(".retained tbody td")?.textContent));
    const shares = await cells(".retained");
    assert.deepEqual(
      shares.map(([name]) => name),
      ["keep-layer", "extractive", "tail", "masking", "bag of names + tail"],
    );
    for (const [name, ...row] of shares) {
      assert.equal(row.length, 6);
      for (const share of row) assert.match(share, /^\d+\s?%$/, name);
    }
    assert.equal(await page.$("#panel-cost .error"), null);
  });

  test("a reload comes back into the same session", async () => {
    const state = () =>
      page.evaluate(() => [
        location.hash,
        ...[".reading", ".legend", ".position"].map((part) => document.querySelector(part).textContent),
      ]);
    const before = await state();
    await page.reload();
    await until(() => document.querySelector(".position b")?.textContent === "168");
    assert.deepEqual(await state(), before);
  });

  test("start over deletes the session", async () => {
    const old = await page.evaluate(() => location.hash.slice(3));
    await click(".actions button:nth-child(3)");
    await until((old) => location.hash !== "" && location.hash.slice(3) !== old, old);
    await ready();
    if ((await text(".play")).includes("Pause")) await click(".play");
    const left = await page.evaluate(async (old) => {
      const open = indexedDB.open("context-compactor-demo");
      const database = await new Promise((resolve) => (open.onsuccess = () => resolve(open.result)));
      const request = database.transaction("runs").objectStore("runs").getAllKeys();
      return new Promise((resolve) => (request.onsuccess = () => resolve(request.result.includes(old))));
    }, old);
    assert.equal(left, false);
  });

  test("an import names what is wrong, and plays what is right", async () => {
    await click(".actions button:nth-child(1)");
    await input("dialog textarea", '[{"role":"user","content":"hi"},{"content":"x"}]');
    await until(() => document.querySelector("dialog .error"));
    assert.match(await text("dialog .error"), /message 1.*role.*\[invalid_message\]/);
    await input(
      "dialog textarea",
      '{"role":"user","content":"안녕 👋🏽"}\n{"role":"assistant","content":"hello"}',
    );
    await until(() => document.querySelector("dialog .primary")?.disabled === false);
    await click("dialog .primary");
    await until(() => document.querySelector(".position")?.textContent.includes("of 2"));
    await until(() => document.querySelector(".position b").textContent === "2");
  });

  test("a transcript that is too short to be cut has costs, and says so", async () => {
    await click("#tab-cost");
    await until(() => document.querySelector(".cost .none"));
    assert.match(await text(".cost .none"), /no cut/);
    assert.equal((await page.$$(".costs tbody tr")).length, 6);
    assert.doesNotMatch(await text(".costs tbody"), /…/);
    assert.equal(await page.$("#panel-cost .error"), null);
  });

  test("no error reached the console", () => assert.deepEqual(errors, []));
}
