/**
 * Sessions in browsers under faults of the platform: a disk without space, a tab that is frozen, slow processors and hidden
 * pages; and whether what is acknowledged was handed to the disk (`storage` rows 8, 11, 13 and 19).
 */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { DRIVEN } from "../support/engines.mjs";
import { check, Told } from "../support/kills-check.mjs";
import { launch, makeProfile, until } from "../support/session.mjs";
import { Summaries, call, ready, serveSessions } from "../support/session-server.mjs";

const chosen = process.env.CC_BROWSERS?.split(",") ?? Object.keys(DRIVEN);
const SESSION = "faults";

let pages;
let told = new Told();
const summaries = new Summaries();

before(async () => {
  pages = await serveSessions({ ...Told.posts(() => told), "/summarise": summaries.ask }, "kills-page.mjs");
});
after(() => pages?.close());

/** Opens the session once more and holds it against what was told. Returns what is lost, and what it says of it. */
async function opened(browser, after) {
  const page = await pages.openPage(browser);
  const since = told.acked.length;
  const found = JSON.parse(await call(page, "read", { session: SESSION, after: `${SESSION}/check/${after}` }));
  told.acked.push({ call: `${SESSION}/check/${after}`, since });
  await page.close();
  const { lost, ...others } = check(found, told).problems;
  assert.deepEqual(others, { torn: [], dangling: [] });
  const losses = [...told.losses, ...found.losses.map((loss) => ({ ...loss, acked: since }))];
  return { lost, losses };
}

async function holds(browser, after) {
  assert.deepEqual(await opened(browser, after), { lost: [], losses: [] });
}

/** A disk of so many MB, in memory; undefined where that is not permitted. */
async function smallDisk(megabytes) {
  const folder = await makeProfile();
  const mount = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder.path]);
  if (mount.status === 0) return { ...folder, unmount: () => spawnSync("umount", ["-l", folder.path]) };
  await folder.remove();
  return undefined;
}

/** Takes all the space that is left. */
function fill(file) {
  for (const size of [1 << 20, 1 << 12]) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(size), { flag: "a" });
    } catch (error) {
      if (error.code !== "ENOSPC") throw error;
    }
  }
}

