/** Reads vector files, and runs a vector through the package. README.md says what everything means. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import Ajv from "ajv/dist/2020.js";
import {
  compact,
  detectFormat,
  memoryStore,
  openSession,
  repairHistory,
  splitMessages,
  validateHistory,
} from "../support/offload.mjs";
import { frozen, runtime } from "../support/api.mjs";

const here = new URL("./", import.meta.url);
const schema = JSON.parse(readFileSync(new URL("vectors.schema.json", here), "utf8"));
const fits = new Ajv.default({ strictTypes: false }).compile(schema);

/** Names of the vector files of this folder. */
export const files = readdirSync(here).filter((name) => name.endsWith(".json") && !name.endsWith(".schema.json"));

/** The vectors of a file, each with its format. Throws when the file has not the schema's shape. */
export function load(name) {
  return parse(name, readFileSync(new URL(name, here), "utf8"));
}

/** The same of a file's text. */
export function parse(name, text) {
  let file;
  try {
    file = JSON.parse(text);
  } catch (error) {
    throw new Error(`${name} is not JSON: ${error.message}`, { cause: error });
  }
  if (!fits(file))
    throw new Error(`${name} is not a vector file: ${fits.errors.map((error) => told(error, file)).join("; ")}`);
  const seen = new Set();
  return file.vectors.map((vector, at) => {
    const wrong = (what) => new Error(`${name}: vector ${at} (${vector.name}): ${what}`);
    if (seen.has(vector.name)) throw wrong("the name stands on two vectors");
    seen.add(vector.name);
    const format = vector.format ?? file.format;
    if (format === undefined && vector.operation !== "detect") throw wrong("neither it nor the file has a format");
    const { fates } = vector.expected;
    if (fates && fates.length !== vector.messages.length) {
      throw wrong(`${fates.length} fates for ${vector.messages.length} messages`);
    }
    const indices = [...(vector.expected.problems ?? []), ...(vector.expected.changes ?? [])].map(
      ({ index }) => index,
    );
    if (indices.some((index) => index >= vector.messages.length)) throw wrong("an index is past the last message");
    return { ...vector, format, options: vector.options ?? {} };
  });
}

/** An error of the schema with the vector's own name. */
function told({ instancePath, message, params }, file) {
  const at = /^\/vectors\/(\d+)/.exec(instancePath)?.[1];
  const where = at === undefined ? instancePath : `vector ${at} (${file.vectors[at]?.name}) ${instancePath}`;
  return `${where} ${message} ${JSON.stringify(params)}`;
}

/** True for a format that this release has. */
export async function knows(format) {
  try {
    await validateHistory([], { format });
    return true;
  } catch (error) {
    if (error.code === "invalid_option") return false;
    throw error;
  }
}

/** Runs a vector and throws when what comes out is not what it expects. */
export async function run(vector) {
  const messages = frozen(structuredClone(vector.messages));
  const once = await OPERATIONS[vector.operation]({ ...vector, messages });
  const again = await OPERATIONS[vector.operation]({ ...vector, messages: structuredClone(vector.messages) });
  assert.equal(JSON.stringify(again), JSON.stringify(once), "the same input must give the same bytes");
}

const OPERATIONS = { validate, repair, detect, split, compact: compacted, offload: offloaded };

async function validate({ messages, format, options, expected: { valid, problems = [] } }) {
  let found;
  try {
    found = await validateHistory(messages, { format, ...options });
  } catch (error) {
    if (error.code !== "invalid_message") throw error;
    const told = problems.some(({ rule, index }) => rule.endsWith("0") && index === error.index);
    assert.ok(told, `no message that cannot be read was expected: ${error.message}`);
    return error.index;
  }
  assert.equal(found.valid, found.problems.length === 0);
  assert.deepEqual(places(found.problems), places(problems), described(found.problems));
  assert.equal(found.valid, valid);
  return found.problems;
}

async function repair({ messages, format, expected }) {
  const repaired = await repairHistory(messages, { format });
  equal(repaired.messages, expected.messages);
  if (expected.changes)
    assert.deepEqual(places(repaired.changes), places(expected.changes), described(repaired.changes));
  assert.deepEqual((await validateHistory(repaired.messages, { format })).problems, [], "what was repaired must be valid");
  const again = await repairHistory(repaired.messages, { format });
  assert.deepEqual(again.changes, [], "what was repaired needs no repair");
  again.messages.forEach((message, index) => assert.equal(message, repaired.messages[index]));
  return repaired;
}

