/** Sub-agents, rewinding, and sessions of older releases, through the package. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { listSessions, memoryStore, openSession, restoreBackup } from "../support/offload.mjs";
import { fails } from "../support/api.mjs";

const SUMMARY = "## Current Status\nThe user asked about the parser and the tools answered.";

const options = (store, id, over = {}) => ({
  id,
  store,
  format: "openai-chat",
  advanced: { estimator: "chars4", cooldownSteps: 1_000, offload: { scanFraction: 1 } },
  contextWindow: 8_000,
  summarize: async () => SUMMARY,
  compactAt: { tokens: 600 },
  ...over,
});

const user = (content) => ({ role: "user", content });
const assistant = (content) => ({ role: "assistant", content });

function turn(nth) {
  const call = { id: `call_${nth}`, type: "function", function: { name: "read_file", arguments: "{}" } };
  return [
    user(`question ${nth}`),
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: call.id, content: `result ${nth}: ${"abcdefg ".repeat(60)}` },
    assistant(`answer ${nth}`),
  ];
}

/** A session with a summary, and offloads behind it. */
async function worked(store, id = "parent") {
  const session = await openSession(options(store, id));
  for (let nth = 0; nth < 4; nth++) await session.append(...turn(nth));
  await session.prepare();
  assert.equal((await session.compact()).success, true);
  for (let nth = 4; nth < 8; nth++) await session.append(...turn(nth));
  await session.prepare();
  return session;
}

const fates = async (session) => (await session.context.explain()).map(({ fate }) => fate);
const references = async (session) => (await session.context.explain()).flatMap(({ ref }) => ref ?? []);

test("S3.10: a fork begins with the parent's context, as the same objects, and is linked to it", async () => {
  const store = memoryStore();
  const parent = await worked(store);
  const sent = (await parent.prepare()).messages;
  const child = await parent.fork({ id: "child" });
  assert.equal(child.id, "child");
  assert.equal(child.context.format, "openai-chat");
  const own = (await child.prepare()).messages;
  assert.deepEqual(own, sent);
  const given = sent.filter((message) => message.role === "user").slice(1);
  assert.ok(given.length > 2);
  for (const message of given) assert.ok(own.includes(message), "the app's own objects");
  assert.deepEqual(child.context.usage(), parent.context.usage());
  const inherited = (await references(child));
  assert.ok(inherited.length > 2);
  for (const ref of inherited) assert.equal(await child.recall.read(ref), await parent.recall.read(ref));

  const [first, second] = await listSessions(store);
  assert.deepEqual([first.id, first.parent, first.messages], ["parent", undefined, 32]);
  assert.equal(second.id, "child");
  assert.equal(second.parent.id, "parent");
  assert.ok(second.parent.seq > 32, "where in the parent's log it began");
  assert.deepEqual(await parent.archive.children(), [second]);
  assert.deepEqual(await child.archive.children(), []);
});

test("S3.10: parent and child go on, are compacted and are deleted each on its own", async () => {
  const store = memoryStore();
  const parent = await worked(store);
  const child = await parent.fork({ id: "child" });
  const inherited = (await references(child));
  const before = (await parent.prepare()).messages;
  await child.append(...turn(20));
  assert.equal((await child.compact()).success, true);
  assert.deepEqual((await parent.prepare()).messages, before);
  const grandchild = await child.fork();
  assert.match(grandchild.id, /^session_/);
  const fate = await child.context.explain();
  await parent.close({ delete: true });
  await child.close();
  const again = await openSession(options(store, "child"));
  assert.deepEqual((await again.context.explain()), fate);
  for (const ref of inherited) assert.match(await again.recall.read(ref), /^result /);
  await again.close({ delete: true });
  await grandchild.append(user("alone"));
  assert.deepEqual(
    (await listSessions(store)).map(({ id, parent }) => [id, parent.id]),
    [[grandchild.id, "child"]],
  );
});

test("S3.10: a store that was made for a session is closed with the last of its forks", async () => {
  const parent = await openSession({ ...options("memory", "parent") });
  await parent.append(user("one"));
  const child = await parent.fork();
  await parent.close();
  await child.append(user("two"));
  assert.equal((await child.prepare()).messages.length, 2);
  await child.close();
  await assert.rejects(child.append(user("three")), { code: "closed" });
});

test("S3.10: openSession({ parent }) begins an empty child that is linked", async () => {
  const store = memoryStore();
  const parent = await openSession(options(store, "parent"));
  await assert.rejects(openSession(options(store, "child", { parent: "parent" })), { code: "not_found" });
  await parent.append(user("one"));
  const child = await openSession(options(store, "child", { parent: "parent" }));
  assert.deepEqual((await child.prepare()).messages, []);
  assert.deepEqual(
    (await parent.archive.children()).map(({ id, parent }) => [id, parent]),
    [["child", { id: "parent", seq: 1 }]],
  );
  await child.close();
  await openSession(options(store, "child", { parent: "parent" }));
  await assert.rejects(openSession(options(store, "child", { parent: "other" })), {
    code: "invalid_option",
    field: "parent",
  });
});

