/** The conformance vectors, run through the package; and that a vector that is wrong is told. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { equal, files, knows, load, parse, run } from "./vectors.mjs";

/** Every rule of a format, by the letters that begin its id. */
const RULES = {
  "openai-chat": ["OC1", "OC2", "OC3", "OC4", "OC5", "OC6", "OC7"],
  "openai-responses": ["OR1", "OR2", "OR3", "OR4", "OR5"],
  anthropic: ["AN1", "AN2", "AN3", "AN4", "AN5", "AN6", "AN7", "AN8"],
  gemini: ["GM1", "GM2", "GM3", "GM4", "GM5"],
  "ai-sdk": ["AI1", "AI2", "AI3", "AI4", "AI5", "AI6", "AI7"],
  react: ["RT1"],
};

const known = new Set();
for (const format of Object.keys(RULES)) if (await knows(format)) known.add(format);

for (const file of files) {
  describe(file, () => {
    for (const vector of load(file)) {
      const skip = vector.format !== undefined && !known.has(vector.format) && `this release has no ${vector.format}`;
      test(`${vector.operation}: ${vector.name}`, { skip }, () => run(vector));
    }
  });
}

describe("every rule has vectors", () => {
  const vectors = files.flatMap(load);
  for (const [format, rules] of Object.entries(RULES)) {
    const skip = !known.has(format) && `this release has no ${format}`;
    for (const rule of rules) {
      test(rule, { skip }, () => {
        const ofFormat = vectors.filter((vector) => vector.format === format);
        const named = ofFormat.filter(({ name }) => new RegExp(`\\b${rule}\\b`).test(name));
        assert.notEqual(named.length, 0, `no vector of ${format} is named after ${rule}`);
        // A rule about what stood before cannot be seen on one history.
        const made = named.some(({ operation }) => ["split", "compact", "offload"].includes(operation));
        const broken = named.some(({ expected: { problems = [], changes = [] } }) =>
          [...problems, ...changes].some((found) => found.rule === rule),
        );
        assert.ok(broken || made, `no vector named after ${rule} breaks it`);
        // What is valid keeps every rule.
        const kept = ofFormat.some(({ operation, expected }) => operation === "validate" && expected.valid);
        assert.ok(kept, `no vector of ${format} is valid`);
      });
    }
  }
});

describe("a file that is wrong is told", () => {
  const good = { name: "OC1: x", operation: "validate", messages: [], expected: { valid: true } };
  const file = (vector, more = {}) =>
    JSON.stringify({ version: 1, format: "openai-chat", vectors: [{ ...good, ...vector }], ...more });
  test("a good one is read", () => {
    assert.deepEqual(parse("good.json", file({})), [{ ...good, format: "openai-chat", options: {} }]);
  });
  const compact = {
    operation: "compact",
    messages: [{}],
    options: { keep: { messages: 1 }, summary: "What was said until now." },
  };
  for (const [name, text, error] of [
    ["no JSON", "{", /bad\.json is not JSON/],
    ["another version", file({}, { version: 2 }), /bad\.json .*\/version must be equal to constant/],
    ["no vectors", file({}, { vectors: [] }), /\/vectors must NOT have fewer than 1 items/],
    ["a field that does not exist", file({}, { vector: [] }), /must NOT have additional properties .*"vector"/],
    [
      "a misspelt expectation",
      file({ expected: { vaild: true } }),
      /vector 0 \(OC1: x\) .*must have required property 'valid'/,
    ],
    [
      "an operation that does not exist",
      file({ operation: "guess" }),
      /vector 0 \(OC1: x\) .*\/operation must be equal to one of/,
    ],
    ["a format that does not exist", file({}, { format: "openai" }), /\/format must be equal to one of/],
    ["no format", file({}, { format: undefined }), /vector 0 \(OC1: x\): neither it nor the file has a format/],
    [
      "a broken history without its problems",
      file({ expected: { valid: false } }),
      /must have required property 'problems'/,
    ],
    [
      "a valid history with problems",
      file({ expected: { valid: true, problems: [{ rule: "OC1", index: 0 }] } }),
      /must NOT have more than 0 items/,
    ],
    [
      "a problem past the end",
      file({ expected: { valid: false, problems: [{ rule: "OC1", index: 0 }] } }),
      /an index is past the last message/,
    ],
    [
      "fates that do not fit",
      file({ ...compact, expected: { valid: true, fates: [] } }),
      /0 fates for 1 messages/,
    ],
    [
      "a fate that does not exist",
      file({ ...compact, expected: { valid: true, fates: ["lost"] } }),
      /fates\/0 must be equal to one of/,
    ],
    [
      "two vectors of one name",
      file({}, { vectors: [good, good] }),
      /vector 1 \(OC1: x\): the name stands on two vectors/,
    ],
  ]) {
    test(name, () => assert.throws(() => parse("bad.json", text), error));
  }
});

