/** Real browsers for tests. */

import puppeteer from "puppeteer-core";
import { browsers, findBrowser, variable } from "../../scripts/browsers.mjs";

export { browsers };

/** Starts `chrome` or `firefox`, headless. The caller closes it. */
export async function launch(browser) {
  const executablePath = findBrowser(browser);
  if (!executablePath) throw new Error(`${browser} is not installed: install it or set ${variable(browser)}`);
  return puppeteer.launch({
    browser,
    executablePath,
    headless: true,
    // Chromium's sandbox does not run as root, and shared memory is small in containers.
    args: browser === "chrome" ? ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] : [],
  });
}

/**
 * Opens `url` and returns what the page's script leaves in `globalThis.result` (JSON). Its errors, and those of its
 * console, are thrown, unless `onConsole` takes what the console is told.
 */
export async function resultOf(browser, url, { timeout = 30_000, onConsole } = {}) {
  const page = await browser.newPage();
  try {
    const failed = new Promise((_, reject) => {
      page.on("pageerror", reject);
      page.on("console", (message) => {
        if (onConsole) onConsole(message);
        else if (message.type() === "error") reject(new Error(`console: ${message.text()}`));
      });
    });
    const found = page
      .goto(url)
      .then(() => page.waitForFunction("globalThis.result !== undefined", { timeout, polling: 50 }))
      .then(() => page.evaluate("globalThis.result"));
    return await Promise.race([found, failed]);
  } finally {
    await page.close();
  }
}
