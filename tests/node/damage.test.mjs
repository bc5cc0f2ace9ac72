/** One damaged row costs one message at most, and never a session (D13, D14), as an app sees it: plain and encrypted. What
 *  is tried for every row and every table of a rich session is in `crates/store-tests/tests/all/damage.rs`. */

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { frail } from "../support/frail.mjs";
import { encryptedStore, importSession, memoryStore, openSession } from "../support/offload.mjs";
import { fails, summariser } from "../support/api.mjs";

const everything = { limit: 10_000, maxBytes: 1 << 30 };
const TABLES = ["meta", "sessions", "log", "blobs", "views", "jobs"];
const COUNT = 12;
const said = Array.from({ length: COUNT }, (_, nth) => ({
  role: nth % 2 === 0 ? "user" : "assistant",
  content: `${nth % 2 === 0 ? "question" : "answer"} ${nth} everywhere`,
}));

let encryptionKey;
before(async () => {
  encryptionKey = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
});

const open = (store, over = {}) => openSession({ id: "s", store, contextWindow: 32_000, summarize: summariser(), ...over });
const collect = async (messages) => {
  const found = [];
  for await (const message of messages) found.push(message);
  return found;
};
const later = () => new Promise((resolve) => setImmediate(resolve));

/** A store that keeps a session with `COUNT` messages, and the keys of its rows at rest. */
async function made(over) {
  const inner = frail(memoryStore());
  const session = await open(over(inner));
  for (let nth = 0; nth < COUNT; nth += 2) await session.append(said[nth], said[nth + 1]);
  await session.recall.search("everywhere");
  await session.close();
  const rows = TABLES.flatMap((table) => inner.scan([table], everything));
  return { inner, keys: rows.map(([key]) => key) };
}

const PLACES = {
  "a plain store": { over: (inner) => inner, damages: ["flip", "report"] },
  "an encrypted store": { over: (inner) => encryptedStore(inner, { encryptionKey }), damages: ["flip", "report"] },
};

for (const [place, { over, damages }] of Object.entries(PLACES)) {
  for (const damage of damages) {
    test(`D13, D14: ${place}, each row in turn (${damage}): the session opens and works, and one message is missing at most`, async () => {
      const { keys } = await made(over);
      for (let nth = 0; nth < keys.length; nth++) {
        // Each damage has a session of its own: keys are drawn, and rows stand in the same order.
        const { inner, keys } = await made(over);
        const key = keys[nth];
        const what = JSON.stringify(key);
        inner[damage](key);
        const lost = key[0] === "log" ? 1 : 0;
        // Where the first message of the user is lost, one of ours says so.
        const sent = COUNT - lost + (lost && key[2] === 0 ? 1 : 0);
        const session = await open(over(inner));
        const events = [];
        session.on("data-loss", (event) => events.push(event));
        await later();
        assert.equal(events.filter(({ kind }) => kind === "records").length, lost, what);
        events.length = 0;

        const gaps = [];
        const quiet = await collect(session.archive.history({ onGap: (gap) => gaps.push(gap) }));
        assert.equal(quiet.length, COUNT - lost, what);
        assert.deepEqual(gaps.map(({ seq, count, messages }) => [seq, count, messages]), lost ? [[key[2], 1, 1]] : [], what);
        assert.deepEqual(events, [], `${what}: who is told of gaps hears no event`);
        for (const _ of [1, 2]) {
          const history = await collect(session.archive.history());
          assert.deepEqual(history, said.filter((_, index) => !gaps.some((gap) => gap.index === index)), what);
        }
        const told = lost ? [{ kind: "records", lostRecords: 1, seq: key[2], index: key[2], reason: gaps[0].reason }] : [];
        assert.deepEqual(events, told, `${what}: once`);

        const archive = await new Response(session.archive.jsonl()).text();
        const lines = archive.trim().split("\n").map((line) => JSON.parse(line));
        assert.equal(lines.filter(({ kind }) => kind === "message").length, COUNT - lost, what);
        assert.deepEqual(lines.filter(({ kind }) => kind === "gap").map(({ seq, count }) => [seq, count]), lost ? [[key[2], 1]] : [], what);
        const markdown = await session.archive.markdown();
        assert.equal(markdown.includes(`[message ${key[2]} cannot be read]`), lost === 1, what);
        assert.equal((await session.recall.search("everywhere", { limit: 100 })).length, COUNT - lost, what);
        assert.deepEqual(events, told, `${what}: once, whatever comes upon it`);
        const dropped = (await session.context.explain()).filter(({ fate }) => fate === "dropped");
        assert.deepEqual(dropped.map(({ index }) => index), lost ? [key[2]] : [], what);
        const { problems } = await session.archive.verify();
        if (lost) assert.deepEqual(problems, [`I1: log row ${key[2]} is not what was written`]);

        const copies = memoryStore();
        let report;
        const copy = await importSession(archive, { store: copies, contextWindow: 32_000, onImport: (told) => (report = told) });
        assert.equal(report.skipped.gap ?? 0, lost, what);
        const again = await new Response(copy.archive.jsonl()).text();
        assert.equal(again.slice(again.indexOf("\n")), archive.slice(archive.indexOf("\n")), what);
        await copy.close();
        const reopened = await open(copies);
        assert.equal(await new Response(reopened.archive.jsonl()).text(), again, what);
        await reopened.close();

        const fork = await session.fork();
        assert.equal((await fork.prepare()).messages.length, sent, what);
        await fork.close({ delete: true });
        await session.append({ role: "user", content: "go on" });
        assert.equal((await session.prepare()).messages.length, sent + 1, what);
        await session.close({ delete: true });
        const left = TABLES.flatMap((table) => inner.scan([table], everything)).map(([key]) => key.slice(0, 3).join());
        assert.deepEqual(left.filter((key) => key !== "meta,keys,root"), [], what);
      }
    });
  }
}

test("D13: a store that throws for a row still closes the session, with the store's own error", async () => {
  const { inner } = await made((inner) => inner);
  const { CompactionError } = await import("context-compactor");
  const broken = {
    ...inner,
    scan: () => {
      throw new CompactionError("store_corrupt", "the file ends early");
    },
  };
  await assert.rejects(open(broken), fails("store_corrupt"));
});

test("D13: an answer that is no value and not damaged is refused; a damaged one needs a reason in words", async () => {
  const { inner } = await made((inner) => inner);
  for (const damaged of [undefined, null, 5, {}]) {
    const broken = { ...inner, read: (keys) => inner.read(keys).map((value) => value && { damaged }) };
    await assert.rejects(open(broken), fails("store_corrupt"));
  }
});

test("D14: what onGap throws ends the history, and options are checked", async () => {
  const { inner, keys } = await made((inner) => inner);
  inner.report(keys.find((key) => key[0] === "log" && key[2] === 3));
  const session = await open(inner);
  const stop = new Error("stop");
  const reading = collect(session.archive.history({ onGap: () => { throw stop; } }));
  await assert.rejects(reading, stop);
  assert.throws(() => session.archive.history({ onGap: 5 }), fails("invalid_option"));
  assert.throws(() => session.archive.history({ gaps: true }), fails("invalid_option"));
  await session.close();
});
