/** The pages of the command line in real browsers (E24): nothing is cut off, overlaps, or is hard to read, on any screen. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, describe, test } from "node:test";
import { browsers, launch } from "../support/browser.mjs";
import { cli, files } from "../support/cli.mjs";

const folder = mkdtempSync(join(tmpdir(), "context-compactor-"));
after(() => rmSync(folder, { recursive: true }));

const PAGES = {
  inspect: ["claude-code"],
  compact: ["openai-lines", "--window", "16k", "-o", "out.jsonl"],
  replay: ["openai-body", "--window", "32k", "--policies", "none,balanced"],
};

before(async () => {
  for (const [kind, text] of Object.entries(files)) writeFileSync(join(folder, kind), text);
  for (const [command, args] of Object.entries(PAGES)) {
    const { code, stderr } = await cli([command, ...args, "--report", `${command}.html`], { cwd: folder });
    assert.equal(code, 0, stderr);
  }
});

/** What is wrong with how a page looks, in the page. */
function faults() {
  const found = [];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) found.push(`${scrollWidth} pixels of ${clientWidth}`);
  const seen = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const numbers = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => {
    const [red, green, blue] = numbers(color).map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const groundOf = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const { backgroundColor } = getComputedStyle(one);
      if ((numbers(backgroundColor)[3] ?? 1) > 0) return backgroundColor;
    }
  };
  for (const element of document.querySelectorAll("h1, h2, h3, p, td, th, dt, dd *, summary, code, .chart span, figcaption span, li")) {
    if (!seen(element) || element.textContent.trim() === "") continue;
    const text = element.textContent.slice(0, 40);
    const [one, other] = [light(getComputedStyle(element).color), light(groundOf(element))].sort((a, b) => b - a);
    if ((one + 0.05) / (other + 0.05) < 4.5) found.push(`${text}: contrast ${((one + 0.05) / (other + 0.05)).toFixed(1)}`);
    const range = document.createRange();
    range.selectNodeContents(element);
    const { width, height } = range.getBoundingClientRect();
    if (element.matches(".number, .name, .chart span") && height > 32) found.push(`${text}: broken into ${Math.round(height)} pixels`);
    if (width > clientWidth) found.push(`${text}: ${width} pixels wide`);
  }
  for (const row of document.querySelectorAll("tr")) {
    const boxes = [...row.children].filter(seen).map((cell) => [cell, cell.getBoundingClientRect()]);
    for (const [nth, [cell, box]] of boxes.entries()) {
      for (const [other, { left, right, top, bottom }] of boxes.slice(nth + 1)) {
        const isOver = box.left < right - 1 && left < box.right - 1 && box.top < bottom - 1 && top < box.bottom - 1;
        if (isOver) found.push(`${cell.textContent} is over ${other.textContent}`);
      }
    }
  }
  return found;
}

for (const name of browsers) {
  describe(name, () => {
    let browser;
    before(async () => (browser = await launch(name)));
    after(() => browser.close());

    for (const command of Object.keys(PAGES)) {
      test(`E24: the page of ${command} is readable at 1280 and 360 pixels, light and dark`, async () => {
        for (const width of [1280, 360]) {
          for (const scheme of ["light", "dark"]) {
            const page = await browser.newPage();
            await page.setViewport({ width, height: 900 });
            if (name === "chrome") await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
            await page.goto(pathToFileURL(join(folder, `${command}.html`)).href);
            assert.deepEqual(await page.evaluate(faults), [], `${width} ${scheme}`);
            assert.match(await page.title(), /· context-compactor$/);
            await page.close();
          }
        }
      });
    }
  });
}
