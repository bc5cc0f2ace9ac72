import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bar,
  compactAnswer,
  contextText,
  helpText,
  parseCommand,
  runCommand,
} from "../src/logic/commands.js";

const result = (fields) => ({
  messages: [],
  success: true,
  trigger: "manual",
  previousTokens: 0,
  currentTokens: 0,
  freedTokens: 0,
  preservedCount: 5,
  deletedFiles: [],
  appliedEdits: [],
  ledger: [],
  llmCalls: 1,
  durationMs: 1,
  ...fields,
});
const usage = {
  usedTokens: 21940,
  maxTokens: 32768,
  percent: 66.95,
  threshold: 24576,
  messageCount: 43,
  toolCallCount: 1051,
  offloadCount: 12,
  categories: [],
};

test("s1_13 plain text is not a command", () => {
  assert.equal(parseCommand("please /compact this"), undefined);
  assert.equal(parseCommand(""), undefined);
});

test("s1_13 /compact takes instructions, over several lines", () => {
  assert.deepEqual(parseCommand("/compact"), { name: "compact", instructions: "" });
  assert.deepEqual(parseCommand("  /compact keep the\nSQL  "), {
    name: "compact",
    instructions: "keep the\nSQL",
  });
  assert.deepEqual(parseCommand("/compacted"), { name: "unknown", text: "/compacted" });
});

test("s1_13 success prints before → after, freed tokens and deleted offloads with the locale's separators", () => {
  const done = result({
    previousTokens: 31204,
    currentTokens: 9876,
    freedTokens: 21328,
    deletedFiles: ["off_a", "off_b"],
  });
  assert.equal(
    compactAnswer(done, "en-US").text,
    "31,204 → 9,876 tokens\nFreed 21,328 tokens, deleted 2 offloads.",
  );
  assert.equal(
    compactAnswer(done, "de-DE").text,
    "31.204 → 9.876 tokens\nFreed 21.328 tokens, deleted 2 offloads.",
  );
  assert.match(
    compactAnswer(
      result({ previousTokens: 9, currentTokens: 4, freedTokens: 5, deletedFiles: ["off_a"] }),
      "en-US",
    ).text,
    /deleted 1 offload\.$/,
  );
});

test("s1_13 failure says that the history is unchanged", async () => {
  const answer = compactAnswer(
    result({ success: false, error: new Error("no answer after 3 attempts") }),
    "en-US",
  );
  assert.equal(answer.tone, "error");
  assert.equal(answer.text, "Compaction failed: no answer after 3 attempts\nThe history is unchanged.");
  const thrown = await runCommand(
    { name: "compact", instructions: "" },
    { compact: () => Promise.reject(new Error("closed")), getContextUsage: () => usage },
  );
  assert.match(thrown.text, /closed\nThe history is unchanged\.$/);
  const aborted = await runCommand(
    { name: "compact", instructions: "" },
    { compact: () => Promise.reject(new DOMException("x", "AbortError")), getContextUsage: () => usage },
  );
  assert.equal(aborted.text, "Stopped.\nThe history is unchanged.");
});

test("s1_13 nothing to do says so", () => {
  const answer = compactAnswer(result({ currentTokens: 1200, reason: "5 messages or fewer" }), "en-US");
  assert.equal(answer.tone, "idle");
  assert.equal(answer.text, "Nothing to compact: 5 messages or fewer\n1,200 tokens in context.");
});

test("s1_13 the promise resolves only when the compaction has ended", async () => {
  let ended = false;
  const compact = async (options) => {
    assert.deepEqual(options, { instructions: "keep names" });
    await new Promise((resolve) => setTimeout(resolve, 10));
    ended = true;
    return result({ previousTokens: 2, currentTokens: 1, freedTokens: 1 });
  };
  await runCommand(
    { name: "compact", instructions: "keep names" },
    { compact, getContextUsage: () => usage },
  );
  assert.equal(ended, true);
});

test("s1_13 /context prints tokens, percent, threshold, counts and a bar", () => {
  const [tokens, drawn, threshold, counts] = contextText(usage, "en-US").split("\n");
  assert.equal(tokens, "21,940 / 32,768 tokens (67%)");
  assert.equal(drawn, `${"█".repeat(21)}${"░".repeat(3)}┃${"░".repeat(8)}`);
  assert.equal(threshold, "Compaction at 24,576 tokens");
  assert.equal(counts, "43 messages · 1,051 tool calls · 12 offloads");
});

test("the bar never leaves its frame", () => {
  assert.equal(bar(3, 2), `${"█".repeat(32)}┃`);
  assert.equal(bar(-1, -1), `┃${"░".repeat(32)}`);
});

test("s1_13 help names every command", async () => {
  assert.match(helpText(), /\/compact \[instructions\]\s+Compress conversation history/);
  const unknown = await runCommand(
    { name: "unknown", text: "/comapct" },
    { compact: () => Promise.reject(new Error()), getContextUsage: () => usage },
  );
  assert.match(unknown.text, /^Unknown command \/comapct\./);
});
