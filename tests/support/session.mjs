/** Real browsers for tests of storage: with a profile that outlives a kill. */

import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize, sep } from "node:path";
import puppeteer from "puppeteer-core";
import { findBrowser, variable } from "../../scripts/browsers.mjs";

const OPTIONS = {
  chrome: {
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"],
  },
  firefox: { args: [] },
};

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
};

/** A folder for a browser's data. Pass it to `launch` again to reopen the same data. */
export async function makeProfile() {
  const path = await mkdtemp(join(tmpdir(), "context-compactor-profile-"));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }) };
}

/**
 * Starts `chrome` or `firefox`. `profile` is one of `makeProfile`, else a temporary one; `args` and `preferences`
 * (Firefox) are added. Returns `browser` (puppeteer's), `openPage(url)` with the console errors and uncaught errors
 * of the page in `errors`, `close()`, and `kill()`, which ends every process of the browser as a power button would.
 */
export async function launch(name, { profile, args = [], preferences = {} } = {}) {
  const executablePath = findBrowser(name);
  if (!executablePath) throw new Error(`${name} is not installed: install it or set ${variable(name)}`);
  const browser = await puppeteer.launch({
    browser: name,
    executablePath,
    headless: true,
    args: [...OPTIONS[name].args, ...args],
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
    async close() {
      // A browser that was killed, or that hangs, does not answer.
      const ended = new Promise((resolve) => setTimeout(resolve, 20_000).unref());
      await Promise.race([browser.close().catch(() => {}), ended]);
      if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
    },
    async kill() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      // The browser leads a process group of its own.
      process.kill(-child.pid, "SIGKILL");
      await ended;
      // Puppeteer puts the profile's settings back when the process has ended: wait, the profile is used again.
      const restored = browser.close().catch(() => {});
      await Promise.race([restored, new Promise((resolve) => setTimeout(resolve, 5_000))]);
      const backups = ["prefs.js", "user.js"].map((file) => join(profile?.path ?? "", `${file}.puppeteer`));
      for (let tries = 0; profile && backups.some((file) => existsSync(file)) && tries < 100; tries++) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
  };
}

/** Waits until it holds, a minute at most. */
export async function until(what, holds) {
  for (const end = Date.now() + 60_000; !(await holds()); ) {
    if (Date.now() > end) throw new Error(`${what}: not within a minute`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/**
 * Serves folders and handlers on localhost. `routes` maps a URL's beginning to a folder, a text (as HTML), or a
 * function `(body) => answer` for POST, where the answer is sent as JSON. Returns `origin` and `close()`.
 */
export async function serve(routes) {
  const server = createServer((request, response) => {
    answer(routes, request, response).catch((error) => response.writeHead(500).end(String(error)));
  });
  // A connection that is closed when it was idle for a while may be one that is used again at that moment.
  server.keepAliveTimeout = 0;
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
