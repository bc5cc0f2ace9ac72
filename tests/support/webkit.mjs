/**
 * WebKitGTK's own small browser, on a display that nobody sees, with a profile that outlives a kill. It is driven by no
 * protocol: a page that was opened with `#remote=` asks there what to do (`remote.mjs`).
 */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { promisify } from "node:util";
import { findBrowser, variable } from "../../scripts/browsers.mjs";

/** As many tabs as are open at once: it opens them when it starts, and no more. */
const TABS = 3;
/** A tab that has not come by then is dead. */
const OPENS_WITHIN_MS = 15_000;

/**
 * Starts it on the data of `profile`, one of `makeProfile`. Returns what `launch` returns: `browser`, `openPage(url)`,
 * `close()` and `kill()`.
 */
export async function launchWebkit({ profile }) {
  const program = findBrowser("webkit");
  if (!program) throw new Error(`WebKitGTK is not installed: install it or set ${variable("webkit")}`);
  const env = {
    ...process.env,
    DISPLAY: await display(),
    GDK_BACKEND: "x11",
    NO_AT_BRIDGE: "1",
    HOME: profile.path,
    XDG_CACHE_HOME: `${profile.path}/cache`,
    XDG_CONFIG_HOME: `${profile.path}/config`,
    XDG_DATA_HOME: `${profile.path}/data`,
    XDG_RUNTIME_DIR: profile.path,
    WEBKIT_DISABLE_COMPOSITING_MODE: "1",
  };
  const remote = await serveTabs();
  let child;
  const end = async () => {
    if (child && child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      // It leads a process group of its own.
      process.kill(-child.pid, "SIGKILL");
      await ended;
    }
    await remote.close();
  };
  return {
    browser: {
      process: () => child,
      version: async () => (await promisify(execFile)(program, ["--version"], { env })).stdout.trim(),
    },
    async openPage(url) {
      if (!child) {
        const tabs = Array(TABS).fill(`${url}#remote=${remote.origin}`);
        child = spawn(program, tabs, { env, detached: true, stdio: "ignore" });
      }
      return { page: await remote.next() };
    },
    close: end,
    kill: end,
  };
}

/** Where tabs ask what to do. `next()` resolves to a tab that does nothing yet. */
async function serveTabs() {
  const idle = [];
  const asked = new Map();
  let wanted = () => {};
  const server = createServer(async (request, response) => {
    response.setHeader("access-control-allow-origin", "*");
    if (request.method === "GET") {
      // What it is to do is the answer.
      const tab = new URL(request.url, "http://localhost").searchParams.get("tab");
      const waiting = { tab, response };
      response.on("close", () => idle.splice(idle.indexOf(waiting) >>> 0, 1));
      const of = asked.get(tab);
      if (of) of.arrived(response);
      else {
        idle.push(waiting);
        wanted();
      }
      return;
    }
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const { tab, value, error } = JSON.parse(body);
    asked.get(tab)?.answered(value, error);
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "localhost", resolve));

  /** A tab as `session-server.mjs` uses pages: it calls steps in it. */
  function pageOf({ tab, response }) {
    let free = response;
    let arrived = () => {};
    let settle;
    asked.set(tab, {
      arrived(next) {
        free = next;
        arrived();
      },
      answered(value, error) {
        if (error === undefined) settle?.resolve(value);
        else settle?.reject(new Error(error));
      },
    });
    const send = async (order) => {
      if (!free) await new Promise((resolve) => (arrived = resolve));
      free.end(JSON.stringify(order));
      free = undefined;
    };
    return {
      async waitForFunction() {},
      async evaluate(_, step, args) {
        const answer = new Promise((resolve, reject) => (settle = { resolve, reject }));
        await send({ step, args });
        return answer;
      },
      /** The page ends; another one of the same address takes its place. */
      async close() {
        await send({ end: true });
        asked.delete(tab);
      },
    };
  }

  return {
    origin: `http://localhost:${server.address().port}`,
    async next() {
      const until = Date.now() + OPENS_WITHIN_MS;
      while (idle.length === 0) {
        if (Date.now() > until) throw new Error("no tab of WebKitGTK answers");
        await Promise.race([
          new Promise((resolve) => (wanted = resolve)),
          new Promise((resolve) => setTimeout(resolve, 1_000)),
        ]);
      }
      return pageOf(idle.shift());
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

let shown;

/** A display, begun once and ended with the process. */
function display() {
  shown ??= (async () => {
    const stdio = ["ignore", "ignore", "ignore", "pipe"];
    const server = spawn("Xvfb", ["-displayfd", "3", "-screen", "0", "800x600x24", "-nolisten", "tcp", "-noreset"], { stdio });
    process.once("exit", () => server.kill());
    const failed = once(server, "error").then(([cause]) => {
      throw new Error("WebKitGTK needs a display: install Xvfb", { cause });
    });
    const [number] = await Promise.race([once(server.stdio[3], "data"), failed]);
    // It lives as long as this process, and does not keep it.
    server.stdio[3].unref();
    server.unref();
    return `:${String(number).trim()}`;
  })();
  return shown;
}
