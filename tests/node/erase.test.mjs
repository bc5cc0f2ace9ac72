/** D24: nothing of an erased message is left in the files of any store. */

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { encryptedStore, importSession, memoryStore, mirrorStore, openSession } from "context-compactor";
import { fileStore } from "context-compactor/node";
import { folder } from "../support/file-store.mjs";

const SECRET = "zanzibarkey";
const SUMMARY = `## Current Status\nThe user asked about the parser.\nThe token is ${SECRET}, keep it.\nThe tools answered, and the work goes on.`;

const options = (store) => ({
  id: "chat",
  contextWindow: 8_000,
  store,
  summarize: async () => SUMMARY,
  logger: () => {},
});

/** A session whose message 2 tells the secret, in a result that was moved to the store, and a summary that repeats it. */
async function leaked(store) {
  const session = await openSession(options(store));
  const call = { id: "c", type: "function", function: { name: "read_file", arguments: "{}" } };
  await session.append(
    { role: "user", content: "Read it." },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: `${"and more text ".repeat(2_000)}${SECRET}${" and more text".repeat(2_000)}` },
    { role: "assistant", content: "It is read." },
  );
  await session.prepare();
  for (let nth = 0; nth < 6; nth++) {
    await session.append({ role: "user", content: `Question ${nth} ${"about the parser ".repeat(100)}` }, { role: "assistant", content: `Answer ${nth}` });
  }
  await session.snapshots.take();
  await session.compact();
  await session.append({ role: "user", content: "And now?" });
  return session;
}

async function all(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}

/** The files of a directory in which the text, in any case, or one of the byte strings stands. */
async function hits(directory, ...wanted) {
  const found = [];
  for (const name of await readdir(directory)) {
    const bytes = await readFile(join(directory, name));
    const text = bytes.toString("latin1").toLowerCase();
    if (wanted.some((one) => (typeof one === "string" ? text.includes(one) : bytes.includes(one)))) found.push(name);
  }
  return found;
}

/** The session without the message, in this process and in the next one. */
async function check(session, before) {
  const [now, fates] = [await all(session.archive.history()), (await session.context.explain())];
  assert.deepEqual(now.map((message, index) => (index === 2 ? undefined : message)), before.map((message, index) => (index === 2 ? undefined : message)));
  assert.deepEqual(now[2], { role: "tool", tool_call_id: "c", content: "[erased]" });
  assert.equal(fates[2].fate, "dropped");
  assert.equal(fates[2].reason, "it was erased: a leaked token");
  assert.ok(!JSON.stringify((await session.prepare()).messages).includes(SECRET));
  assert.deepEqual(await session.recall.search(SECRET), []);
  assert.deepEqual(await session.archive.verify(), { ok: true, problems: [] });
}

const key = () => crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);

const STORES = {
  fileStore: async (context) => {
    const directory = await folder(context);
    return { directories: [directory], open: () => fileStore(directory) };
  },
  "encryptedStore over fileStore": async (context) => {
    const [directory, encryptionKey] = [await folder(context), await key()];
    return { directories: [directory], open: () => encryptedStore(fileStore(directory), { encryptionKey }) };
  },
  "mirrorStore over two directories": async (context) => {
    const directories = [await folder(context), await folder(context)];
    return { directories, open: () => mirrorStore(...directories.map((directory) => fileStore(directory))) };
  },
  memoryStore: async () => {
    const store = memoryStore();
    return { directories: [], open: () => store };
  },
};

for (const [name, make] of Object.entries(STORES)) {
  test(`D24: ${name}: no byte of an erased message is left, and the others are as they were`, async (context) => {
    const { directories, open } = await make(context);
    const store = open();
    const session = await leaked(store);
    const before = await all(session.archive.history());
    const isSealed = name.startsWith("encrypted");
    // What a sealed row says cannot be searched for: no stretch of the files of before may be there.
    const sealed = isSealed ? await stretches(directories[0]) : [];
    const wanted = isSealed ? sealed : [SECRET];
    for (const directory of directories) assert.notDeepEqual(await hits(directory, ...wanted), []);
    const progress = [];
    session.on("progress", ({ stage }) => progress.push(stage));
    await session.archive.erase(2, { reason: "a leaked token" });
    assert.ok(progress.includes("erase"));
    for (const directory of directories) assert.deepEqual(await hits(directory, ...wanted), []);
    await check(session, before);
    const archive = await new Response(session.archive.jsonl()).text();
    assert.ok(!archive.includes(SECRET));
    assert.ok(!(await session.archive.markdown()).includes(SECRET));
    await session.close();
    if (directories.length > 0) await store.close();
    const again = open();
    const opened = await openSession(options(again));
    await check(opened, before);
    await opened.append({ role: "user", content: "More." });
    await opened.close();
    const copy = await importSession(archive, { ...options(memoryStore()), id: "copy" });
    await check(copy, before);
    await copy.close();
    await again.close?.();
  });
}

/** Parts of 64 bytes of what a directory's journal holds, from its values. */
async function stretches(directory) {
  const name = (await readdir(directory)).filter((file) => file.startsWith("journal-")).sort().at(-1);
  const bytes = await readFile(join(directory, name));
  const parts = [];
  for (let at = 4_096; at + 64 < bytes.length; at += 4_096) parts.push(bytes.subarray(at, at + 64));
  return parts;
}

test("D24: the app's own object of an erased message is not sent, in another handle neither", async (context) => {
  const directory = await folder(context);
  const [one, two] = [fileStore(directory), fileStore(directory)];
  const mine = { role: "user", content: `My token is ${SECRET}.` };
  const session = await openSession(options(one));
  await session.append(mine, { role: "assistant", content: "Yes." });
  const other = await openSession(options(two));
  const history = [mine, { role: "assistant", content: "Yes." }];
  await other.sync(history);
  await session.archive.erase(0, { reason: "a leaked token" });
  for (const handle of [session, other]) {
    const { messages } = await handle.prepare();
    assert.deepEqual(messages[0], { role: "user", content: "[erased]" });
    assert.deepEqual(await handle.sync(history), { appended: 0, recognized: 2 }, "a history that still has it is recognized");
    assert.deepEqual((await handle.prepare()).messages[0], { role: "user", content: "[erased]" });
  }
  await Promise.all([session.close(), other.close()]);
  await Promise.all([one.close(), two.close()]);
});

test("D24: what cannot be erased says so", async () => {
  const session = await openSession(options(memoryStore()));
  await session.append({ role: "user", content: "One." });
  const fails = (code, field) => (error) => error.code === code && error.field === field;
  await assert.rejects(session.archive.erase(1, { reason: "x" }), fails("invalid_option", "index"));
  await assert.rejects(session.archive.erase(-1, { reason: "x" }), fails("invalid_option", "index"));
  await assert.rejects(session.archive.erase(0, {}), fails("invalid_option", "reason"));
  await assert.rejects(session.archive.erase(0, { why: "x" }), fails("invalid_option", "why"));
  await assert.rejects(session.archive.erase(0), (error) => error.code === "invalid_option");
  await assert.rejects(session.archive.erase(0, { reason: "x", signal: AbortSignal.abort() }), fails("aborted", undefined));
  assert.equal((await session.prepare()).messages[0].content, "One.");
  await session.close();
});
