/** What can still be read of a damaged store is taken out of it, and the store stays as it is (D16). */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { CompactionError } from "context-compactor";
import { fileStore } from "context-compactor/node";
import { exchange, fails, summariser } from "../support/api.mjs";
import { edit, folder, journalOf } from "../support/file-store.mjs";
import { frail } from "../support/frail.mjs";
import { encryptedStore, importSession, memoryStore, openSession, salvage } from "../support/offload.mjs";

const everything = { limit: 10_000, maxBytes: 1 << 30 };
const TABLES = ["meta", "sessions", "log", "blobs", "views", "jobs"];
const COUNT = 8;

let encryptionKey;
before(async () => {
  encryptionKey = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
});

const saidBy = (id) =>
  Array.from({ length: COUNT }, (_, nth) => ({ role: nth % 2 === 0 ? "user" : "assistant", content: `${id} said ${nth}\u0000\ud83d\ude00` }));
const textOf = (stream) => new Response(stream).text();
const linesOf = (archive, kind) => archive.split("\n").filter((line) => line && JSON.parse(line).kind === kind);
const collect = async (items) => {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
};

/** Writes a session, and returns the lines of its messages as an archive has them. */
async function write(store, id, said = saidBy(id), options = {}) {
  const session = await openSession({ id, store, contextWindow: 32_000, summarize: summariser(), ...options });
  for (let nth = 0; nth < said.length; nth += 2) await session.append(...said.slice(nth, nth + 2));
  const lines = linesOf(await textOf(session.archive.jsonl()), "message");
  await session.close();
  return lines;
}

/** `store`, of which nothing may be changed. */
const readOnly = (store) => ({
  ...store,
  commit() {
    assert.fail("salvage writes to the store");
  },
});

const rowsOf = async (store) => (await Promise.all(TABLES.map((table) => store.scan([table], everything)))).flat();
const remove = (store, ...keys) => store.commit({ expect: [], puts: [], deletes: keys, durability: "strict" });
const sidOf = async (store) => (await store.scan(["log"], { ...everything, limit: 1, keysOnly: true }))[0][0][1];
const nameOf = async (store) => (await store.scan(["meta", "session"], { ...everything, keysOnly: true }))[0][0];

