/** X14: a receipt of a compaction says what was replaced by what, and an archive alone proves it. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { importSession, openSession } from "context-compactor";
import { compactionReceipts, verifyReceipt } from "context-compactor/receipts";
import { chat, exchange, SUMMARY } from "../support/api.mjs";
import { exchanges } from "../support/histories.mjs";

const sha256 = (text) => createHash("sha256").update(text).digest("hex");
const archiveOf = (session) => new Response(session.archive.jsonl()).text();
const options = { store: "memory", preset: "offload", format: "openai-chat", contextWindow: 9_000, maxOutputTokens: 1_000, compactAt: { tokens: 3_000 }, summarize: async () => SUMMARY };

/** A session whose results were offloaded, which was summarized twice, and which went on. */
async function compacted(given = options) {
  const session = await openSession(given);
  for (let nth = 0; nth < 6; nth++) await session.append(...exchange(nth, 3_000));
  const results = [await session.prepare()];
  for (const from of [0, 40]) {
    await session.append(...chat(20, from));
    results.push(await session.prepare());
  }
  await session.append(...chat(1, 90));
  return { session, results, archive: await archiveOf(session) };
}

const isJson = (text) => {
  try {
    return Boolean(JSON.parse(text));
  } catch {
    return false;
  }
};
const lines = (archive) => archive.trim().split("\n").map((line) => JSON.parse(line));

test("X14: a receipt has the hashes of what was replaced and of what replaced it", async () => {
  const { session, results, archive } = await compacted();
  const receipts = await compactionReceipts(archive);
  assert.equal(receipts.length, results.filter(({ edits }) => edits.length > 0).length);
  const messages = lines(archive).filter(({ kind }) => kind === "message");
  const ledger = await session.context.explain();
  const offloaded = receipts.flatMap(({ changes }) => changes.filter(({ texts }) => texts));
  assert.ok(offloaded.length > 0);
  for (const { messages: [message], by, texts } of offloaded) {
    assert.equal(by.index, message.index);
    const stored = await session.recall.read(texts[0].ref);
    assert.equal(texts[0].sha256, sha256(stored));
  }
  const [first, second] = receipts.flatMap(({ changes }) => changes.filter(({ by }) => by.summary));
  assert.equal(first.summaries, undefined);
  assert.deepEqual(second.summaries, [{ id: first.by.summary, sha256: first.by.sha256 }]);
  const replaced = [...first.messages, ...second.messages];
  assert.deepEqual(replaced.map(({ index }) => index), ledger.filter(({ fate }) => fate === "summarized").map(({ index }) => index));
  for (const { index, sha256: hash } of replaced) assert.equal(hash, sha256(JSON.stringify(messages[index].body)));
  const last = receipts.at(-1);
  const { result } = results.at(-1);
  assert.deepEqual([last.session, last.preset, last.trigger, last.steps.at(-1)], [session.id, "offload", "auto", "summarize"]);
  assert.deepEqual([last.previousTokens, last.currentTokens], [result.previousTokens, result.currentTokens]);
  assert.ok(!JSON.stringify(receipts).includes("E0502"), "no text of the conversation");
  for (const receipt of receipts) assert.deepEqual(await verifyReceipt(JSON.parse(JSON.stringify(receipt)), archive), { ok: true, problems: [] });
});

test("X14: it holds for every later archive, of a session that was imported too, and for each way to hand it over", async () => {
  const { session, archive } = await compacted();
  const receipt = (await compactionReceipts(archive)).at(-1);
  await session.compact();
  await session.snapshots.undo();
  await session.append(...chat(2, 95));
  await session.compact();
  const later = await archiveOf(session);
  assert.deepEqual(await verifyReceipt(receipt, later), { ok: true, problems: [] });
  assert.deepEqual(await verifyReceipt(receipt, session.archive.jsonl()), { ok: true, problems: [] });
  assert.deepEqual(await verifyReceipt(receipt, new TextEncoder().encode(later)), { ok: true, problems: [] });
  const pieces = async function* () {
    for (let at = 0; at < later.length; at += 997) yield later.slice(at, at + 997);
  };
  assert.deepEqual(await verifyReceipt(receipt, pieces()), { ok: true, problems: [] });
  const again = await importSession(later, { ...options, id: "again" });
  assert.ok((await compactionReceipts(await archiveOf(again))).length > 0);
});

test("X14: each changed character of the rows, views and texts is found, and that of a message with its name", async () => {
  const session = await openSession(options);
  for (let nth = 0; nth < 5; nth++) await session.append(...exchange(nth, 3_000));
  await session.prepare();
  await session.compact();
  const archive = await archiveOf(session);
  const receipt = (await compactionReceipts(archive)).at(-1);
  const all = archive.trim().split("\n");
  const counts = { message: 0, view: 0, offload: 0 };
  const tries = process.env.CC_FLIPS === "all" ? Infinity : 8;
  for (const [nth, line] of all.entries()) {
    const { kind, index, role, seq } = JSON.parse(line);
    if (!(kind in counts)) continue;
    const step = Math.max(1, Math.floor(line.length / tries));
    for (let at = nth % step; at < line.length; at += step) {
      const said = line.indexOf(`"role":"${role}","body"`);
      // For readers: the hashes have what the message says.
      if (role !== undefined && at >= said && at < said + `"role":"${role}"`.length) continue;
      // The version of a line of texts.
      if (kind === "offload" && at < line.indexOf(",")) continue;
      const other = line[at] === "7" ? "8" : "7";
      const changed = [...all.slice(0, nth), line.slice(0, at) + other + line.slice(at + 1), ...all.slice(nth + 1)].join("\n");
      const { ok, problems } = await verifyReceipt(receipt, changed);
      assert.equal(ok, false, `${kind} ${index}, character ${at}: ${line.slice(at - 20, at + 20)}`);
      const name = new RegExp(`^message ${index} \\(row ${seq} of the log\\): it is not what was written$`);
      const isBroken = !isJson(changed.split("\n")[nth]) || !/"kind":"message"/.test(changed.split("\n")[nth]);
      if (kind === "message" && !isBroken) assert.match(problems[0], name);
      counts[kind]++;
    }
  }
  assert.ok(Object.values(counts).every((count) => count > 5), JSON.stringify(counts));
});

