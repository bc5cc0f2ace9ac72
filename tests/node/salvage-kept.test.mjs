/** What a directory kept of journals that were damaged: `salvage` takes from them what the newest one lacks, and they go
 *  with the sessions that they were kept for (D15 rule 6, D16). */

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileStore } from "context-compactor/node";
import { edit, folder, journalOf } from "../support/file-store.mjs";
import { encryptedStore, listSessions, openSession, salvage } from "../support/offload.mjs";
import { writeAnew } from "../support/session-flips.mjs";

const everything = { limit: 10_000, maxBytes: 1 << 30 };
const IDS = ["a", "b", "c"];
const COUNT = 8;

let encryptionKey;
before(async () => {
  encryptionKey = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
});

const PLACES = {
  files: (inner) => inner,
  "encrypted files": (inner) => encryptedStore(inner, { encryptionKey }),
};

const said = (id, from = 0) =>
  Array.from({ length: COUNT }, (_, nth) => ({ role: nth % 2 === 0 ? "user" : "assistant", content: `${id} said ${from + nth}` }));
const textsOf = (messages) => messages.map((message) => JSON.stringify(message));

async function write(directory, over, id, messages = said(id)) {
  const store = over(fileStore(directory));
  const session = await openSession({ id, store, contextWindow: 32_000 });
  for (const message of messages) await session.append(message);
  await session.close();
  await store.close();
}

/** Rows of the log, in the order in which they were written, by their sessions. */
async function logOf(directory) {
  const store = fileStore(directory);
  const rows = await store.scan(["log"], everything);
  await store.close();
  const found = new Map();
  for (const row of rows) found.set(row[0][1], [...(found.get(row[0][1]) ?? []), row]);
  return found;
}

/** Changes a byte of a row's value where it stands in the newest journal. */
async function flip(directory, value) {
  await edit(await journalOf(directory), (bytes) => void (bytes[bytes.lastIndexOf(Buffer.from(value)) + 40] ^= 1));
}

/** Three sessions, of which message 5 of the first is damaged; the journal was written anew since. */
async function kept(context, over) {
  const directory = await folder(context);
  for (const id of IDS) await write(directory, over, id);
  const [[sid, rows]] = [...(await logOf(directory))].filter(([, rows]) => rows.length === COUNT);
  await flip(directory, rows[5][1]);
  await writeAnew(directory);
  assert.deepEqual(await keptIn(directory), ["damaged-000000000001"]);
  const found = await salvaged(directory, over);
  const id = IDS.find((id) => found[id].length < COUNT);
  return { directory, sid, id, others: IDS.filter((other) => other !== id) };
}

const keptIn = async (directory) => (await readdir(directory)).filter((name) => name.startsWith("damaged-"));
const without = (list, nth) => list.filter((_, at) => at !== nth);

/** The messages of each session that salvage finds, as texts; what it says is missing of each is in `gaps`. */
async function salvaged(directory, over, gaps = {}) {
  const files = async () => Promise.all((await readdir(directory)).sort().map(async (name) => [name, (await readFile(join(directory, name))).toString("latin1")]));
  const was = await files();
  const store = over(fileStore(directory));
  const found = {};
  for await (const session of salvage(store)) {
    gaps[session.id] = session.gaps;
    const lines = session.archive ? (await new Response(session.archive).text()).split("\n").filter(Boolean) : [];
    const messages = lines.map((line) => JSON.parse(line)).filter(({ kind }) => kind === "message");
    found[session.id] = messages.map(({ body }) => JSON.stringify(body));
  }
  await store.close();
  assert.deepEqual(await files(), was, "no file is changed");
  return found;
}

for (const [place, over] of Object.entries(PLACES)) {
  test(`D16: ${place}: what is damaged now and was not in the journal that was kept is taken from there`, async (context) => {
    const { directory, id, sid, others } = await kept(context, over);
    const rows = await logOf(directory);
    for (const [other, found] of rows) if (other !== sid && found.length === COUNT) await flip(directory, found[3][1]);
    const found = await salvaged(directory, over);
    assert.deepEqual(found[id], without(textsOf(said(id)), 5));
    for (const other of others) assert.deepEqual(found[other], textsOf(said(other)));
  });

  test(`D16: ${place}: so are rows of records that cannot be read any more, and it says so`, async (context) => {
    const { directory, id, others } = await kept(context, over);
    for (const other of others) await write(directory, over, other, said(other, COUNT));
    // What was written anew stands in one record, whose head is gone.
    await edit(await journalOf(directory), (bytes) => void bytes.fill(0, bytes.indexOf("\n") + 1, bytes.indexOf('"puts"') + 200));
    const gaps = {};
    const found = await salvaged(directory, over, gaps);
    assert.deepEqual(Object.keys(found).sort(), IDS);
    assert.deepEqual(found[id], without(textsOf(said(id)), 5));
    for (const other of others) assert.deepEqual(found[other], textsOf([...said(other), ...said(other, COUNT)]));
    for (const id of IDS) assert.match(gaps[id][0].reason, /cannot be read.*damaged-000000000001/s);
  });

  test(`D16: ${place}: a session that was deleted since does not come back`, async (context) => {
    const { directory, id, others } = await kept(context, over);
    const store = over(fileStore(directory));
    await (await openSession({ id: others[0], store, contextWindow: 32_000 })).close({ delete: true });
    await store.close();
    assert.deepEqual(await keptIn(directory), ["damaged-000000000001"]);
    const found = await salvaged(directory, over);
    assert.deepEqual(Object.keys(found).sort(), [id, others[1]].sort());
  });

  test(`D15: ${place}: a journal that was kept goes when the session with the damage is deleted`, async (context) => {
    const { directory, id, others } = await kept(context, over);
    const store = over(fileStore(directory));
    const [deleted, left] = others;
    for (const [gone, files] of [[deleted, ["damaged-000000000001"]], [id, []]]) {
      await (await openSession({ id: gone, store, contextWindow: 32_000 })).close({ delete: true });
      assert.deepEqual(await keptIn(directory), files, `without ${gone}`);
    }
    await store.close();
    assert.deepEqual(await salvaged(directory, over), { [left]: textsOf(said(left)) });
  });
}

test("D15: it goes too where the session is deleted in parts", async (context) => {
  const { directory, id } = await kept(context, (inner) => inner);
  const inner = fileStore(directory);
  const store = { ...inner, caps: { ...inner.caps, maxBatchOps: 8 } };
  await (await openSession({ id, store, contextWindow: 32_000 })).close({ delete: true });
  await inner.close();
  assert.deepEqual(await keptIn(directory), []);
});

test("D15: a journal with records that cannot be read is kept until all sessions that it has are deleted", async (context) => {
  const over = (inner) => inner;
  const directory = await folder(context);
  for (const id of IDS) await write(directory, over, id);
  await edit(await journalOf(directory), (bytes) => {
    const at = bytes.indexOf("b said 4");
    const head = bytes.lastIndexOf('{"at":', at);
    bytes.fill(0, head - 60, head + 60);
  });
  await writeAnew(directory);
  const store = fileStore(directory);
  for (const id of IDS) {
    assert.deepEqual(await keptIn(directory), ["damaged-000000000001"], `before ${id}`);
    await (await openSession({ id, store, contextWindow: 32_000, acceptDataLoss: true })).close({ delete: true });
  }
  assert.deepEqual(await listSessions(store), []);
  await store.close();
  assert.deepEqual(await keptIn(directory), []);
});