test("S3.10: what a fork refuses", async () => {
  const store = memoryStore();
  const parent = await worked(store);
  await assert.rejects(parent.fork({ id: "parent" }), { code: "conflict" });
  for (const bad of [{ id: "" }, { id: 7 }, { id: "\ud800" }, { name: "x" }]) {
    await assert.rejects(parent.fork(bad), { code: "invalid_option" });
  }
  const child = await parent.fork({ id: "child" });
  await assert.rejects(child.recall.read("off_aaaaaaaaaaaaaaaaaaaaaaaaaa"), { code: "not_found" });
  await assert.rejects(listSessions({}), { code: "invalid_option" });
  await parent.close();
  await assert.rejects(parent.fork(), { code: "closed" });
  await assert.rejects(parent.archive.children(), { code: "closed" });
});

test("rewind: a message is edited, and sync goes on from there", async () => {
  const store = memoryStore();
  const session = await openSession({ ...options(store, "s"), onDiverged: "throw" });
  const history = [user("one"), assistant("1"), user("two"), assistant("2")];
  await session.sync(history);
  await session.snapshots.rewind(2);
  assert.deepEqual((await session.prepare()).messages, history.slice(0, 2));
  const edited = [...history.slice(0, 2), user("two, edited")];
  assert.deepEqual(await session.sync(edited), { appended: 1, recognized: 2 });
  edited.push(assistant("2b"));
  assert.deepEqual(await session.sync(edited), { appended: 1, recognized: 3 });
  const { messages } = await session.prepare();
  messages.forEach((message, at) => assert.equal(message, edited[at], "the app's own objects"));
  await assert.rejects(session.sync(history), fails("diverged", { index: 2 }));
  assert.deepEqual((await fates(session)), ["verbatim", "verbatim", "dropped", "dropped", "verbatim", "verbatim"]);
  assert.match((await session.context.explain())[2].reason, /rewind/);

  // In another process, from copies.
  const again = await openSession(options(store, "s"));
  const copy = structuredClone(edited);
  assert.deepEqual(await again.sync(copy), { appended: 0, recognized: 4 });
  (await again.prepare()).messages.forEach((message, at) => assert.equal(message, copy[at]));
  await again.snapshots.rewind(3);
  assert.deepEqual((await again.prepare()).messages, history.slice(0, 3), "back on the branch that was left");
  // The first process learns of it with its next write.
  await session.append(user("three"));
  assert.deepEqual((await session.prepare()).messages, [...history.slice(0, 3), user("three")]);
});

test("rewind: a summary that was made later is undone", async () => {
  const store = memoryStore();
  const session = await worked(store);
  const [summary] = (await session.prepare()).messages;
  assert.match(summary.content, /^\[Compressed History\]/);
  await session.snapshots.rewind(4);
  assert.deepEqual((await session.prepare()).messages, turn(0));
  assert.deepEqual([...new Set((await fates(session)))], ["verbatim", "dropped"]);
  assert.equal((await fates(session)).length, 32);
  await assert.rejects(session.snapshots.rewind(2), { code: "invalid_option", message: /rewind to 1 or 3/ });
  await session.snapshots.rewind(3);
  assert.deepEqual((await session.prepare()).messages, turn(0).slice(0, 3));
  for (const bad of [-1, 1.5, "2", 33, undefined]) {
    await assert.rejects(session.snapshots.rewind(bad), { code: "invalid_option", field: "index" });
  }
});

/** A store with a session as schema 100 wrote it. */
async function oldStore() {
  const fixture = JSON.parse(readFileSync(new URL("../fixtures/session-v100.json", import.meta.url), "utf8"));
  const store = memoryStore();
  for (const { puts } of fixture.commits) {
    const rows = puts.map(([key, text]) => [key, new TextEncoder().encode(text)]);
    await store.commit({ expect: [], puts: rows, deletes: [], durability: "strict" });
  }
  return { store, fixture };
}

test("S5.18: a session of schema 100 is migrated when it is opened, and can be put back", async () => {
  const { store, fixture } = await oldStore();
  const session = await openSession({ store, id: fixture.id, contextWindow: 8_000, advanced: { estimator: "chars4" } });
  assert.deepEqual((await session.prepare()).messages, fixture.context);
  const old = (await references(session));
  assert.ok(old.length > 4);
  for (const ref of old) assert.match(await session.recall.read(ref), /^result /);
  await session.close();
  assert.equal(await restoreBackup(store, fixture.id), 100);
  await assert.rejects(restoreBackup(store, fixture.id), { code: "not_found" });
  const again = await openSession({ store, id: fixture.id, contextWindow: 8_000, advanced: { estimator: "chars4" } });
  await again.append({ role: "user", content: "go on" });
  await assert.rejects(restoreBackup(store, fixture.id), { code: "conflict" });
});

test("S5.18: a session of a newer schema is refused and left as it is", async () => {
  const { store, fixture } = await oldStore();
  const [[key, bytes]] = await store.scan(["sessions"], { limit: 1, maxBytes: 1e6 });
  const row = { ...JSON.parse(new TextDecoder().decode(bytes)), v: 300 };
  const newer = new TextEncoder().encode(JSON.stringify(row));
  await store.commit({ expect: [], puts: [[key, newer]], deletes: [], durability: "strict" });
  const options = { store, id: fixture.id, contextWindow: 8_000 };
  await assert.rejects(openSession(options), { code: "schema_too_new", message: /schema 300.*update/ });
  assert.deepEqual(await store.read([key]), [newer]);
});
