/** How the engine comes in a browser (Z15, Z17, Z22): the requests that are made, and what is said when none is answered as it should be. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch } from "../support/browser.mjs";
import { VERSION } from "../support/version.mjs";
import { ofAnotherBuild, truncated } from "../support/wasm-files.mjs";

const pkg = fileURLToPath(new URL("../../pkg/", import.meta.url));
const whole = readFileSync(join(pkg, "core.wasm"));
const FILE = "/core.wasm";
const CODE = "/dist/wasm/inline.js";
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".map": "application/json" };

/** What a page or worker does: `run(name)` is one of these. */
const scenario = `
  import * as library from "/dist/entry/main.js";
  const told = ({ code, reason, retryable, message }) => ({ code, reason, retryable, message });
  const opened = (model) => library.openSession({ store: "memory", contextWindow: 8_000, model }).then((session) => session.close().then(() => "open"), told);
  const scenarios = {
    known: () => [library.version(), library.isSupported(), library.isContextOverflow("prompt is too long"), library.isContextOverflow("no")],
    opened: () => opened(),
    openedForClaude: () => opened("claude-opus-4-7"),
    twice: () => Promise.all([opened(), library.listSessions(library.memoryStore()).then(({ length }) => length, told), opened()]),
  };
  export const run = (name) => scenarios[name]();`;
const scripts = {
  "/scenario.js": scenario,
  "/page.js": 'import { run } from "/scenario.js"; globalThis.run = run;',
  "/worker.js": 'import { run } from "/scenario.js"; onmessage = async ({ data }) => postMessage(await run(data)); postMessage("ready");',
  "/service.js": `import { run } from "/scenario.js";
    addEventListener("install", () => skipWaiting());
    addEventListener("activate", (event) => event.waitUntil(clients.claim()));
    addEventListener("message", async ({ data, ports: [port] }) => port.postMessage(await run(data)));`,
};
const PAGE = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.js"></script>';

let server;
let url;
let browser;
/** What is answered in place of a file, by path, and the header of the page's policy. */
let answers;
let policy;
/** Paths that were asked for. */
let asked;

function answer({ url }, response) {
  const path = url.split("?")[0];
  asked.push(path);
  const headers = { "cache-control": "no-store", ...(policy && { "content-security-policy": policy }) };
  const send = (status, type, body) => response.writeHead(status, { ...headers, "content-type": type }).end(body);
  const other = answers[path];
  if (other) return send(other.status ?? 200, other.type ?? "application/wasm", other.body);
  if (path === "/") return send(200, "text/html", PAGE);
  if (path in scripts) return send(200, "text/javascript", scripts[path]);
  try {
    return send(200, TYPES[extname(path)] ?? "text/plain", readFileSync(join(pkg, path)));
  } catch {
    return send(404, "text/plain", "");
  }
}

before(async () => {
  server = createServer(answer);
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  url = `http://127.0.0.1:${server.address().port}/`;
  browser = await launch("chrome");
});
after(async () => {
  await browser?.close();
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
});
beforeEach(() => {
  [answers, policy, asked] = [{}, undefined, []];
});

/** Runs `work` with a page on which `run` is there. */
async function onPage(work) {
  const context = await browser.createBrowserContext();
  try {
    const page = await context.newPage();
    await page.goto(url);
    // Not `waitForFunction`, which a policy may forbid.
    await page.evaluate(async () => {
      while (!globalThis.run) await new Promise((later) => setTimeout(later, 10));
    });
    return await work(page, (name) => page.evaluate((name) => globalThis.run(name), name));
  } finally {
    await context.close();
  }
}

const engineRequests = () => asked.filter((path) => path === FILE || path === CODE);

