/**
 * Sessions over files of which one bit is flipped: everything that an app can see of them is held against what it was. At
 * most the message is missing whose row has the bit, and that is told; nothing else changes without a word; every session
 * opens, goes on, and can be deleted.
 */

import assert from "node:assert/strict";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileStore } from "context-compactor/node";
import { exchange, settled, summariser } from "./api.mjs";
import { batch, journalOf } from "./file-store.mjs";
import { listSessions, openSession } from "./offload.mjs";

const IDS = ["a", "b", "c"];
/** A summary is due soon, and every result but the last ones is offloaded. */
const SMALL = { contextWindow: 6_000, compactAt: { tokens: 1_000 }, keep: { messages: 4 }, summarize: summariser() };
/** Whoever looks changes nothing. */
const LARGE = { contextWindow: 1_000_000, compactAt: { fraction: 1 } };

const said = (id, nth) => exchange(nth, 1_600).map((message) => ({ ...message, content: message.content && `${id}: ${message.content}` }));

/** A directory of sessions that are mostly summarised, in a journal that was written anew and appended to since. */
export async function makeSessions(directory, over) {
  const rounds = async (from, to) => {
    const store = over(fileStore(directory));
    for (let nth = from; nth < to; nth++) {
      for (const id of IDS) {
        const session = await openSession({ id, store, ...SMALL });
        await session.append(...said(id, nth));
        await session.prepare();
        if (nth % 4 === 3) await session.compact();
        await session.close();
      }
    }
    await store.close();
  };
  await rounds(0, 6);
  await writeAnew(directory);
  await rounds(6, 9);
}

/** Lets the journal of a directory be written anew. */
export async function writeAnew(directory) {
  const before = await journalOf(directory);
  const store = fileStore(directory, { rewriteBytes: 1_000 });
  const key = ["jobs", "x", "y"];
  for (let nth = 0; nth < 5; nth++) await store.commit(batch({ puts: [[key, "x".repeat(100_000)]] }));
  await store.commit(batch({ deletes: [key] }));
  await store.close();
  assert.notEqual(await journalOf(directory), before);
}

async function historyOf(session) {
  const history = [];
  const gaps = [];
  for await (const message of session.archive.history({ onGap: (gap) => gaps.push(gap) })) history.push(JSON.stringify(message));
  return { history, gaps };
}

/** What an app sees of a session, and what it is told: at `opening` and later. */
async function look(session) {
  const told = [];
  session.on("data-loss", (event) => told.push(event));
  await settled();
  const opening = told.splice(0);
  const { history, gaps } = await historyOf(session);
  const ledger = await session.context.explain();
  const texts = {};
  for (const { ref } of ledger) if (ref) texts[ref] = await session.recall.read(ref).catch(({ code }) => ({ code }));
  const { messages } = await session.prepare();
  const archive = await new Response(session.archive.jsonl()).text();
  const { problems } = await session.archive.verify();
  const lines = archive.split("\n").filter((line) => line && JSON.parse(line).kind === "message");
  const fates = ledger.map(({ fate, ref }) => `${fate} ${ref ?? ""}`);
  return { history, fates, texts, messages, lines, opening, told, gaps, problems };
}

/** Opens all sessions, does `work` with each, and closes the store. */
async function withAll(directory, over, work, options = { mustExist: true }) {
  const store = over(fileStore(directory));
  const found = {};
  try {
    await Promise.all(IDS.map(async (id) => {
      const session = await openSession({ id, store, ...LARGE, ...options });
      session.on("warning", () => {});
      found[id] = await work(session, id);
      await session.close();
    }));
    return { found, listed: (await listSessions(store)).map(({ id }) => id).sort() };
  } finally {
    await store.close();
  }
}

/** So that an error can be read. */
const short = (text) => (typeof text === "string" ? `${text.length} ${text.slice(0, 40)}` : text);

/** What is seen of each session. */
export const lookAll = async (directory, over) => (await withAll(directory, over, look)).found;

/** `list` without what stands at these places. */
const without = (list, places) => list.filter((_, at) => !places.includes(at));

/**
 * Flips bits of `directory`, each alone; `choose(bits)` yields their numbers. Returns the counts.
 */
