/** The first screen as somebody who comes by meets it, and what they do there: look, ask, drop a transcript, share a report. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { browsers, launch } from "../../tests/support/browser.mjs";
import { serve } from "../../tests/support/serve.mjs";
import { transcripts } from "../transcript/generate.mjs";

/** Until something is seen. */
const FIRST_MS = 5_000;
/** Where other programs run, each gets its part of the processors. */
const patience = () => FIRST_MS * Math.max(1, loadavg()[0] / availableParallelism());
const outDir = mkdtempSync(join(tmpdir(), "first-"));
const TRANSCRIPTS = transcripts();
let server;

before(async () => {
  await build({ root: fileURLToPath(new URL("..", import.meta.url)), logLevel: "error", build: { outDir, emptyOutDir: true } });
  server = await serve(outDir);
});
after(async () => {
  await server?.close();
  rmSync(outDir, { recursive: true, force: true });
});

/** Messages in which every word, name and number is one that nothing else says; roles and the pairing of calls are as they were. */
function marked(messages) {
  const ids = new Map();
  const word = (text) => text.replace(/\p{L}+/gu, ({ length }) => "zq".repeat(Math.ceil(length / 2))).replace(/\d+/g, ({ length }) => "7".repeat(length + 5));
  const walk = (value, key) => {
    if (Array.isArray(value)) return value.map((item) => walk(item, key));
    if (typeof value === "object" && value !== null) return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, walk(inner, name)]));
    if (typeof value !== "string" || key === "role" || key === "type") return value;
    if (key === "id" || key === "tool_call_id") return ids.get(value) ?? ids.set(value, `zq${ids.size}`).get(value);
    if (key === "arguments") return JSON.stringify({ zq: word(value) });
    return word(value);
  };
  return walk(messages);
}
const MARK = /zq|7{5}/i;

/** A history as Claude Code keeps it: a line for each block. */
function asClaudeCode(messages) {
  const lines = messages.flatMap((message, nth) =>
    message.role === "assistant" ? message.content.map((block) => ({ type: "assistant", message: { id: `m${nth}`, role: "assistant", content: [block] } })) : [{ type: message.role, message }],
  );
  const rest = (at) => ({ parentUuid: at === 0 ? null : `u${at - 1}`, uuid: `u${at}`, sessionId: "s", timestamp: "2026-01-02T03:04:05Z" });
  return lines.map((line, at) => JSON.stringify({ ...rest(at), ...line })).join("\n");
}

for (const name of browsers) describe(name, () => firstIn(name));

