/**
 * What becomes of recorded transcripts, to the byte: moving code changes no hash of `tests/fixtures/recorded-bytes.json`.
 * Where a change is meant, `BLESS=1` writes them anew. Nothing of the transcripts' text is kept or printed.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { compact, openSession } from "context-compactor";
import { frozen, openStore, runtime } from "../support/api.mjs";
import { presets } from "../support/names.mjs";
import { transcripts } from "../support/transcripts.mjs";

const FIXTURE = new URL("../fixtures/recorded-bytes.json", import.meta.url);
const known = process.env.BLESS ? {} : JSON.parse(readFileSync(FIXTURE, "utf8"));

/** File, format, which record, a window too small for it, and in how many steps it is appended. */
const HISTORIES = [
  ["openai/tau", "openai-chat", 30, 14_000, 5],
  ["openai/tau", "openai-chat", 8, 6_000, 5],
  ["openai/tau_composite", "openai-chat", 1, 12_000, 24],
  ["openai/claude_code", "openai-chat", 8, 16_000, 5],
  ["openai/claude_code", "openai-chat", 12, 20_000, 12],
  ["anthropic/claude_code", "anthropic", 0, 24_000, 5],
  ["anthropic/claude_code", "anthropic", 11, 32_000, 5],
  ["anthropic/claude_code", "anthropic", 13, 16_000, 24],
  ["responses/codex", "openai-responses", 0, 20_000, 5],
  ["responses/codex", "openai-responses", 2, 48_000, 5],
  ["responses/codex", "openai-responses", 1, 32_000, 12],
  ["probes/memorybank_zh_en", "openai-chat", 9, 6_000, 12],
  ["wire/pydantic_google-generatecontent", "gemini", "all", 10_000, 12],
];
const SUMMARIZERS = ["built-in summarizer", "own summarizer"];
const RUNGS = ["admit", "age", "clear", "compress", "merge", "offload", "repair", "rollover", "summarize"];

/** What is hashed of a case, in the order of its hashes. */
const PARTS = ["asked", "logged", "prepared", "compacted", "stateless", "recall", "history", "archive", "rows"];

/** The messages of a record, or of all short requests and their answers, one behind the other. */
function historyOf(records, which) {
  if (which !== "all") return records[which].messages;
  return records.flatMap(({ request: { contents }, response }) => {
    const answer = response?.candidates?.[0]?.content;
    const isWhole = Array.isArray(contents) && answer?.parts;
    // The others are a file and a question about it.
    return isWhole && JSON.stringify(contents).length < 10_000 ? [...contents, answer] : [];
  });
}

const all = async (iterable) => {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
};

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 8);

/** JSON, with what it leaves out of errors. */
const text = (value) =>
  JSON.stringify(value, (_, part) => (part instanceof Error ? { ...part, message: part.message, cause: part.cause } : part));

/** What does not fit is an outcome too. */
const refusal = (error) => {
  if (error.code !== "context_overflow") throw error;
  return { error, edits: [] };
};

/** The hashes of one case, and the rungs that were climbed. */
async function worked(messages, steps, summarizer, given) {
  const [asked, logged] = [[], []];
  // Short, so that it is taken, and made of every character of the request.
  const summarize = (request, { attempt, purpose }) => {
    asked.push({ request, attempt, purpose });
    const facts = request.facts.slice(0, 5).map((fact) => `- ${fact.kind}: ${fact.text}`);
    return ["## Current Status", `The request was ${hash(text(request))}.`, ...facts].join("\n");
  };
  const options = () => ({
    ...given,
    summarize: { ...(summarizer === "own summarizer" && { call: summarize }), attempts: 1 },
    advanced: { runtime: runtime() },
    logger: (...line) => logged.push(line),
  });
  const store = openStore();
  const session = await openSession({ ...options(), id: "recorded", store });
  const prepared = [];
  for (let step = 0; step < steps; step++) {
    const [from, to] = [step, step + 1].map((at) => Math.round((messages.length * at) / steps));
    await session.append(...messages.slice(from, to));
    prepared.push(await session.prepare().catch(refusal));
  }
  const compacted = await session.compact();
  const stateless = await compact(messages, options());
  const ledger = await session.context.explain();
  const refs = ledger.flatMap(({ ref, refs }) => refs ?? ref ?? []);
  const made = {
    asked: text(asked),
    logged: text(logged),
    prepared: text(prepared),
    compacted: text([compacted, ledger]),
    stateless: text(stateless),
    recall: text([await session.recall.search("error user file"), await Promise.all(refs.map((ref) => session.recall.read(ref)))]),
    history: text(await all(session.archive.history())),
    archive: Buffer.concat(await all(session.archive.jsonl())),
    rows: store.text(),
  };
  await session.close();
  const edits = [...prepared.flatMap(({ edits }) => edits), ...compacted.appliedEdits, ...stateless.appliedEdits];
  return { hashes: PARTS.map((part) => hash(made[part])).join(" "), rungs: edits.map(({ kind }) => kind) };
}

const found = {};
const climbed = new Map();

for (const [file, format, which, contextWindow, steps] of HISTORIES) {
  const records = transcripts(`core/${file}`);
  const skip = !records && "no transcripts (CC_DATA)";

  test(`H1: ${file} ${which}: the same bytes as ever`, { skip }, async () => {
    const messages = frozen(historyOf(records, which));
    const differences = [];
    for (const preset of presets) {
      for (const summarizer of SUMMARIZERS) {
        const name = `${file} ${which}, ${preset}, ${summarizer}`;
        const { hashes, rungs } = await worked(messages, steps, summarizer, { format, preset, contextWindow });
        found[name] = hashes;
        const kind = `${preset}, ${summarizer}`;
        climbed.set(kind, [...(climbed.get(kind) ?? []), ...rungs]);
        const before = known[name]?.split(" ") ?? [];
        const changed = PARTS.filter((_, at) => hashes.split(" ")[at] !== before[at]);
        if (changed.length > 0) differences.push(`${name}: ${changed.join(", ")}`);
      }
    }
    if (!process.env.BLESS) assert.equal(differences.join("\n"), "", "bytes differ; if that is meant, run with BLESS=1");
  });
}

const incomplete = () => Object.keys(found).length < HISTORIES.length * presets.length * SUMMARIZERS.length;

test("H1: each preset compacts with either summarizer, and every rung is climbed", (context) => {
  if (incomplete()) return context.skip("not all histories are here (CC_DATA)");
  for (const preset of presets) {
    for (const summarizer of SUMMARIZERS) {
      const rungs = climbed.get(`${preset}, ${summarizer}`).filter((rung) => rung !== "repair");
      assert.ok(rungs.length > 0, `${preset}, ${summarizer}: nothing was compacted`);
    }
  }
  assert.deepEqual([...new Set([...climbed.values()].flat())].sort(), RUNGS);
  if (process.env.BLESS) writeFileSync(FIXTURE, `${JSON.stringify(found, null, 2)}\n`);
  assert.deepEqual(Object.keys(found), Object.keys(JSON.parse(readFileSync(FIXTURE, "utf8"))));
});
