/**
 * Browsers that are killed while pages append to a session and compact it (`storage` rows 1 to 4): the whole browser, what
 * runs its pages, or what runs its storage. A seed decides what is killed, when, and what each page does; how far they are
 * by then is the machine's affair.
 */

import { readFileSync, readdirSync } from "node:fs";
import { ENGINES, startEngine } from "./engines.mjs";
import { check, Told } from "./kills-check.mjs";
import { KILLS_OF_A_SESSION, Sum } from "./kills-sum.mjs";
import { generator } from "./random.mjs";
import { makeProfile } from "./session.mjs";
import { call, serveSessions } from "./session-server.mjs";

/**
 * What can be killed, by what stands in a process's command line; `browser` is all of them. IndexedDB itself is in the main
 * process of today's browsers, in which it ends with the browser; Chromium's service has the rest of storage.
 */
const RENDERER = { chrome: /--type=renderer/, firefox: /-contentproc .*\btab$/, webkit: /WebKitWebProcess/ };
/** WebKit's is the process that its pages reach their server through, too: they end with it. */
const STORAGE = {
  chrome: /--utility-sub-type=storage\.mojom\.StorageService/,
  webkit: /WebKit(Network|Web)Process/,
};

/**
 * Kills `engine` so many times. Returns the counts and the problems that were found, with the kill after which each was.
 * `progress` is called after each kill.
 */
export async function killBrowser(engine, { kills, seed, progress = () => {} }) {
  const { browser: name, targets } = ENGINES[engine];
  const random = generator(seed);
  const first = random(targets.length);
  const profile = await makeProfile();
  let told = new Told();
  const isWebkit = name === "webkit";
  const start = () => startEngine(engine, { profile });
  let browser = await start();
  const sum = new Sum(engine, seed, await browser.browser.version());
  const pages = await serveSessions(Told.posts(() => told), "kills-page.mjs");
  try {
    for (let nth = 0; nth < kills; nth++) {
      const target = targets[(first + nth) % targets.length];
      const session = `killed${Math.floor(nth / KILLS_OF_A_SESSION)}`;
      if (nth % KILLS_OF_A_SESSION === 0) told = sum.begin();
      told.stop = false;
      const open = [];
      for (let tab = random(2); tab >= 0; tab--) {
        const page = await pages.openPage(browser);
        await call(page, "write", { session, who: `w${nth}t${tab}`, seed: random(1 << 30) });
        open.push(page);
      }
      await told.more(4 + random(12));
      await new Promise((resolve) => setTimeout(resolve, random(200)));
      if (target === "browser") {
        await browser.kill();
        browser = await start();
      } else {
        killOnly(browser, (target === "renderer" ? RENDERER : STORAGE)[name]);
        // Without storage, Chromium's pages go on as soon as there is another.
        if (target === "storage" && name === "chrome") await told.more(4);
        told.stop = true;
        for (const page of open) await within(isWebkit ? 500 : 5_000, page.close());
      }
      // When those that it had were killed, WebKitGTK opens no more pages, and Firefox sometimes.
      const opensMore = target === "browser" || !isWebkit;
      let page = opensMore ? await within(20_000, pages.openPage(browser)) : undefined;
      if (!page) {
        await browser.kill();
        browser = await start();
        page = await pages.openPage(browser);
      }
      const after = `${session}/check/${nth}`;
      const since = told.acked.length;
      const found = JSON.parse(await call(page, "read", { session, after }));
      told.acked.push({ call: after, since });
      sum.add(check(found, told), `kill ${nth} (${target})`, Boolean(found.verified));
      await within(5_000, page.close());
      progress(nth + 1, sum.counts());
    }
  } finally {
    told.stop = true;
    await browser?.close().catch(() => {});
    await pages.close();
    await profile.remove();
  }
  return sum;
}

/** Processes of a browser, led by `leader`, whose command line is like this. */
function processesOf(leader, like) {
  return readdirSync("/proc").filter((pid) => {
    try {
      // The name, which stands in brackets, may have spaces.
      const group = Number(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ")[2]);
      return group === leader && like.test(readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim());
    } catch {
      // No process, or one that has just ended.
      return false;
    }
  });
}

/** Ends them. */
function killOnly({ browser }, like) {
  const found = processesOf(browser.process().pid, like);
  if (found.length === 0) throw new Error(`no process of the browser is like ${like}`);
  for (const pid of found) {
    try {
      process.kill(Number(pid), "SIGKILL");
    } catch (error) {
      if (error.code !== "ESRCH") throw error;
    }
  }
}

/** Waits for what a page or a browser may never answer; undefined when it does not. */
function within(ms, promise) {
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, ms)));
  return Promise.race([promise.catch(() => {}), late]).finally(() => clearTimeout(timer));
}