test("X14: each changed value of the receipt is found, with the message or the summary", async () => {
  const { archive } = await compacted();
  const receipt = (await compactionReceipts(archive)).at(-1);
  const places = (value, path = []) =>
    typeof value === "object" && value !== null ? Object.entries(value).flatMap(([name, of]) => places(of, [...path, name])) : [path];
  for (const path of places(receipt)) {
    const copy = JSON.parse(JSON.stringify(receipt));
    const last = path.at(-1);
    const holder = path.slice(0, -1).reduce((of, name) => of[name], copy);
    holder[last] = typeof holder[last] === "number" ? holder[last] + 1 : holder[last].replace(/^./, (first) => (first === "0" ? "1" : "0"));
    if (path.join() === "version") {
      await assert.rejects(verifyReceipt(copy, archive), { code: "invalid_option" });
      continue;
    }
    const { ok, problems } = await verifyReceipt(copy, archive);
    assert.equal(ok, false, path.join("."));
    // Also where the seal was made anew.
    const { sha256: _, ...rest } = copy;
    const sorted = (of) => (Array.isArray(of) ? of.map(sorted) : typeof of === "object" && of !== null ? Object.fromEntries(Object.keys(of).sort().map((name) => [name, sorted(of[name])])) : of);
    const forged = { ...rest, sha256: sha256(JSON.stringify(sorted(rest))) };
    if (path[0] !== "sha256") assert.equal((await verifyReceipt(forged, archive)).ok, false, path.join("."));
    if (path[2] === "messages") assert.match(problems[0], new RegExp(`^message ${receipt.changes[path[1]].messages[path[3]].index}: it is not what was replaced$`));
    if (path[2] === "by") assert.match(problems.join(), /it is not what replaced them/);
  }
  const more = { ...receipt, note: "more" };
  assert.equal((await verifyReceipt(more, archive)).ok, false);
});

test("X14: rows that are written anew from a changed message on are another log, and say so", async () => {
  const { archive } = await compacted();
  const receipt = (await compactionReceipts(archive)).at(-1);
  let prev = "";
  const forged = archive.trim().split("\n").map((line) => {
    const row = JSON.parse(line);
    if (!["message", "view", "snapshot"].includes(row.kind)) return line;
    if (row.kind === "message" && row.index === 2) row.body.content = "another result";
    const { v, seq, index, id, kind, timestamp, chain, body } = row;
    row.prev = prev;
    row.hash = prev = sha256(JSON.stringify({ v, seq, n: index, id, kind, at: timestamp, prev: row.prev, chain, body }));
    return JSON.stringify(row);
  }).join("\n");
  const { ok, problems } = await verifyReceipt(receipt, forged);
  assert.equal(ok, false);
  assert.ok(problems.some((problem) => problem === "message 2: it is not what was replaced") || receipt.changes.every(({ messages }) => messages.every(({ index }) => index !== 2)), problems.join("\n"));
  assert.ok(problems.some((problem) => /^row \d+ of the log: it, or a row before it, is not what was written/.test(problem)));
});

test("X14: missing rows, other archives and what is no receipt are told apart", async () => {
  const { session, archive } = await compacted();
  const receipt = (await compactionReceipts(archive)).at(-1);
  const all = archive.trim().split("\n");
  const without = [...all.slice(0, 3), ...all.slice(4)].join("\n");
  assert.match((await verifyReceipt(receipt, without)).problems[0], /^message 3 \(row 3 of the log\): the rows before it, from 2 on, are missing$/);
  await assert.rejects(compactionReceipts(without), { code: "invalid_message", message: /message 3/ });
  const other = await openSession(options);
  await other.append(...chat(1));
  assert.match((await verifyReceipt(receipt, other.archive.jsonl())).problems[0], /the archive has no compaction there/);
  assert.deepEqual(await compactionReceipts(other.archive.jsonl()), []);
  await assert.rejects(verifyReceipt({}, archive), { code: "invalid_option", field: "receipt" });
  await assert.rejects(verifyReceipt(receipt, '{"role":"user","content":"Hi"}'), { code: "invalid_option", field: "archive" });
  await session.archive.erase(2, { reason: "a key" });
  assert.equal((await verifyReceipt(receipt, session.archive.jsonl())).ok, false, "what was erased cannot be proven any more");
});

test("X14: in every format, with the texts of all alphabets", async () => {
  for (const format of ["anthropic", "openai-responses", "gemini", "ai-sdk"]) {
    const session = await openSession({ ...options, format });
    const history = JSON.parse(JSON.stringify(exchanges(format, 12, { chars: 2_000 })).replaceAll("Question", "Frage \u2028 \ud83d\ude80 é \\u0007"));
    await session.append(...history);
    await session.compact();
    const archive = await archiveOf(session);
    const receipts = await compactionReceipts(archive);
    assert.ok(receipts.length > 0, format);
    for (const receipt of receipts) assert.deepEqual(await verifyReceipt(receipt, archive), { ok: true, problems: [] });
  }
});