/** What salvage finds in `store`, each with its archive as text. The store is as it was. */
async function salvaged(store) {
  const rows = await rowsOf(store);
  const found = [];
  for await (const one of salvage(readOnly(store))) {
    found.push({ ...one, archive: one.archive && (await textOf(one.archive)) });
  }
  assert.deepEqual(await rowsOf(store), rows, "the store is unchanged");
  return found.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The messages of an archive, once it is imported: in a store of its own, and opened again. */
async function imported(archive, id) {
  const store = memoryStore();
  await (await importSession(archive, { id, store, contextWindow: 32_000 })).close();
  const session = await openSession({ id, store, contextWindow: 32_000 });
  const history = await collect(session.archive.history({ onGap: () => {} }));
  await session.append({ role: "user", content: "go on" });
  await session.prepare();
  await session.close();
  return history;
}

const gapsOf = (gaps) => gaps.filter(({ seq }) => seq !== undefined).map(({ seq }) => seq);

const PLACES = {
  "a plain store": (inner) => inner,
  "an encrypted store": (inner) => encryptedStore(inner, { encryptionKey }),
};

for (const [place, over] of Object.entries(PLACES)) {
  for (const damage of ["flip", "report", "gone"]) {
    test(`D16: ${place}, each row in turn (${damage}): all other messages, byte for byte`, async () => {
      const made = async () => {
        const memory = memoryStore();
        const inner = frail(memory);
        const lines = await write(over(inner), "s");
        return { memory, inner, lines, keys: (await rowsOf(inner)).map(([key]) => key) };
      };
      const { keys } = await made();
      for (let nth = 0; nth < keys.length; nth++) {
        const { memory, inner, lines, keys } = await made();
        const key = keys[nth];
        const what = JSON.stringify(key);
        // Each copy of a key has another one; the root key is what everything stands on.
        if (damage === "gone") await remove(memory, key);
        else inner[damage](key);
        const lost = key[0] === "log" ? [key[2]] : [];
        const [{ id, archive, gaps }, ...others] = await salvaged(over(inner));
        assert.deepEqual([id, others], ["s", []], what);
        // The end of a log that is gone was never there, unless the session's row says so.
        assert.deepEqual(linesOf(archive, "message"), lines.filter((_, at) => !lost.includes(at)), what);
        const isLast = damage === "gone" && lost[0] === COUNT - 1;
        assert.deepEqual(gapsOf(gaps), isLast ? [] : lost, what);
        const isTold = lost.length > 0 || key[0] === "sessions" || (key[0] === "meta" && key[1] === "session" && key.length === 3);
        if (isTold && !what.includes("keys")) assert.ok(gaps.length > 0, what);
        const history = await imported(archive, "copy");
        assert.deepEqual(history, saidBy("s").filter((_, at) => !lost.includes(at)), what);
      }
    });
  }

  test(`D16: ${place} that is whole: every session with all that it has, and no gaps`, async () => {
    const inner = memoryStore();
    const store = over(inner);
    const lines = { a: await write(store, "a"), b: await write(store, "b") };
    const found = await salvaged(store);
    assert.deepEqual(found.map(({ id, gaps }) => [id, gaps]), [["a", []], ["b", []]]);
    for (const { id, archive } of found) assert.deepEqual(linesOf(archive, "message"), lines[id]);
  });

  for (const gone of [["name"], ["row"], ["name", "row"]]) {
    test(`D16: ${place}: a session whose ${gone.join(" and ")} is gone is found by what is left`, async () => {
      const inner = memoryStore();
      const lines = await write(over(inner), "s");
      const sid = await sidOf(inner);
      const keys = { name: await nameOf(inner), row: ["sessions", sid] };
      await remove(inner, ...gone.map((which) => keys[which]));
      const [{ id, archive, gaps }, ...others] = await salvaged(over(inner));
      assert.deepEqual([id, others], [gone.length === 2 ? `salvaged-${sid}` : "s", []]);
      assert.deepEqual(linesOf(archive, "message"), lines);
      assert.ok(gaps.length > 0);
      assert.ok(gaps.every(({ kind }) => kind === "repaired"), JSON.stringify(gaps));
      assert.deepEqual(await imported(archive, "s"), saidBy("s"));
    });
  }

  test(`D16: ${place} with three sessions, one of which is badly damaged: the others are whole`, async () => {
    const memory = memoryStore();
    const inner = frail(memory);
    const lines = { b: await write(over(inner), "b") };
    const [sid, name] = [await sidOf(inner), await nameOf(inner)];
    for (const id of ["a", "c"]) lines[id] = await write(over(inner), id);
    await remove(memory, name);
    inner.flip(["sessions", sid]);
    for (let seq = 0; seq < COUNT; seq++) if (seq !== 3) inner.flip(["log", sid, seq]);
    const found = await salvaged(over(inner));
    assert.deepEqual(found.map(({ id }) => id), ["a", "c", `salvaged-${sid}`]);
    const [a, c, damaged] = found;
    for (const { id, archive, gaps } of [a, c]) {
      assert.deepEqual(gaps, []);
      assert.deepEqual(linesOf(archive, "message"), lines[id]);
    }
    assert.deepEqual(linesOf(damaged.archive, "message"), [lines.b[3]]);
    assert.deepEqual(await imported(damaged.archive, "b"), [saidBy("b")[3]]);
    assert.ok(gapsOf(damaged.gaps).includes(0));
  });

  test(`D16: ${place}: texts of offloads whose rows are gone are taken from the log`, async () => {
    const inner = memoryStore();
    const store = over(inner);
    const session = await openSession({ id: "s", store, contextWindow: 8_000, compactAt: { tokens: 1_000 }, summarize: summariser() });
    for (let nth = 0; nth < 8; nth++) await session.append(...exchange(nth, 2_000));
    await session.prepare();
    const refs = (await session.context.explain()).flatMap(({ ref }) => (ref ? [ref] : []));
    assert.ok(refs.length > 2, JSON.stringify((await session.context.explain())[3]));
    const texts = await Promise.all(refs.map((ref) => session.recall.read(ref)));
    await session.close();
    const blobs = (await inner.scan(["blobs"], { ...everything, keysOnly: true })).map(([key]) => key);
    await remove(inner, ...blobs.filter((key) => key[2] !== "terms"));
    const [{ archive }] = await salvaged(store);
    const copy = await importSession(archive, { store: memoryStore(), contextWindow: 8_000 });
    const there = linesOf(archive, "offload").map((line) => JSON.parse(line).ref);
    assert.deepEqual([...new Set([...there, ...refs])].sort(), [...there].sort(), "each has its line");
    assert.deepEqual(await Promise.all(refs.map((ref) => copy.recall.read(ref))), texts);
    await copy.close();
  });
}

test("D16: two sessions of one name, and a name that leads nowhere: each is told apart", async () => {
  const memory = memoryStore();
  const first = await write(memory, "s");
  const [sid, name] = [await sidOf(memory), await nameOf(memory)];
  await remove(memory, name);
  // Without its name nobody finds the first one, if its row cannot be read either.
  const [[, row]] = memory.scan(["sessions", sid], everything);
  await remove(memory, ["sessions", sid]);
  const log = memory.scan(["log", sid], everything);
  await remove(memory, ...log.map(([key]) => key));
  const second = await write(memory, "s", saidBy("t"));
  await memory.commit({ expect: [], puts: [[["sessions", sid], row], ...log], deletes: [], durability: "strict" });
  const found = await salvaged(memory);
  assert.deepEqual(found.map(({ id }) => id), ["s", `salvaged-${sid}`]);
  assert.deepEqual(found.map(({ archive }) => linesOf(archive, "message")), [second, first]);
  assert.deepEqual(found[0].gaps, []);

  const rest = memory.scan(["log"], everything).map(([key]) => key).filter((key) => key[1] !== sid);
  const rows = memory.scan(["sessions"], everything).map(([key]) => key).filter((key) => key[1] !== sid);
  await remove(memory, ...rest, ...rows);
  const [only, ...others] = await salvaged(memory);
  assert.deepEqual([only.id, others], ["s", []], "the name is free for the one that has it in its row");
  assert.deepEqual(linesOf(only.archive, "message"), first);
});

test("D16: a session of which nothing is left but its name is told, and has an empty archive", async () => {
  const memory = memoryStore();
  await write(memory, "s");
  const keys = (await rowsOf(memory)).map(([key]) => key);
  await remove(memory, ...keys.filter((key) => key[0] !== "meta"));
  const [{ id, archive, gaps }, ...others] = await salvaged(memory);
  assert.deepEqual([id, others, linesOf(archive, "message")], ["s", [], []]);
  assert.ok(gaps.some(({ kind }) => kind === "session"));
});

test("D16: a session that is being deleted stays deleted", async () => {
  const store = { ...memoryStore() };
  await write(store, "kept");
  await write(store, "s");
  const session = await openSession({ id: "s", store: { ...store, caps: { ...store.caps, maxBatchOps: 10 } }, contextWindow: 32_000 });
  const commit = store.commit;
  let isStopped = false;
  const stopping = await openSession({
    id: "s",
    contextWindow: 32_000,
    store: {
      ...store,
      caps: { ...store.caps, maxBatchOps: 10 },
      commit(batch) {
        if (isStopped) throw new CompactionError("store_unavailable", "the process ended");
        isStopped = true;
        void commit(batch);
      },
    },
  });
  await assert.rejects(stopping.close({ delete: true }), fails("store_unavailable"));
  await session.close();
  assert.equal(store.scan(["log"], { ...everything, keysOnly: true }).length, 2 * COUNT, "its rows are there");
  assert.deepEqual((await salvaged(store)).map(({ id }) => id), ["kept"]);
});

test("D16: a session that cannot be opened is told with its error, and ends nothing", async () => {
  const memory = memoryStore();
  await write(memory, "b");
  const sid = await sidOf(memory);
  for (const id of ["a", "c"]) await write(memory, id);
  const newer = new TextEncoder().encode(JSON.stringify({ v: 900, ver: 9, id: "b" }));
  await memory.commit({ expect: [], puts: [[["sessions", sid], newer]], deletes: [], durability: "strict" });
  const found = await salvaged(memory);
  assert.deepEqual(found.map(({ id, archive }) => [id, archive !== undefined]), [["a", true], ["b", false], ["c", true]]);
  const [{ kind, error, reason }] = found[1].gaps;
  assert.deepEqual([kind, error.code, reason], ["session", "schema_too_new", error.message]);
});

test("D16: a store that throws for a page in which a row is damaged is read row by row", async () => {
  const memory = memoryStore();
  const lines = await write(memory, "s");
  const bad = JSON.stringify(["log", await sidOf(memory), 3]);
  const guard = (keys) => {
    if (keys.some((key) => JSON.stringify(key) === bad)) throw new CompactionError("store_corrupt", "a sum differs");
  };
  const store = {
    ...memory,
    read: (keys) => (guard(keys), memory.read(keys)),
    scan(prefix, options) {
      const page = memory.scan(prefix, options);
      if (!options.keysOnly) guard(page.map(([key]) => key));
      return page;
    },
  };
  await assert.rejects(openSession({ id: "s", store, contextWindow: 32_000 }), fails("store_corrupt"));
  const [{ archive, gaps }, ...others] = await collect(salvage(readOnly(store)));
  assert.deepEqual(others, []);
  assert.deepEqual(linesOf(await textOf(archive), "message"), lines.filter((_, at) => at !== 3));
  assert.deepEqual(gapsOf(gaps), [3]);
});

test("D16: a store that cannot be read at all is an error, and what is no store is refused", async () => {
  const broken = () => {
    throw new CompactionError("store_unavailable", "the disk is gone");
  };
  await assert.rejects(collect(salvage({ ...memoryStore(), read: broken, scan: broken })), fails("store_unavailable"));
  assert.throws(() => salvage({}), fails("invalid_option"));
  assert.deepEqual(await collect(salvage(readOnly(memoryStore()))), []);
});

/** A session as schema 100 wrote it. */
async function ofSchema100() {
  const fixture = JSON.parse(readFileSync(new URL("../fixtures/session-v100.json", import.meta.url), "utf8"));
  const store = memoryStore();
  for (const { puts } of fixture.commits) {
    const rows = puts.map(([key, text]) => [key, new TextEncoder().encode(text)]);
    await store.commit({ expect: [], puts: rows, deletes: [], durability: "strict" });
  }
  return { store, fixture };
}

test("D16: a session of schema 100 is in the archive as this release migrates it; the store keeps the old one", async () => {
  const { store, fixture } = await ofSchema100();
  const [{ id, archive, gaps }, ...others] = await salvaged(store);
  assert.deepEqual([id, gaps, others], [fixture.id, [], []]);
  const copy = await importSession(archive, { contextWindow: 8_000, advanced: { estimator: "chars4" }, store: memoryStore() });
  assert.deepEqual((await copy.prepare()).messages, fixture.context);
});

test("D16, D13: each row of a session of schema 100 in turn: one message is missing at most", async () => {
  const { store: memory } = await ofSchema100();
  const [{ archive: whole }] = await salvaged(memory);
  const lines = linesOf(whole, "message");
  for (const [key] of (await rowsOf(memory)).filter(([key]) => key[0] !== "blobs")) {
    for (const damage of ["report", "gone"]) {
      const { store: rows } = await ofSchema100();
      const store = frail(rows);
      await (damage === "gone" ? remove(rows, key) : store.report(key));
      const [{ archive, gaps }, ...others] = await salvaged(store);
      const what = `${damage}: ${JSON.stringify(key)}`;
      assert.deepEqual(others, [], what);
      assert.ok(archive, `${what}: ${JSON.stringify(gaps)}`);
      const isOther = (line) => key[0] !== "log" || JSON.parse(line).seq !== key[2];
      assert.deepEqual(linesOf(archive, "message"), lines.filter(isOther), what);
    }
  }
});

// ---- files ----------------------------------------------------------------------------------------------------------

/** A directory with sessions, closed; and the lines of their messages. */
async function directoryOf(context, ids, options) {
  const directory = await folder(context);
  const store = fileStore(directory, options);
  const lines = {};
  for (const id of ids) lines[id] = await write(store, id);
  await store.close();
  return { directory, lines, journal: await journalOf(directory) };
}

/** What salvage finds in a directory, of which no byte is changed. */
async function salvagedFrom(directory, over = (store) => store) {
  const files = () => Object.fromEntries(readdirSync(directory).map((name) => [name, readFileSync(join(directory, name)).toString("latin1")]));
  const was = files();
  const store = over(fileStore(directory));
  const found = [];
  for await (const one of salvage(store)) found.push({ ...one, archive: one.archive && (await textOf(one.archive)) });
  await store.close();
  assert.deepEqual(files(), was, "no file is changed");
  return found.sort((a, b) => (a.id < b.id ? -1 : 1));
}

const messagesOf = (found) => Object.fromEntries(found.map(({ id, archive }) => [id, linesOf(archive, "message")]));

test("D16: files: whole ones, and a new directory", async (context) => {
  const { directory, lines } = await directoryOf(context, ["a", "b"]);
  const found = await salvagedFrom(directory);
  assert.deepEqual(messagesOf(found), lines);
  assert.deepEqual(found.map(({ gaps }) => gaps), [[], []]);
  assert.deepEqual(await salvagedFrom(await folder(context)), []);
});

test("D16, D2: files: a flipped bit of each message in turn costs that message, with and without the note", async (context) => {
  const { directory, lines, journal } = await directoryOf(context, ["a", "b"]);
  const note = join(directory, "acknowledged");
  const [bytes, noteBytes] = [await readFile(journal), await readFile(note)];
  for (const hasNote of [true, false]) {
    await (hasNote ? writeFile(note, noteBytes) : rm(note));
    for (let nth = 0; nth < COUNT; nth++) {
      await writeFile(journal, bytes);
      await edit(journal, (bytes) => void (bytes[bytes.indexOf(`a said ${nth}`)] ^= 1));
      const found = await salvagedFrom(directory);
      assert.deepEqual(messagesOf(found), { ...lines, a: lines.a.filter((_, at) => at !== nth) }, `${nth}`);
      assert.deepEqual(gapsOf(found[0].gaps), [nth]);
      assert.deepEqual(found[1].gaps, []);
    }
  }
});

test("D16, D1: files: a page of zeros in what was acknowledged costs the messages in it", async (context) => {
  const { directory, lines, journal } = await directoryOf(context, ["a", "b"]);
  const bytes = await readFile(journal);
  for (const [from, to] of [["a said 2", "a said 4"], ["a said 6", "b said 1"]]) {
    await writeFile(journal, bytes);
    await edit(journal, (bytes) => void bytes.fill(0, bytes.indexOf(from), bytes.indexOf(to)));
    const found = await salvagedFrom(directory);
    const kept = messagesOf(found.filter(({ archive }) => archive));
    const there = Object.values(kept).flat();
    const outside = [...lines.a, ...lines.b].filter((line) => there.includes(line));
    assert.ok(outside.length >= 2 * COUNT - 6, `${there.length} of ${2 * COUNT} messages`);
    assert.ok(found.some(({ gaps }) => gaps.length > 0));
    assert.equal(outside.length, there.length, "nothing else is there");
  }
});

test("D16: files: a first line that cannot be read, and no note", async (context) => {
  const { directory, lines, journal } = await directoryOf(context, ["a", "b"]);
  await edit(journal, (bytes) => void bytes.fill(0, 0, 60));
  await rm(join(directory, "acknowledged"));
  const store = fileStore(directory);
  await assert.rejects(openSession({ id: "a", store, contextWindow: 32_000 }), /salvage\(store\)/);
  await store.close();
  const found = await salvagedFrom(directory);
  assert.deepEqual(messagesOf(found), lines);
});

for (const [place, over] of Object.entries(PLACES)) {
  test(`D16, D5: files: ${place}: the journal is gone or empty: what was kept of an earlier one, and it says so`, async (context) => {
    const directory = await folder(context);
    const store = over(fileStore(directory));
    const lines = { a: await write(store, "a"), b: await write(store, "b") };
    await store.close();
    // One value is damaged, so that the journal is kept when it is written anew.
    const inner = fileStore(directory);
    const [[key]] = (await inner.scan(["log"], everything)).filter(([key]) => key[2] === 5);
    const [value] = await inner.read([key]);
    await inner.close();
    await edit(await journalOf(directory), (bytes) => void (bytes[bytes.indexOf(Buffer.from(value)) + 40] ^= 1));
    const writer = fileStore(directory, { rewriteBytes: 1_000 });
    for (let nth = 0; nth < 5; nth++) {
      await writer.commit({ expect: [], puts: [[["jobs", "x", "y"], new Uint8Array(100_000)]], deletes: [], durability: "strict" });
    }
    await remove(writer, ["jobs", "x", "y"]);
    await writer.close();
    const kept = (await readdir(directory)).filter((name) => name.startsWith("damaged-"));
    assert.ok(kept.length > 0);
    const known = [...lines.a, ...lines.b];
    const before = await salvagedFrom(directory, over);
    assert.equal(Object.values(messagesOf(before)).flat().length, 2 * COUNT - 1);
    assert.equal(before.flatMap(({ gaps }) => gapsOf(gaps)).length, 1);
    for (const empties of [true, false]) {
      for (const name of (await readdir(directory)).filter((name) => name.startsWith("journal-"))) {
        await (empties ? truncate(join(directory, name)) : rm(join(directory, name)));
      }
      const broken = over(fileStore(directory));
      await assert.rejects(openSession({ id: "a", store: broken, contextWindow: 32_000 }), /salvage\(store\)/);
      await broken.close();
      const left = await salvagedFrom(directory, over);
      const there = Object.values(messagesOf(left)).flat();
      assert.equal(there.filter((line) => known.includes(line)).length, 2 * COUNT - 1);
      for (const { gaps } of left) assert.match(gaps[0].reason, /this is what damaged-\d{12} has/);
    }
    for (const name of kept) await rm(join(directory, name));
    await assert.rejects(salvagedFrom(directory, over), fails("store_corrupt"));
  });
}
