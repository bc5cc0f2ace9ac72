/** Searches of all sessions of a store: `recall: { scope: "all" }`. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileStore } from "context-compactor/node";
import { deleteSession, encryptedStore, listSessions, memoryStore, openSession } from "../support/offload.mjs";
import { fails } from "../support/api.mjs";
import { makeKey } from "../support/encrypted.mjs";

const ALL = { scope: "all" };
const open = (store, id, recall = ALL) => openSession({ id, store, format: "openai-chat", contextWindow: 64_000, recall });

async function said(store, id, ...texts) {
  const session = await open(store, id);
  for (const content of texts) await session.append({ role: "user", content });
  return session;
}

/** What a session was warned of. */
function warned(session) {
  const warnings = [];
  session.on("warning", (warning) => warnings.push(warning));
  return warnings;
}

async function found(session, query) {
  return (await session.recall.search(query)).map(({ session: of, index, snippet }) => [of, index, snippet]);
}

const STORES = {
  memory: async () => memoryStore(),
  file: async (folder) => fileStore(folder),
  encrypted: async (folder) => encryptedStore(fileStore(folder), { encryptionKey: await makeKey() }),
};

for (const [name, make] of Object.entries(STORES)) {
  test(`X9: the sessions of a store are searched and read: ${name}`, async (context) => {
    const folder = await mkdtemp(join(tmpdir(), "others-"));
    context.after(() => rm(folder, { recursive: true, force: true }));
    const store = await make(folder);
    await (await said(store, "ports", "The staging database listens on port 5433.")).close();
    await (await said(store, "pets", "My cat is called Tom.")).close();
    const own = await said(store, "own", "Which port has production?");
    const warnings = warned(own);
    assert.deepEqual(await found(own, "port"), [
      [undefined, 0, "Which port has production?"],
      ["ports", 0, "The staging database listens on port 5433."],
    ]);
    const [, { ref, place }] = await own.recall.search("port");
    assert.equal(place, "elsewhere");
    assert.equal(await own.recall.read(ref, { offset: 4, limit: 7 }), "staging");
    const alone = await open(store, "own", { scope: "session" });
    assert.equal((await alone.recall.search("port")).length, 1);
    assert.ok(!("session" in (await alone.recall.search("port"))[0]));
    await assert.rejects(alone.recall.read(ref), fails("not_found"));
    // What goes on elsewhere is found by the next search.
    const pets = await said(store, "pets", "The port wine is for Tom.");
    assert.deepEqual((await found(own, "wine")).map(([of, index]) => [of, index]), [["pets", 1]]);
    await pets.archive.erase(1, { reason: "private" });
    assert.deepEqual(await found(own, "wine"), []);
    await pets.close();
    await deleteSession("pets", { store });
    assert.deepEqual(await found(own, "cat"), []);
    assert.deepEqual((await listSessions(store)).map(({ id }) => id).sort(), ["own", "ports"]);
    assert.deepEqual(warnings, []);
    for (const session of [own, alone]) await session.close();
    await store.close?.();
  });
}

test("X9: the model is told whose a hit is, and reads it", async () => {
  const store = memoryStore();
  await (await said(store, "chat 7", "The staging database listens on port 5433.")).close();
  const own = await said(store, "own", "Hello.");
  const { definitions, handle } = own.recall.tools();
  assert.match(definitions[1].function.description, /the user's other conversations, too/);
  const call = (name, args) => handle({ id: "call_1", type: "function", function: { name, arguments: JSON.stringify(args) } });
  const { content } = await call("recall_search", { query: "staging port" });
  const [, ref] = /^\[(.*)\] user · of another session, "chat 7"$/m.exec(content);
  assert.match(content, /^1 found in 1 messages here and in 1 other session, best first/);
  const read = await call("recall_read", { ref });
  assert.equal(read.content, `The staging database listens on port 5433.\n[${ref}, of another session, "chat 7": all 42 characters]`);
});

test("X9: a session that cannot be read is left out, and told as a warning once", async () => {
  const store = memoryStore();
  const broken = await said(store, "broken", "The staging database listens on port 5433.");
  await (await said(store, "whole", "The staging server is down.")).close();
  await broken.close();
  let sid;
  const read = async (keys) => (await store.read(keys)).map((bytes, nth) => (keys[nth][0] === "sessions" && keys[nth][1] === sid ? { damaged: "a bit flipped" } : bytes));
  for (const [, bytes] of await store.scan(["meta", "session"], { limit: 10, maxBytes: 1e6 })) {
    const name = JSON.parse(new TextDecoder().decode(bytes));
    if (name.id === "broken") sid = name.sid;
  }
  assert.ok(sid);
  const own = await open({ ...store, caps: store.caps, read }, "own");
  const warnings = warned(own);
  for (let nth = 0; nth < 2; nth++) assert.deepEqual((await found(own, "staging")).map(([of]) => of), ["whole"]);
  assert.deepEqual(warnings.map(({ code }) => code), ["store_corrupt"]);
  assert.match(warnings[0].message, /^recall leaves out what it cannot read of session "broken": /);
});

test("X9: a scope is one of two words", async () => {
  for (const scope of ["store", true, 1]) await assert.rejects(openSession({ recall: { scope } }), fails("invalid_option", { field: "recall.scope" }));
});

test("X9: a search looks at the sessions that were written to last, as far as there is room, and says how many it left out", async () => {
  const store = memoryStore();
  let now = 1_000;
  const advanced = { runtime: { now: () => (now += 1_000), id: () => crypto.randomUUID() } };
  const opened = (id, more) => openSession({ id, store, format: "openai-chat", contextWindow: 64_000, recall: ALL, advanced, ...more });
  // Words that stand once each take the most room in pages of terms.
  let word = 0;
  const words = () => Array.from({ length: 100_000 }, () => (word++ * 2_654_435_761 % 4_294_967_296).toString(36)).join(" ");
  for (let nth = 0; nth < 6; nth++) {
    const session = await opened(`large ${nth}`);
    for (let message = 0; message < 6; message++) await session.append({ role: "user", content: `needle ${words()}` });
    await session.close();
  }
  const lines = [];
  const own = await opened("own", { logger: (_, line) => lines.push(line) });
  await own.append({ role: "user", content: "Hello." });
  const sessions = new Set((await own.recall.search("needle", { limit: 100 })).map(({ session }) => session));
  const left = 6 - sessions.size;
  assert.ok(left > 0 && left < 6, `${left}`);
  assert.deepEqual([...sessions].sort(), Array.from({ length: 6 - left }, (_, nth) => `large ${nth + left}`));
  assert.ok(lines.some((line) => line.startsWith(`${left} other sessions were not searched`)), lines.join("\n"));
  const { handle } = own.recall.tools();
  const { content } = await handle({ id: "c", type: "function", function: { name: "recall_search", arguments: '{"query":"needle","limit":1}' } });
  assert.match(content, new RegExp(`here and in ${6 - left} other sessions, the newest \\(${left} were not searched\\)`));
});
