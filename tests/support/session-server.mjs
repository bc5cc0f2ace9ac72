/** The pages that sessions are tested in, and what they tell the test. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle } from "./bundle.mjs";
import { serve, until } from "./session.mjs";

const SCRIPT = "/js/sessions.js";
const PAGE = `<!doctype html><title>session</title><link rel="icon" href="data:,"><script type="module" src="${SCRIPT}"></script>`;

/**
 * Serves the page of `session-page.mjs`, or of another script beside it. `told` maps paths to functions of what the page
 * posts there. Returns `openPage(session)`, `loads()`, `origin` and `close()`.
 */
export async function serveSessions(told, script = "session-page.mjs") {
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-sessions-"));
  await bundle(`import "./tests/support/${script}";`, join(folder, "sessions.js"));
  let loads = 0;
  const posts = Object.entries({ "/loaded": () => void loads++, ...told });
  const server = await serve({
    "/": PAGE,
    "/js/": folder,
    ...Object.fromEntries(posts.map(([path, tell]) => [path, (body) => tell(JSON.parse(body))])),
  });
  return {
    origin: server.origin,
    /** How often the page was loaded. */
    loads: () => loads,
    /** Opens the page and waits until it can be used. */
    async openPage(session) {
      const { page } = await session.openPage(`${server.origin}/`);
      await ready(page);
      return page;
    },
    async close() {
      await server.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** Summaries that pages ask for, by their mark: each is written when it is released. One that is asked for again is the same. */
export class Summaries {
  #asked = new Map();

  /** What `serveSessions` answers with. */
  ask = (mark) => {
    if (!this.#asked.has(mark)) {
      let release;
      const released = new Promise((resolve) => (release = () => resolve(null)));
      this.#asked.set(mark, { release, released });
    }
    return this.#asked.get(mark).released;
  };

  /** Waits until it is asked for, and returns what lets it be written. */
  async asked(mark) {
    await until(`${mark} asks for a summary`, () => this.#asked.has(mark));
    return this.#asked.get(mark).release;
  }

  clear() {
    this.#asked.clear();
  }
}

/** Waits for the page's steps. */
export async function ready(page) {
  // A hidden page draws no frames, which would be waited for otherwise.
  await page.waitForFunction(() => "sessions" in globalThis, { polling: 100 });
}

/** Calls a step in the page. */
export function call(page, step, ...args) {
  return page.evaluate((step, args) => globalThis.sessions[step](...args), step, args);
}

/** Calls a step in the page's module worker, which is kept for the next call. */
export function callInWorker(page, step, ...args) {
  return page.evaluate(
    (script, step, args) => {
      globalThis.worker ??= new Worker(script, { type: "module" });
      return new Promise((resolve, reject) => {
        globalThis.worker.onmessage = ({ data: { value, error } }) => (error ? reject(new Error(error)) : resolve(value));
        globalThis.worker.onerror = (event) => reject(new Error(event.message));
        globalThis.worker.postMessage({ step, args });
      });
    },
    SCRIPT,
    step,
    args,
  );
}
