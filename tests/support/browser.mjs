/** Real browsers for tests: found on the system, driven over BiDi or CDP, with a profile that outlives a kill. */

import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, extname, join, normalize, sep } from "node:path";
import puppeteer from "puppeteer-core";

const BROWSERS = {
  chromium: {
    variable: "CHROME_BIN",
    programs: ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"],
    install: "apt-get install chromium",
    options: {
      browser: "chrome",
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"],
    },
  },
  firefox: {
    variable: "FIREFOX_BIN",
    programs: ["firefox-esr", "firefox"],
    install: "apt-get install firefox-esr",
    options: { browser: "firefox" },
  },
};

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
};

/** The path of browser `name`; throws an error that says what to install. */
export function findBrowser(name) {
  const { variable, programs, install } = BROWSERS[name];
  const candidates = process.env[variable]
    ? [process.env[variable]]
    : programs.flatMap((program) => process.env.PATH.split(delimiter).map((folder) => join(folder, program)));
  const found = candidates.find((path) => existsSync(path));
  if (!found) throw new Error(`No ${name} here: \`${install}\`, or set ${variable} to its path`);
  return found;
}

/** A folder for a browser's data. Pass it to `launch` again to reopen the same data. */
export async function makeProfile() {
  const path = await mkdtemp(join(tmpdir(), "context-compactor-profile-"));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }) };
}

/**
 * Starts "chromium" or "firefox". `profile` is one of `makeProfile`, else a temporary one; `args` and `preferences`
 * (Firefox) are added. Returns `browser` (puppeteer's), `openPage(url)` with the console errors and uncaught errors
 * of the page in `errors`, `close()`, and `kill()`, which ends every process of the browser as a power button would.
 */
export async function launch(name, { profile, args = [], preferences = {} } = {}) {
  const { options } = BROWSERS[name];
  const browser = await puppeteer.launch({
    ...options,
    executablePath: findBrowser(name),
    headless: true,
    args: [...(options.args ?? []), ...args],
    extraPrefsFirefox: preferences,
    userDataDir: profile?.path,
    timeout: 90_000,
    protocolTimeout: 90_000,
  });
  const child = browser.process();
  return {
    browser,
    async openPage(url) {
      const page = await browser.newPage();
      const errors = [];
      page.on("pageerror", (error) => errors.push(String(error)));
      page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
      await page.goto(url);
      return { page, errors };
    },
    close: () => browser.close(),
    async kill() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      // The browser leads a process group of its own.
      process.kill(-child.pid, "SIGKILL");
      await ended;
      // Puppeteer puts the profile's settings back when the process has ended: wait, the profile is used again.
      const restored = browser.close().catch(() => {});
      await Promise.race([restored, new Promise((resolve) => setTimeout(resolve, 5_000))]);
    },
  };
}

/**
 * Serves folders and handlers on localhost. `routes` maps a URL's beginning to a folder, a text (as HTML), or a
 * function `(body) => answer` for POST, where the answer is sent as JSON. Returns `origin` and `close()`.
 */
export async function serve(routes) {
  const server = createServer((request, response) => {
    answer(routes, request, response).catch((error) => response.writeHead(500).end(String(error)));
  });
  await new Promise((resolve) => server.listen(0, "localhost", resolve));
  return {
    origin: `http://localhost:${server.address().port}`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(routes, request, response) {
  const { pathname } = new URL(request.url, "http://localhost");
  const prefix = Object.keys(routes)
    .filter((route) => pathname === route || (route.endsWith("/") && pathname.startsWith(route)))
    .sort((a, b) => b.length - a.length)[0];
  const route = routes[prefix];
  if (route === undefined) return response.writeHead(404).end();
  if (typeof route === "function") {
    let body = "";
    for await (const chunk of request) body += chunk;
    return response
      .setHeader("content-type", "application/json")
      .end(JSON.stringify(await route(body)) ?? "null");
  }
  if (route.startsWith("<")) return response.setHeader("content-type", "text/html").end(route);
  const path = normalize(join(route, decodeURIComponent(pathname.slice(prefix.length)) || "index.html"));
  if (!path.startsWith(normalize(route + sep)) || !existsSync(path)) return response.writeHead(404).end();
  response
    .setHeader("content-type", TYPES[extname(path)] ?? "application/octet-stream")
    .end(await readFile(path));
}