function firstIn(name) {
  let browser, page;
  const errors = [];

  before(async () => {
    browser = await launch(name);
  });
  after(() => browser?.close());

  const text = (selector) => page.$eval(selector, (element) => element.textContent);
  const click = (selector) => page.$eval(selector, (element) => element.click());
  const until = (condition, ...values) => page.waitForFunction(condition, { timeout: 60_000, polling: 50 }, ...values);
  const number = (digits) => Number(digits.replace(/\D/g, ""));
  /** Somebody comes for the first time. Resolves to the milliseconds until before and after are seen. */
  async function visit() {
    await page?.browserContext().close();
    page = await (await browser.createBrowserContext()).newPage();
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.setViewport({ width: 1280, height: 800 });
    await page.goto(`${server.url}/`);
    const seen = await until(() => document.querySelector(".rows") && performance.now());
    return Math.round(await seen.jsonValue());
  }
  const drop = (content) =>
    page.evaluate((content) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([content], "session.jsonl"));
      for (const type of ["dragover", "drop"]) document.body.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
    }, content);
  async function report() {
    await click(".lost .button:last-child");
    await until(() => document.querySelector(".report")?.getAttribute("aria-busy") === "false");
    const said = await text(".report");
    await page.keyboard.press("Escape");
    await until(() => !document.querySelector("dialog"));
    return said;
  }
  async function play() {
    // What leads is over.
    await until(() => document.querySelector(".play").textContent.includes("Play"));
    await click(".speeds label:last-child input");
    await click(".play");
    await until(() => document.querySelector(".play").textContent.includes("Ended"));
  }

  test("before and after are there within five seconds, and then nothing moves", async (context) => {
    const ms = await visit();
    const most = Math.round(patience());
    context.diagnostic(`first before and after: ${ms} ms, of ${most} with what else runs`);
    assert.ok(ms < most, `${ms} of ${most} ms`);
    await until(() => document.querySelector(".play").textContent.includes("Play"));
    const [before, after] = await page.$$eval(".size b", (sizes) => sizes.map(({ textContent }) => textContent));
    assert.ok(number(after) < number(before) / 2, `${before}, ${after}`);
    const pairs = await page.$$eval(".rows .pair", (rows) => rows.map((row) => [...row.children].map(({ textContent }) => textContent)));
    assert.ok(pairs.length > 5, String(pairs.length));
    for (const [was, is] of pairs) assert.ok(/^Before: /.test(was) && /^After: .*off_/s.test(is), `${was}\n${is}`);
  });

  test("the first screen says in one sentence what happens, and that nothing is lost", async () => {
    const seen = await page.$$eval(".intro h1, .lead, .drop, .sizes, .rows, .lost", (parts) =>
      parts.map((part) => [part.className || part.localName, part.getBoundingClientRect().bottom]),
    );
    assert.deepEqual(seen.filter(([, bottom]) => bottom > 800), [], "not on the first screen");
    assert.match(await text("h1"), /nothing is lost/);
    const [, messages, total, room] = /^A recorded run of (\d+) messages comes to ([\d.,]+) tokens, but the model has room for ([\d.,]+):/.exec(await text(".lead"));
    assert.equal(Number(messages), JSON.parse(TRANSCRIPTS["invoicing-run.json"]).length);
    assert.ok(number(total) > number(room));
    assert.match(await text(".lost"), /^Lost: nothing\. \d+ messages left or became shorter; all are kept here\./);
    // What it comes to without compaction is drawn before it happens.
    const [, at] = /over at (\d+)/.exec(await text(".chart .overflow"));
    assert.ok(Number(at) > Number(await text(".position b")));
    assert.match(await text(".without"), new RegExp(`refused from message ${at} on`));
  });

  test("the first thing to do is to give a transcript, by the keyboard too", async () => {
    const first = await page.$eval("main", (main) => main.querySelector("button, a, input:not([tabindex='-1']), select").textContent);
    assert.equal(first, "Choose a file");
    await page.focus(".drop .button:not(.primary)");
    await page.keyboard.press("Enter");
    await until(() => document.querySelector("dialog[open] textarea"));
    await page.keyboard.press("Escape");
    await until(() => !document.querySelector("dialog"));
  });

  test("a name that left is asked for, and its text comes back with the name in it", async () => {
    const asked = await text(".names .chip");
    assert.equal((await text(".rows .after")).includes(asked), false);
    await click(".names .chip");
    await until(() => document.querySelector(".hits .open pre")?.getAttribute("aria-busy") === "false");
    assert.equal((await text(".hits .open mark")).toLowerCase(), asked.toLowerCase());
    assert.match(await text(".hits .open .change"), /left, /);
    assert.match(await text(".found"), /passages? found/);
  });

  test("everything is read back from the store, word for word", async () => {
    await play();
    await click(".lost .button");
    await until(() => /word for word/.test(document.querySelector(".proof").textContent));
    assert.match(await text(".proof"), /: 168 of 168 messages, word for word; nothing is damaged/);
  });

  test("a report has the numbers of the run, and none of its content", async () => {
    const said = await report();
    assert.match(said, /\| played \| 168 of 168 messages \|/);
    assert.match(said, /\| read back from the store \| 168 of 168 messages, word for word; damaged: 0 \|/);
    const folds = said.split("\n").filter((line) => /^\| \d+ \| \d+ \|/.test(line));
    assert.ok(folds.length >= 3, said);
    await drop(JSON.stringify(marked(JSON.parse(TRANSCRIPTS["invoicing-run.json"]))));
    await until(() => /^Your history of 168 messages/.test(document.querySelector(".lead").textContent) && document.querySelector(".rows"));
    assert.match(await text(".rows"), MARK);
    await play();
    const own = await report();
    assert.match(own, /\| played \| 168 of 168 messages \|/);
    assert.match(own, /^\| 1 \| \d+ \|/m);
    assert.doesNotMatch(own, MARK);
  });

  test("a transcript of an agent that is dropped plays at once, in a window that it outgrows", async () => {
    const messages = JSON.parse(TRANSCRIPTS["queue-triage.json"]);
    await drop(asClaudeCode(messages));
    await until((length) => document.querySelector(".lead").textContent.startsWith(`Your history of ${length} messages`) && document.querySelector(".rows"), messages.length);
    assert.match(await text(".lead"), /but the model has room for 8\D?192/);
    await play();
    await click(".lost .button");
    await until(() => /word for word/.test(document.querySelector(".proof").textContent));
    assert.match(await text(".proof"), new RegExp(`: ${messages.length} of ${messages.length} messages`));
  });

  test("a file that is no history is answered with what is wrong", async () => {
    await drop("not a history");
    await until(() => document.querySelector("dialog .error"));
    assert.match(await text("dialog .error"), /not valid JSON/);
    await page.keyboard.press("Escape");
  });

  test("no error reached the console", () => assert.deepEqual(errors, []));
}
