/**
 * Browsers whose own database files get a flipped bit between two runs. What the engine makes of it is its affair: it may
 * begin the database anew. Whatever is lost by that is told, nothing is changed in silence, and the session goes on.
 */

import { readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { DRIVEN, startEngine } from "./engines.mjs";
import { generator } from "./random.mjs";
import { makeProfile } from "./session.mjs";
import { call, ready, serveSessions } from "./session-server.mjs";

/** So many sites, each with a database of its own, get a flip in the same run of the browser. */
const TOGETHER = 10;
/** Calls of `append`: a few dozen messages. */
const CALLS = 14;

/** The files of the databases of a profile, by the site that they are of. */
const FILES = {
  chrome: { data: "Default/IndexedDB", isDatabase: (path) => !/^(LOCK|LOG|LOG\.old)$/.test(basename(path)) },
  firefox: { data: "storage/default", isDatabase: (path) => path.includes("/idb/") },
};

/**
 * Flips so many bits in `engine`, each in a database of its own. Returns `counts`, and in `problems` what must not be.
 * `choose` says where: of the bytes of all files of a database, the index of one.
 */
export async function flipBrowser(engine, { flips, seed, progress = () => {}, choose }) {
  const random = generator(seed);
  const counts = { check: "browser flips", of: engine, version: "", seed, flips: 0, "without effect": 0, "databases begun anew": 0 };
  Object.assign(counts, { messages: 0, "messages lost": 0, told: 0, silent: 0, "browser ended": 0, "longest ms": 0, failures: 0 });
  const problems = [];
  const pages = await serveSessions({}, "flips-page.mjs");
  try {
    while (counts.flips < flips) {
      const sites = Array.from({ length: Math.min(TOGETHER, flips - counts.flips) }, (_, nth) => `site${nth}`);
      for (const { what, written, found } of await flipSites(engine, pages, sites, { random, choose }, counts)) {
        counts.flips++;
        const { wrong, ...seen } = check(written, found);
        counts.messages += written.length;
        counts["longest ms"] = Math.max(counts["longest ms"], found.ms);
        for (const [name, number] of Object.entries(seen)) counts[name] += number;
        problems.push(...wrong.map((problem) => `${what}: ${problem}`));
        counts.failures = problems.length;
        progress(counts, what, found);
      }
    }
  } finally {
    await pages.close();
  }
  return { counts, problems };
}

/** Writes a session in each site, flips a bit of each one's database, and looks at what the browser makes of it. */
async function flipSites(engine, pages, sites, bits, counts) {
  const { data, isDatabase } = FILES[DRIVEN[engine].browser];
  const profile = await makeProfile();
  const { port } = new URL(pages.origin);
  /** The steps' answers of all sites, in one run of the browser; in another one where it ended by itself. */
  const run = async (step, ...args) => {
    const answers = [];
    for (let ends = 0; answers.length < sites.length; ) {
      const browser = await startEngine(engine, { profile });
      counts.version = await browser.browser.version();
      try {
        for (const site of sites.slice(answers.length)) {
          const { page } = await browser.openPage(`http://${site}.localhost:${port}/`);
          await ready(page);
          answers.push(await call(page, step, ...args));
          await page.close();
        }
      } catch (error) {
        // It met the damage before the page did.
        if (step === "write" || ++ends > 2) throw error;
        counts["browser ended"]++;
      } finally {
        await browser.close();
      }
    }
    return answers;
  };
  try {
    const written = await run("write", CALLS);
    const flipped = [];
    const files = (await filesIn(join(profile.path, data))).filter(isDatabase);
    for (const site of sites) flipped.push(await flipOne(files.filter((path) => path.includes(site)), bits));
    const found = (await run("look")).map((text) => JSON.parse(text));
    return sites.map((_, nth) => ({ what: flipped[nth], written: written[nth], found: found[nth] }));
  } finally {
    await profile.remove();
  }
}

/** All files under a folder. */
async function filesIn(path) {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name)).sort();
}

/** Flips one bit in these files; returns which. */
async function flipOne(paths, { random, choose = ({ length }) => random(length) }) {
  const files = await Promise.all(paths.map(async (path) => ({ path, bytes: await readFile(path) })));
  const total = files.reduce((sum, { bytes }) => sum + bytes.length, 0);
  if (total === 0) throw new Error("the site has no database");
  let at = choose(Buffer.concat(files.map(({ bytes }) => bytes)));
  const { path, bytes } = files.find(({ bytes }) => at < bytes.length || ((at -= bytes.length), false));
  const bit = random(8);
  bytes[at] ^= 1 << bit;
  await writeFile(path, bytes);
  return `bit ${bit} of byte ${at} of ${basename(path)} (${bytes.length} bytes)`;
}

/** Holds what was found against what was written: what is `wrong`, and what counts. */
export function check(written, { errors, more, again, failed, ...found }) {
  const wrong = [];
  /** How many of these messages are not there, and whether a word was said. */
  const missing = (expected, { history, told, gaps, problems }, when) => {
    let next = 0;
    for (const message of history) {
      const at = expected.indexOf(message, next);
      if (at < 0) wrong.push(`${when}: a message is there that was not written, or stands elsewhere: ${message.slice(0, 80)}`);
      else next = at + 1;
    }
    const lost = expected.length - history.length;
    const losses = [...told.filter(({ kind }) => kind !== "repaired"), ...gaps, ...problems];
    const isTold = losses.length > 0 || errors.length > 0;
    if (lost > 0 && !isTold) wrong.push(`${when}: ${lost} messages are lost, and nobody is told`);
    return { lost, isTold, isSilent: lost > 0 && !isTold };
  };
  const first = missing(written, found, "opened");
  if (failed) wrong.push(`the session does not go on: ${failed.step}: ${failed.code}: ${failed.message}`);
  const second = failed ? { lost: 0 } : missing([...found.history, ...more], again, "opened again");
  const lost = first.lost + second.lost;
  return {
    wrong,
    "messages lost": lost,
    "databases begun anew": found.told.some(({ kind }) => kind === "session") ? 1 : 0,
    told: lost > 0 && !first.isSilent && !second.isSilent ? 1 : 0,
    silent: first.isSilent || second.isSilent ? 1 : 0,
    "without effect": lost === 0 && !first.isTold && wrong.length === 0 ? 1 : 0,
  };
}