export async function flipSessions(directory, over, choose) {
  const names = (await readdir(directory)).sort();
  const files = await Promise.all(names.map(async (name) => ({ path: join(directory, name), bytes: await readFile(join(directory, name)) })));
  const restore = async () => {
    for (const name of await readdir(directory)) if (!names.includes(name)) await rm(join(directory, name));
    for (const { path, bytes } of files) await writeFile(path, bytes);
  };
  const whole = await lookAll(directory, over);
  for (const id of IDS) {
    const { opening, told, gaps, problems, fates, history } = whole[id];
    assert.deepEqual([opening, told, gaps, problems], [[], [], [], []]);
    const summarised = fates.filter((fate) => fate.startsWith("summarized")).length;
    assert.ok(summarised > history.length / 2, `${id}: ${summarised} of ${history.length} messages are summarised`);
  }
  const counts = { flips: 0, "messages lost": 0, "mended or told": 0, "without effect": 0 };
  const sizes = files.map(({ bytes }) => bytes.length * 8);
  for (const bit of choose(sizes.reduce((sum, size) => sum + size, 0))) {
    await restore();
    let [nth, at] = [0, bit];
    while (at >= sizes[nth]) at -= sizes[nth++];
    const { path, bytes } = files[nth];
    const flipped = Buffer.from(bytes);
    flipped[at >> 3] ^= 1 << (at & 7);
    await writeFile(path, flipped);
    const what = `bit ${at & 7} of byte ${at >> 3} of ${names[nth]}`;
    const touched = await one(directory, over, whole, what).catch((error) => {
      throw new Error(`${what}: ${error.message}`, { cause: error });
    });
    counts.flips++;
    counts["messages lost"] += touched.lost;
    counts[touched.isTold ? "mended or told" : "without effect"]++;
  }
  return counts;
}

/** Looks at the sessions of a directory with a flipped bit, goes on with each, and deletes them. */
async function one(directory, over, whole, what) {
  const missing = {};
  const touched = [];
  const first = await withAll(directory, over, async (session, id) => {
    const seen = await look(session);
    missing[id] = checkSeen(seen, whole[id], `${what}, ${id}`);
    if (missing[id].isTold) touched.push(id);
    await session.append({ role: "user", content: `${id} goes on` }, { role: "assistant", content: "fine" });
    await session.prepare();
  });
  const lost = Object.values(missing).flatMap(({ places }) => places).length;
  assert.ok(touched.length <= 1, `one session is touched, not ${touched}`);
  assert.ok(lost <= 1, `one message is missing at most, not ${lost}`);
  assert.deepEqual(first.listed, IDS);

  const again = await withAll(directory, over, async (session, id) => {
    const { history, gaps } = await historyOf(session);
    const { messages } = await session.prepare();
    const more = [`{"role":"user","content":"${id} goes on"}`, '{"role":"assistant","content":"fine"}'];
    assert.deepEqual(history, [...without(whole[id].history, missing[id].places), ...more], `${id}, opened again`);
    assert.deepEqual(gaps.map(({ index }) => index), missing[id].places, `${id}: gaps, opened again`);
    assert.deepEqual(messages.slice(-2).map((message) => JSON.stringify(message)), more);
    await session.close({ delete: true });
  });
  assert.deepEqual(again.listed, []);
  const anew = await withAll(directory, over, async (session) => {
    assert.equal((await session.prepare()).messages.length, 0);
    await session.append({ role: "user", content: "anew" });
  }, {});
  assert.deepEqual(anew.listed, IDS);
  return { lost, isTold: touched.length > 0 };
}

/** Holds what is seen of a session against what it was. Returns the places of the messages that are missing, and whether a word was said. */
export function checkSeen(seen, whole, what) {
  const places = seen.gaps.flatMap(({ index, messages }) => Array.from({ length: messages }, (_, nth) => index + nth));
  assert.deepEqual(seen.history, without(whole.history, places), `${what}: history`);
  assert.deepEqual(seen.lines, without(whole.lines, places), `${what}: archive`);
  const isTold = seen.opening.length + seen.told.length + seen.gaps.length + seen.problems.length > 0;
  // What stands in the context is told at opening, all of it where it is read.
  if (places.length > 0) assert.ok(seen.problems.length > 0, `${what}: verify() names no problem`);
  for (const [ref, text] of Object.entries(whole.texts)) {
    const isLost = places.some((place) => whole.fates[place].endsWith(ref));
    // The row that a reference leads to may be the one: its text stands in the message.
    const isDamaged = seen.texts[ref]?.code === "store_corrupt" && places.length === 0 && seen.problems.length > 0;
    if (!isLost && !isDamaged && ref in seen.texts) assert.deepEqual(short(seen.texts[ref]), short(text), `${what}: ${ref}`);
  }
  if (!isTold) assert.deepEqual(seen, whole, `${what}: nothing is told, and something is another`);
  return { places, isTold };
}
