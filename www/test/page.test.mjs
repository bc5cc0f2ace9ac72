import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { openSession } from "context-compactor";
import { build } from "vite";
import { browsers, launch } from "../../tests/support/browser.mjs";
import { serve } from "../../tests/support/serve.mjs";
import { triggerOf } from "../src/logic/presets.js";
import { transcripts } from "../transcript/generate.mjs";

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
    // What moves by itself does not, then: the page goes to the first compaction at once.
    await page.evaluateOnNewDocument(() => {
      const matches = window.matchMedia.bind(window);
      window.matchMedia = (query) => matches(query.includes("reduced-motion") ? "all" : query);
    });
    await page.goto(`${server.url}/`);
  });
  after(() => browser?.close());

  const text = (selector) => page.$eval(selector, (element) => element.textContent);
  const click = (selector) => page.$eval(selector, (element) => element.click());
  const until = (condition, ...values) => page.waitForFunction(condition, { timeout: 60_000 }, ...values);
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
  /** Of the main run, which was played to its end. */
  async function replaysWhatPlayed() {
    await click("#tab-compactions");
    const played = await page.$$eval(".compactions .title", (heads) =>
      heads.map(({ textContent }) => Number(/message (\d+)/.exec(textContent)[1])),
    );
    const messages = JSON.parse(transcripts()["invoicing-run.json"]);
    const call = (x) => messages.slice(1, x).filter(({ role }) => role === "assistant").length + 1;
    await click("#tab-cost");
    await until(() => document.querySelector(".costs .chosen"));
    const replayed = [];
    for (let nth = 1, before = 0; nth <= 57; nth++) {
      await input(".cost .call input", nth);
      await until((nth) => document.querySelector(".cost .call b").textContent === nth, String(nth));
      const now = Number(await text(".costs .chosen td:nth-of-type(4)"));
      if (now > before) replayed.push(nth);
      before = now;
    }
    // References are random: a context of another session may be a few tokens larger, and be due a call sooner or later, and
    // what comes behind that differs more.
    const expected = played.map(call).reverse();
    const told = `${replayed} replayed, ${expected} played`;
    assert.ok(replayed.length >= 3 && Math.abs(replayed.length - expected.length) <= 1, told);
    assert.ok(replayed.slice(0, 3).every((nth, at) => Math.abs(nth - expected[at]) <= 1), told);
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

  test("W16 the last compaction says why it came, what it freed, what it cost and what left", async () => {
    const facts = await page.$$eval(".last dd", (items) => items.map(({ textContent }) => textContent));
    assert.equal(facts.length, 5);
    const number = (digits) => Number(digits.replace(/\D/g, ""));
    const shown = number(await text(".cc-scale"));
    const [, tokens, trigger] = /^([\d.,]+) tokens, and the trigger is ([\d.,]+)$/.exec(facts[1]);
    assert.equal(number(trigger), shown, "the meter shows the number at which it came");
    assert.ok(number(tokens) >= shown);
    assert.match(facts[2], /^[\d.,]+ of [\d.,]+ tokens$/);
    assert.match(facts[3], /^no model call, /);
    assert.match(facts[4], /\d messages? /);
    // That of an earlier step, where messages went into a summary.
    await click("#tab-compactions");
    const folds = await page.$$eval(".compactions .title", (heads) => heads.map(({ textContent }) => textContent));
    const [, at] = /message (\d+)/.exec(folds.find((fold) => /summarized/.test(fold)));
    await input(".strip input", at);
    await until(() => /into the summary/.test(document.querySelector(".last .left").textContent));
    await input(".strip input", 168);
    await until(() => document.querySelector(".position b").textContent === "168");
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
    await click("#tab-chat");
    await click("#tab-cost");
    await until(() => document.querySelectorAll(".costs tbody tr").length === 3);
    const lines = await page.$$eval(".cost-chart .plot path.line", (paths) =>
      paths.map((path) => path.getAttribute("d").split("L").length),
    );
    assert.deepEqual(lines, [58, 58, 58, 58, 58, 58], "a line for each session, by cost and by needs lost");
    const cells = (table) =>
      page.$$eval(`${table} tbody tr`, (rows) =>
        rows.map(({ cells }) => [...cells].map(({ textContent }) => textContent.trim())),
      );
    const rows = await cells(".costs");
    assert.deepEqual(
      rows.map(([name]) => name),
      ["No compaction", "balanced, playing", "balanced, economy"],
    );
    for (const [name, cost, share, lost, ...counts] of rows) {
      assert.match(cost, /^\D*\d[.,]\d{3}\D*$/, name);
      assert.match(share, /^\d+\s?%$/, name);
      assert.match(lost, /^\d+ of 57$/, name);
      for (const count of counts) assert.match(count, /^\d/, name);
    }
    assert.match(rows[0].at(-1), /does not fit/);
    assert.doesNotMatch(rows[1].at(-1), /does not fit/);

    // The figures are those of the call that the slider is at.
    await input(".cost .call input", 1);
    await until(() => document.querySelector(".cost .call b").textContent === "1");
    assert.deepEqual(new Set((await cells(".costs")).map(([, , , lost]) => lost)), new Set(["0 of 1"]));

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

  test("W16 the tab of costs replays the session that played: it compacts at the same calls", () =>
    replaysWhatPlayed());

  test("W16 what a summary replaced is found and read back, word for word", async () => {
    await page.focus("#ask");
    await page.keyboard.type("largest remainder discount share");
    await page.keyboard.press("Enter");
    await until(() => /passages? found/.test(document.querySelector(".found").textContent));
    const at = await page.$$eval(".hits .head", (heads) => {
      const found = heads.find(({ textContent }) => textContent.includes("into the summary"));
      if (found.getAttribute("aria-expanded") !== "true") found.click();
      return /message (\d+)/.exec(found.textContent)[1];
    });
    await until((at) => {
      const open = document.querySelector(".hits .open");
      return open?.textContent.includes(`message ${at}`) && open.querySelector("pre")?.getAttribute("aria-busy") === "false";
    }, at);
    const read = await text(".hits pre");
    const said = await page.evaluate(async (at) => {
      const messages = await (await fetch("./transcripts/invoicing-run.json")).json();
      return messages[at - 1].content;
    }, at);
    assert.ok(read.includes(said), read);
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
    await click("#tab-recall");
    await click(".offloads .head");
    await until(() => document.querySelector(".offloads pre")?.getAttribute("aria-busy") === "false");
    assert.equal((await text(".offloads pre")).length > 50, true);
  });

  test("a reload comes back into the same session", async () => {
    const state = () =>
      page.evaluate(() => [
        location.hash,
        ...[".cc-reading", ".legend", ".position"].map((part) => document.querySelector(part).textContent),
      ]);
    const before = await state();
    await page.reload();
    await until(() => document.querySelector(".position b")?.textContent === "168");
    assert.deepEqual(await state(), before);
  });

  test("start over deletes the session", async () => {
    const old = await page.evaluate(() => location.hash.slice(3));
    await click('[aria-label="Start over"]');
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

  test("W16 every preset by the switch: the meter shows its number, and economy is there where it takes effect", async () => {
    const select = ".setup label:nth-of-type(3) select";
    const names = await page.$$eval(`${select} option`, (options) => options.map(({ value }) => value));
    assert.deepEqual(names, ["balanced", "offload", "react", "layered", "factor3", "checkpoint"]);
    const begun = async (change) => {
      const old = await page.evaluate(() => location.hash);
      await change();
      await until((old) => location.hash !== old, old);
      await ready();
      if ((await text(".play")).includes("Pause")) await click(".play");
    };
    const number = async (preset) => {
      const session = await openSession({ store: "memory", contextWindow: 32_768, preset });
      const trigger = triggerOf(session.context.usage());
      await session.close();
      return trigger;
    };
    const shows = (number) => until((number) => Number(document.querySelector(".cc-scale").textContent.replace(/\D/g, "")) === number, number);
    for (const name of names.slice(1)) {
      await begun(() => page.select(select, name));
      assert.equal(await page.$eval(".switch input", ({ disabled }) => disabled), true);
      assert.match(await text("#economy-does"), /balanced only/);
      await shows(await number(name));
    }
    await begun(() => page.select(select, "balanced"));
    await shows(await number("balanced"));
    // By the keyboard, and kept over a reload.
    await page.focus(".switch input");
    await begun(() => page.keyboard.press(" "));
    assert.match(await text(".cc-scale"), /^compacts at [\d.,]+ at the latest$/);
    await runTo(168);
    await click("#tab-cost");
    await until(() => document.querySelector(".costs .chosen th")?.textContent.includes("economy"));
    await replaysWhatPlayed();
    await input(".strip input", 60);
    await until(() => /has cost what a compaction costs/.test(document.querySelector(".last .why").textContent));
    await input(".strip input", 168);
    await page.reload();
    await until(() => document.querySelector(".position b")?.textContent === "168");
    assert.equal(await page.$eval(".switch input", ({ checked }) => checked), true);
    await begun(() => click(".switch input"));
  });

  test("W16 a long replay shows how far it is, lets the page live, and is stopped", async () => {
    const turns = Array.from({ length: 2_500 }, (_, turn) => [
      { role: "user", content: `Look at part ${turn}. ${`Word${turn} `.repeat(30)}` },
      { role: "assistant", content: `Part ${turn} is in order. ${`Word${turn + 1} `.repeat(30)}` },
    ]);
    await click(".drop .button:not(.primary)");
    await input("dialog textarea", JSON.stringify(turns.flat()));
    await until(() => document.querySelector("dialog .primary")?.disabled === false);
    await click("dialog .primary");
    await until(() => document.querySelector(".position")?.textContent.match(/of 5\D?000/));
    await ready();
    await page.evaluate(() => {
      globalThis.gap = 0;
      let last = performance.now();
      globalThis.ticks = setInterval(() => {
        globalThis.gap = Math.max(globalThis.gap, performance.now() - last);
        last = performance.now();
      });
    });
    await click("#tab-cost");
    await until(() => document.querySelector(".running progress")?.value > 0);
    assert.match(await text(".running [role=status]"), /^Replaying /);
    await click(".running button");
    await until(() => document.querySelector(".cost .banner")?.textContent.startsWith("Stopped."));
    assert.equal(await page.$(".running progress"), null);
    const gap = await page.evaluate(() => (clearInterval(globalThis.ticks), globalThis.gap));
    assert.ok(gap < 2_000, `the page waited for ${gap} ms`);
    // It goes on where the user wants that.
    await click(".cost .banner button");
    await until(() => !document.querySelector(".cost .banner"));
    await until(() => document.querySelector(".running progress")?.value > 0);
    await click("#tab-chat");
    if ((await text(".play")).includes("Pause")) await click(".play");
  });

  test("an import names what is wrong, and plays what is right", async () => {
    await click(".drop .button:not(.primary)");
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
    await until(() => document.querySelectorAll(".costs tbody tr").length === 3);
    assert.doesNotMatch(await text(".costs tbody"), /…/);
    assert.equal(await page.$("#panel-cost .error"), null);
  });

  test("no error reached the console", () => assert.deepEqual(errors, []));
}