async function detect({ messages, expected }) {
  let found;
  try {
    found = { format: await detectFormat(messages) };
  } catch (error) {
    found = { error: error.code };
  }
  assert.deepEqual(found, expected);
  return found;
}

async function split({ messages, format, options, expected }) {
  const { boundary, toCompress, toPreserve } = await splitMessages(messages, { format, keep: options.keep });
  assert.equal(boundary, expected.boundary);
  assert.deepEqual([...toCompress, ...toPreserve].length, messages.length);
  return boundary;
}

async function compacted({ messages, format, options, expected }) {
  const { keep, summary } = options;
  const given = { format, keep, advanced: { runtime: runtime() }, summarize: { call: async () => summary, attempts: 1 } };
  const result = await compact(messages, given);
  assert.equal(result.success, true, String(result.error));
  if (expected.fates.includes("summarized")) assert.equal(result.summary, summary, result.reason);
  await check(messages, result.messages, result.ledger, format, expected, { summary });
  return result;
}

async function offloaded({ messages, format, options, expected }) {
  const session = await openSession({
    id: "vector",
    format,
    store: memoryStore(),
    // Everything that may go goes, and nothing is summarised.
    presetOptions: { ...options, offloadThreshold: 1, compactTriggerThreshold: 1, retryCount: 1 },
    advanced: { runtime: runtime() },
    summarize: async () => {
      throw new Error("not asked for");
    },
  });
  await session.append(...messages);
  const prepared = await session.prepare();
  const ledger = await session.context.explain();
  const references = ledger.flatMap(({ ref, refs }) => refs ?? (ref === undefined ? [] : [ref]));
  await check(messages, prepared.messages, ledger, format, expected, { references });
  for (const { index, ref, refs } of ledger) {
    for (const reference of refs ?? (ref === undefined ? [] : [ref])) {
      const text = await session.recall.read(reference);
      assert.ok(text.length > options.minChars);
      assert.ok(holds(messages[index], text), `${reference} does not read back a result of message ${index}`);
    }
  }
  await session.close();
  return prepared.messages;
}

/** What holds for every history that was made smaller. */
async function check(messages, after, ledger, format, expected, marks) {
  assert.deepEqual(
    ledger.map(({ index }) => index),
    messages.map((_, index) => index),
  );
  assert.deepEqual(
    ledger.map(({ fate }) => fate),
    expected.fates,
  );
  const verbatim = ledger
    .filter(({ fate, quoted }) => fate === "verbatim" && !quoted)
    .map(({ index }) => messages[index]);
  assert.deepEqual(
    after.filter((message) => verbatim.includes(message)),
    verbatim,
    "kept messages, untouched, in order",
  );
  assert.deepEqual((await validateHistory(after, { format })).problems, [], "what comes out must be valid");
  if (expected.messages) equal(after, expected.messages, marks);
}

const places = (found) => [...new Set(found.map(({ rule, index }) => `${rule} at message ${index}`))].sort();
const described = (found) =>
  found.map(({ rule, index, message }) => `${rule} at message ${index}: ${message}`).join("\n");

/** True when a text of the message stands in `text`, or the text in one of the message. */
function holds(message, text) {
  if (typeof message === "string")
    return message.length > 0 && (text.includes(message) || text.includes(JSON.stringify(message).slice(1, -1)));
  return (
    typeof message === "object" && message !== null && Object.values(message).some((value) => holds(value, text))
  );
}

/** Throws unless `actual` is what is expected, whatever stands in the place of the placeholders. */
export function equal(actual, expected, marks = {}) {
  if (matches(actual, expected, marks)) return;
  assert.deepEqual(actual, expected);
  assert.fail("a placeholder stands for something else");
}

function matches(actual, expected, marks) {
  if (typeof expected === "string") {
    const { summary, references } = marks;
    if (typeof actual !== "string") return false;
    if (expected.includes("{{reference}}"))
      return references?.some((reference) => actual.includes(reference)) ?? false;
    if (summary && (expected.includes("{{summary}}") || expected.includes(summary)))
      return actual.includes(summary);
    return expected === "{{text}}" ? actual.trim() !== "" : actual === expected;
  }
  if (typeof expected !== "object" || expected === null) return isDeepStrictEqual(actual, expected);
  if (typeof actual !== "object" || actual === null || Array.isArray(actual) !== Array.isArray(expected))
    return false;
  const [has, wants] = [Object.keys(actual), Object.keys(expected)];
  return (
    isDeepStrictEqual(has.sort(), wants.sort()) && wants.every((key) => matches(actual[key], expected[key], marks))
  );
}