describe("a result that is wrong is told", () => {
  const call = { id: "a", type: "function", function: { name: "f", arguments: "{}" } };
  const history = [
    { role: "user", content: "Call f." },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "a", content: "The result of f, which is longer than ten characters." },
    { role: "user", content: "Go on." },
  ];
  const base = { name: "x", format: "openai-chat", messages: history, options: {} };
  const offload = { ...base, operation: "offload", options: { scanRatio: 1, minChars: 10 } };
  const fates = ["verbatim", "verbatim", "offloaded", "verbatim"];
  const moved = history.with?.(2, { ...history[2], content: "{{reference}}" }) ?? [];
  for (const [name, vector] of [
    [
      "valid",
      { ...base, operation: "validate", expected: { valid: false, problems: [{ rule: "OC1", index: 0 }] } },
    ],
    [
      "the rule",
      {
        ...base,
        operation: "validate",
        messages: history.slice(2),
        expected: { valid: false, problems: [{ rule: "OC2", index: 0 }] },
      },
    ],
    [
      "the repaired messages",
      { ...base, operation: "repair", messages: history.slice(2), expected: { messages: history.slice(2) } },
    ],
    [
      "the changes",
      {
        ...base,
        operation: "repair",
        messages: history.slice(2),
        expected: { messages: history.slice(3), changes: [] },
      },
    ],
    ["the format", { ...base, operation: "detect", expected: { format: "anthropic" } }],
    ["the error", { ...base, operation: "detect", expected: { error: "unknown_format" } }],
    [
      "the boundary",
      { ...base, operation: "split", options: { keep: { messages: 2 } }, expected: { boundary: 2 } },
    ],
    ["a fate", { ...offload, expected: { valid: true, fates: Array(4).fill("verbatim") } }],
    [
      "what is not a reference",
      {
        ...offload,
        expected: {
          valid: true,
          fates,
          messages: [...history.slice(0, 3), { role: "user", content: "{{reference}}" }],
        },
      },
    ],
    ["a message", { ...offload, expected: { valid: true, fates, messages: moved.slice(0, 3) } }],
  ]) {
    test(name, () => assert.rejects(async () => run(vector), { code: "ERR_ASSERTION" }));
  }
  test("placeholders stand for what they say and nothing else", () => {
    equal(["see r1", "so: S.", "x"], ["{{reference}}", "{{summary}}", "{{text}}"], {
      references: ["r1"],
      summary: "S.",
    });
    for (const [actual, expected] of [
      ["see r2", "{{reference}}"],
      ["S", "{{summary}}"],
      [" ", "{{text}}"],
      [{ a: 1 }, { a: 1, b: undefined }],
      [{ a: 1, b: 2 }, { a: 1 }],
      [["a"], { 0: "a" }],
      [1, "1"],
    ]) {
      assert.throws(() => equal(actual, expected, { references: ["r1"], summary: "S." }));
    }
  });
});
