/** Processes that write to one pair of directories: at the same time, killed, and with a copy that is gone meanwhile (D23). */

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { memoryStore, mirrorStore, openSession } from "context-compactor";
import { fileStore } from "context-compactor/node";
import { folder } from "../support/file-store.mjs";
import { run, start } from "../support/file-store-process.mjs";
import { EVERYTHING, TABLES } from "../support/mirror.mjs";

/** Kills of a whole run; `CC_KILLS=500` for a long one. */
const KILLS = Number(process.env.CC_KILLS ?? 3);
const numbers = (count) => Array.from({ length: count }, (_, i) => i);
const acknowledged = (lines) => lines.filter((line) => line.startsWith("appended ")).length;

async function twoFolders(context, options) {
  const parent = await folder(context, options);
  const copies = ["a", "b"].map((name) => join(parent, name));
  return { copies, pair: copies.join(delimiter) };
}

async function historyOf(directories, id) {
  return JSON.parse((await run("history", directories, id)).at(-1));
}

/** The messages of a session, which either copy has alone once the pair was checked: with the same rows. */
async function inBoth(copies, id) {
  const store = mirrorStore(...copies.map((directory) => fileStore(directory)));
  const warnings = [];
  store.notices(({ kind, message }) => kind === "warning" && warnings.push(message));
  // What is to be done is known from the marks: no row is found to be missing, or another one.
  const { repaired, lost } = await store.check();
  assert.deepEqual([repaired, lost, warnings, await store.dataLoss()], [0, 0, [], undefined]);
  await store.close();
  const [one, two] = await Promise.all(copies.map(rowsOf));
  const differing = Object.keys({ ...one, ...two }).filter((key) => one[key] !== two[key]);
  assert.deepEqual(differing, [], "rows that differ between the copies");
  const { messages, fates } = await historyOf(copies[1], id);
  assert.deepEqual(fates, numbers(messages.length));
  return messages;
}

/** Everything in a copy but the mirror's own rows. */
async function rowsOf(directory) {
  const store = fileStore(directory);
  const rows = {};
  for (const table of TABLES) {
    for (const [key, value] of await store.scan([table], EVERYTHING)) {
      if (key[1] !== "mirror") rows[JSON.stringify(key)] = value.damaged ?? Buffer.from(value).toString("base64");
    }
  }
  await store.close();
  return rows;
}

test("D23: two processes append and compact over one pair of directories: each message is in both, which are equal", async (context) => {
  const { copies, pair } = await twoFolders(context);
  const writers = ["a", "b"];
  await Promise.all(writers.map((name) => run("append", pair, "chat", name, 0, 20)));
  const messages = await inBoth(copies, "chat");
  for (const name of writers) {
    const own = messages.filter((message) => message.startsWith(name));
    assert.deepEqual(own, numbers(20).map((at) => `${name} ${at}`));
  }
  assert.notDeepEqual(messages, [...messages].sort(), "the processes never met: nothing was tested");
});

test(`D23: killed ${KILLS} times over a pair of directories, also with a copy gone since: acknowledged is stored`, async (context) => {
  const { copies, pair } = await twoFolders(context, { onDisk: true });
  let stored = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const { child, lines, line, ended } = start(["append", pair, "chat", "a", stored]);
    const wanted = 1 + Math.floor(Math.random() * 20);
    await line(() => acknowledged(lines) >= wanted);
    // In the middle of whatever comes next.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
    child.kill("SIGKILL");
    assert.equal(await ended, "SIGKILL");
    if (kill % 3 > 0) await rm(copies[kill % 3 - 1], { recursive: true });
    const messages = await inBoth(copies, "chat");
    const least = stored + acknowledged(lines);
    assert.ok(messages.length >= least && messages.length <= least + 1, `${messages.length} of ${least}`);
    assert.deepEqual(messages, numbers(messages.length).map((at) => `a ${at}`));
    stored = messages.length;
  }
  context.diagnostic(`${KILLS} kills, ${stored} stored`);
});

test("D23: killed beside another process, which goes on, over a pair of directories", async (context) => {
  const { copies, pair } = await twoFolders(context);
  const other = start(["append", pair, "chat", "b", 0, 40]);
  const told = [];
  for (let kill = 0; kill < KILLS; kill++) {
    const { child, lines, line, ended } = start(["append", pair, "chat", `k${kill}`, 0]);
    await line(() => acknowledged(lines) > Math.random() * 6);
    child.kill("SIGKILL");
    await ended;
    told.push(acknowledged(lines));
  }
  assert.equal(await other.ended, 0, other.errors());
  const messages = await inBoth(copies, "chat");
  assert.equal(messages.filter((message) => message.startsWith("b ")).length, 40);
  for (const [kill, count] of told.entries()) {
    const found = messages.filter((message) => message.startsWith(`k${kill} `));
    assert.deepEqual(found, numbers(found.length).map((at) => `k${kill} ${at}`));
    assert.ok(found.length >= count, `${found.length} of ${count}`);
  }
});

test("D23: memory with a directory as its copy: in another process all of it comes back", async (context) => {
  const directory = join(await folder(context), "a");
  const open = async () => {
    const store = mirrorStore(memoryStore(), fileStore(directory));
    const session = await openSession({ id: "chat", store, contextWindow: 32_000 });
    const told = [];
    session.on("data-loss", ({ kind }) => told.push(kind));
    return { store, session, told };
  };
  const { store, session } = await open();
  for (const at of numbers(5)) await session.append({ role: "user", content: `said ${at}` });
  await store.close();
  const again = await open();
  const found = [];
  for await (const { content } of again.session.archive.history()) found.push(content);
  assert.deepEqual(found, numbers(5).map((at) => `said ${at}`));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(again.told, ["repaired"]);
  await again.store.close();
});