for (const name of chosen) {
  const { browser, args } = DRIVEN[name];
  const isChrome = browser === "chrome";

  describe(name, () => {
    test("a disk without space: a typed error, nothing is lost, and it goes on when there is space", async (t) => {
      const disk = await smallDisk(200);
      if (!disk) return t.skip("no file system can be mounted here");
      told = new Told();
      const running = await launch(browser, { profile: { path: join(disk.path, "profile") }, args });
      try {
        const page = await pages.openPage(running);
        await call(page, "write", { session: SESSION, who: "w", seed: 7 });
        await told.more(5);
        const filler = join(disk.path, "filler");
        let resume;
        // Chromium's LevelDB may be begun anew, empty, when it is opened over and over without space.
        told.pause = new Promise((resolve) => (resume = resolve));
        fill(filler);
        await until("a commit is refused", () => told.refused.size > 0);
        rmSync(filler);
        resume();
        // Engines need a moment to see it.
        await told.more(5);
        told.stop = true;
        const codes = new Set(told.refused.values());
        t.diagnostic(`refused with ${[...codes].join(", ")}`);
        for (const code of codes) assert.match(code, /^(quota_exceeded|store_unavailable|indeterminate)$/);
        await page.close();
        const { lost, losses } = await opened(running, 0);
        if (told.reset === undefined) assert.deepEqual({ lost, losses }, { lost: [], losses: [] });
        else {
          // Chromium's LevelDB: now and then it takes what a full disk left of its files for damaged, begins anew, and
          // does not say that it did. The session knows how far it was.
          assert.equal(name, "chromium");
          t.diagnostic(`the browser began anew, data loss: ${told.reset}; ${lost.length} lost; ${JSON.stringify(losses)}`);
          const since = losses.findLast(({ kind }) => ["platform", "session", "records"].includes(kind))?.acked;
          assert.ok(since !== undefined, `${lost.length} calls are lost, and no session said so`);
          // What was acknowledged after the last of them is there.
          const later = told.acked.slice(since).filter(({ call }) => lost.some((what) => what.startsWith(`${call} `)));
          assert.deepEqual(later, []);
        }
      } finally {
        told.stop = true;
        await running.close();
        disk.unmount();
        await disk.remove();
      }
    });

    test("what is acknowledged was handed to the disk", async (t) => {
      if (spawnSync("strace", ["-V"]).error) return t.skip("strace is not installed");
      const running = await launch(browser, { args });
      const profile = await makeProfile();
      try {
        const page = await pages.openPage(running);
        await call(page, "open", "synced", "at once");
        await call(page, "say", "synced", ["first"]);
        // Both browsers write IndexedDB from their main process.
        const { pid } = running.browser.process();
        const calls = join(profile.path, "syncs");
        const strace = spawn("strace", ["-f", "-e", "trace=fsync,fdatasync", "-o", calls, "-p", `${pid}`]);
        const ended = new Promise((resolve) => strace.once("exit", resolve));
        let said = "";
        strace.stderr.on("data", (text) => (said += text));
        await until("strace is attached", () => /attached/.test(said) || strace.exitCode !== null);
        if (strace.exitCode !== null) return t.skip(`strace does not work here: ${said}`);
        const texts = Array.from({ length: 30 }, (_, nth) => `message ${nth}`);
        await call(page, "say", "synced", texts);
        strace.kill("SIGINT");
        await ended;
        const syncs = readFileSync(calls, "utf8").split("\n").filter((line) => /f(data)?sync\(/.test(line)).length;
        t.diagnostic(`${syncs} syncs for ${texts.length} appends`);
        assert.ok(syncs >= texts.length, `${syncs} syncs`);
      } finally {
        await running.close();
        await profile.remove();
      }
    });

    test("a hidden page that is left and comes back goes on", async () => {
      told = new Told();
      const running = await launch(browser, { args });
      try {
        const page = await pages.openPage(running);
        await call(page, "write", { session: SESSION, who: "w", seed: 8 });
        await told.more(3);
        const front = await running.browser.newPage();
        await front.bringToFront();
        await told.more(3);
        // It is kept with all that it does, or loaded anew.
        await page.goto("about:blank");
        // Firefox tells no driver of a page that it had kept.
        await page.evaluate(() => history.back()).catch(() => {});
        await ready(page);
        await call(page, "write", { session: SESSION, who: "again", seed: 9 });
        await told.more(5);
        told.stop = true;
        await page.close();
        await holds(running, 0);
      } finally {
        told.stop = true;
        await running.close();
      }
    });

    test("a slow processor: appends and compactions end", { skip: !isChrome && "needs CDP" }, async () => {
      told = new Told();
      const running = await launch(browser, { args });
      try {
        const page = await pages.openPage(running);
        const cdp = await page.createCDPSession();
        await cdp.send("Emulation.setCPUThrottlingRate", { rate: 8 });
        await call(page, "write", { session: SESSION, who: "w", seed: 1 });
        await told.more(8);
        await until("a compaction is acknowledged", () => told.counts().compactions > 0);
        told.stop = true;
        await page.close();
        await holds(running, 0);
      } finally {
        told.stop = true;
        await running.close();
      }
    });

    const skip = !isChrome && "needs CDP";
    test("a frozen tab in the middle of a compaction: the others go on, and it is told", { skip }, async () => {
      // What another browser's pages asked is not for these.
      summaries.clear();
      const running = await launch(browser, { args });
      try {
        const [frozen, other] = [await pages.openPage(running), await pages.openPage(running)];
        const texts = Array.from({ length: 12 }, (_, nth) => `before ${nth} ${"a long text ".repeat(50)}`);
        await call(frozen, "open", "frozen", "frozen");
        await call(frozen, "say", "frozen", texts);
        await call(other, "open", "frozen", "other");
        const asleep = call(frozen, "compact", "frozen");
        const release = await summaries.asked("frozen");
        const cdp = await frozen.createCDPSession();
        await cdp.send("Page.setWebLifecycleState", { state: "frozen" });
        release();
        const awake = call(other, "compact", "frozen");
        (await summaries.asked("other"))();
        const won = await awake;
        assert.equal(won.success, true);
        await call(other, "say", "frozen", ["the other goes on"]);
        await cdp.send("Page.setWebLifecycleState", { state: "active" });
        const lost = await asleep;
        assert.deepEqual([lost.success, lost.code], [false, "conflict"]);
        await call(frozen, "say", "frozen", ["so does the one that was frozen"]);
        const { messages, ledger } = await call(other, "view", "frozen");
        const said = ["the other goes on", "so does the one that was frozen"].map((content) => ({ role: "user", content }));
        assert.deepEqual(messages, [...won.messages, ...said]);
        assert.equal(ledger.length, texts.length + said.length);
      } finally {
        await running.close();
      }
    });
  });
}