describe("Chromium", () => {
  test("Z15: the import asks for no engine, and calls at one time ask for its file once", async () => {
    await onPage(async (_, run) => {
      assert.deepEqual(await run("known"), [VERSION, true, true, false]);
      assert.deepEqual(engineRequests(), []);
      assert.deepEqual(await run("twice"), ["open", 0, "open"]);
      assert.deepEqual(engineRequests(), [FILE]);
    });
  });

  const page = { type: "text/html", body: "<!doctype html><title>The app</title>" };
  const CASES = {
    "is not there": { status: 404, type: "text/plain", body: "" },
    "is a page": page,
    "is a page that says it is a module": { body: page.body },
    "is cut off": { body: truncated(whole) },
    "is cut off, and of another type": { type: "application/octet-stream", body: truncated(whole) },
    "is another build's": { body: ofAnotherBuild(whole) },
    "is what the server cannot give now": { status: 503, type: "text/plain", body: "" },
  };
  for (const [what, wrong] of Object.entries(CASES)) {
    test(`Z15: where the file ${what}, the engine comes as code`, async () => {
      answers[FILE] = wrong;
      await onPage(async (_, run) => {
        assert.equal(await run("opened"), "open");
        assert.deepEqual(engineRequests(), [FILE, CODE]);
      });
    });
  }

  test("Z22: a file of another type is compiled all the same", async () => {
    answers[FILE] = { type: "text/plain", body: whole };
    await onPage(async (_, run) => {
      assert.equal(await run("opened"), "open");
      assert.deepEqual(engineRequests(), [FILE]);
    });
  });

  for (const [what, file] of Object.entries({ "404 for both": CASES["is not there"], "the app's page for both": page, "the file of another build": CASES["is another build's"] })) {
    test(`Z17: a page older than the deployment, ${what}: reload`, async () => {
      answers = { [FILE]: file, [CODE]: what.startsWith("the app") ? page : CASES["is not there"] };
      await onPage(async (_, run) => {
        const { code, reason, retryable, message } = await run("opened");
        assert.deepEqual([code, reason, retryable], ["stage_unavailable", "version", false]);
        assert.match(message, /Reload it.*Nothing that was stored is lost/);
        answers = {};
        assert.equal(await run("opened"), "open");
      });
    });
  }

  test("Z22: without a connection the call says so, and with one the same call works", async () => {
    await onPage(async (page, run) => {
      await page.setOfflineMode(true);
      const { code, reason, retryable } = await run("opened");
      assert.deepEqual([code, reason, retryable], ["stage_unavailable", undefined, true]);
      await page.setOfflineMode(false);
      assert.equal(await run("opened"), "open");
    });
  });

  test("Z22: a server that fails for a moment is no matter of versions", async () => {
    const failing = { status: 503, type: "text/plain", body: "" };
    answers = { [FILE]: failing, [CODE]: failing };
    await onPage(async (_, run) => {
      const { code, reason, retryable } = await run("opened");
      assert.deepEqual([code, reason, retryable], ["stage_unavailable", undefined, true]);
      answers = {};
      assert.equal(await run("opened"), "open");
    });
  });

  test("Z6, Z22: the table of a family that the server cannot give now fails its own call, which works again later", async () => {
    const table = "/dist/generated/tables/claude47.js";
    answers = { [table]: { status: 503, type: "text/plain", body: "" } };
    await onPage(async (_, run) => {
      const { code, retryable } = await run("openedForClaude");
      assert.deepEqual([code, retryable], ["stage_unavailable", true]);
      assert.equal(await run("opened"), "open");
      answers = {};
      assert.equal(await run("openedForClaude"), "open");
      assert.equal(asked.filter((path) => path === table).length, 2);
    });
  });

  test("Z17: under a policy that forbids WebAssembly the import works, and calls name the directive", async () => {
    policy = "script-src 'self'";
    await onPage(async (_, run) => {
      assert.deepEqual(await run("known"), [VERSION, false, true, false]);
      const { code, reason, retryable, message } = await run("opened");
      assert.deepEqual([code, reason, retryable], ["stage_unavailable", "csp", false]);
      assert.match(message, /script-src 'self' 'wasm-unsafe-eval'/);
      assert.deepEqual(engineRequests(), [FILE]);
    });
  });

  test("Z17: where WebAssembly is allowed and no connection is, the engine comes as code", async () => {
    policy = "script-src 'self' 'wasm-unsafe-eval'; connect-src 'none'";
    await onPage(async (_, run) => {
      assert.equal(await run("opened"), "open");
      assert.deepEqual(engineRequests(), [CODE]);
    });
  });

  test("Z17: a worker loads the engine as a page does", async () => {
    await onPage(async (page) => {
      const result = await page.evaluate(async () => {
        const worker = new Worker("/worker.js", { type: "module" });
        const next = () => new Promise((resolve, reject) => ((worker.onmessage = ({ data }) => resolve(data)), (worker.onerror = reject)));
        await next();
        worker.postMessage("twice");
        return next();
      });
      assert.deepEqual(result, ["open", 0, "open"]);
      assert.deepEqual(engineRequests(), [FILE]);
    });
  });

  test("Z17: a service worker loads the engine by its file", async () => {
    await onPage(async (page) => {
      const result = await page.evaluate(async () => {
        const { ready } = navigator.serviceWorker;
        await navigator.serviceWorker.register("/service.js", { type: "module" });
        const { port1, port2 } = new MessageChannel();
        const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
        (await ready).active.postMessage("twice", [port2]);
        return answer;
      });
      assert.deepEqual(result, ["open", 0, "open"]);
      assert.deepEqual(engineRequests(), [FILE]);
    });
  });
});
