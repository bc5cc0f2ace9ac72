/** The presets through the package: what each leaves of one long run of an agent. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { addTurn, compact, exportTrajectory, openSession, stats, validateHistory } from "../support/offload.mjs";

const output = (nth, lines) => Array.from({ length: lines }, (_, at) => `${nth}:${at} the parser keeps 한국어 👩‍👩‍👧`).join("\n");

function turn(nth, lines, tool = "read_file") {
  const id = `call_${nth}`;
  const call = { id, type: "function", function: { name: tool, arguments: JSON.stringify({ path: `src/${nth}.rs` }) } };
  return [
    { role: "user", content: `Question ${nth}, with words of its own.` },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: id, content: output(nth, lines) },
    { role: "assistant", content: `Answer ${nth}.` },
  ];
}

const run = (turns, lines) => Array.from({ length: turns }, (_, nth) => turn(nth, lines)).flat();
const valid = async (messages) => assert.deepEqual((await validateHistory(messages)).problems, []);
const results = (messages) => messages.filter(({ role }) => role === "tool").map(({ content }) => content);

test("s3_1_layered clears old results at every prepare and the reference still reads them", async () => {
  const session = await openSession({ store: "memory", preset: "layered", contextWindow: 200_000 });
  const messages = run(6, 120);
  await session.append(...messages);
  const { messages: sent, edits } = await session.prepare();
  await valid(sent);
  assert.deepEqual(edits.map(({ kind }) => kind), ["clear"]);
  assert.deepEqual(results(sent).map((text) => text.startsWith("[Output compacted")), [true, true, true, false, false, false]);
  const [entry] = (await session.context.explain()).filter(({ fate }) => fate === "reduced");
  assert.equal(await session.recall.read(entry.ref), messages[2].content);
  await session.close();
});

test("s3_6_layered puts files back, and asks readFile for them", async () => {
  const asked = [];
  const { messages, success } = await compact(run(12, 60), {
    preset: "layered",
    summarize: () => "## Goals\nThe files were read one after the other.",
    restoreFiles: { read: async (path) => (asked.push(path), `now: ${path}`) },
  });
  assert.ok(success);
  await valid(messages);
  assert.match(messages[0].content, /^\[Conversation compressed\]\n## Goals/);
  assert.match(messages[0].content, /<file path="src\/9\.rs">\nnow: src\/9\.rs\n<\/file>/);
  assert.ok(asked.length > 0 && asked.length <= 5);
});

test("s2_1_s2_8_react shortens large results with the cheaper summariser, and removes nothing", async () => {
  const calls = [];
  const session = await openSession({
    store: "memory",
    preset: "react",
    summarize: { call: () => assert.fail("the cheaper one is there"), attempts: 1, forResults: (_, { purpose }) => (calls.push(purpose), "a shorter result") },
  });
  const prose = "Words that no table and no log has, one sentence after the other. ".repeat(2_000);
  await addTurn(session, { thought: "I read.", action: { tool: "read", path: "a" }, result: prose });
  const { messages } = await session.prepare();
  assert.equal(messages.length, 1);
  assert.equal(messages[0].thought, "I read.");
  assert.deepEqual(messages[0].action, { tool: "read", path: "a" });
  assert.match(messages[0].result, /^\[Part 1\/3\]\na shorter result\n\n\[Part 2\/3\]/);
  assert.deepEqual(calls, ["chunk", "chunk", "chunk"]);
  const full = await stats(session);
  assert.equal(full.turns_count, 1);
  assert.equal(full.needs_compression, false);
  const { execution } = await exportTrajectory(session);
  assert.deepEqual(execution.tool_calls, messages);
  await session.close();
});

test("s2_8_without a cheaper summariser the usual one shortens results", async () => {
  const purposes = [];
  const summarize = (_, { purpose }) => (purposes.push(purpose), "a shorter result");
  const session = await openSession({ store: "memory", preset: "react", summarize: { call: summarize, attempts: 1 } });
  const prose = "Words that no table and no log has, one sentence after the other. ".repeat(1_000);
  await addTurn(session, { thought: "I read.", action: { tool: "read", path: "a" }, result: prose });
  const { messages } = await session.prepare();
  assert.match(messages[0].result, /^\[Part 1\/2\]\na shorter result\n/);
  assert.deepEqual(purposes, ["chunk", "chunk"]);
  await session.close();
});

test("s2_7_react: Infinity switches the first layer off", async () => {
  const session = await openSession({ store: "memory", preset: "react", presetOptions: { singleResultThreshold: Infinity } });
  await session.append(...turn(0, 3_000));
  const { edits } = await session.prepare();
  assert.deepEqual(edits, []);
  await session.close();
});

test("s4_2_factor3 keeps the last three behind a concise summary", async () => {
  const { messages } = await compact(run(6, 10), { preset: "factor3", summarize: () => "## Key Decisions\nRead on, file by file." });
  await valid(messages);
  assert.match(messages[0].content, /^\[SUMMARY\]: ## Key Decisions/);
});

test("s4_3_pinned messages stay word for word, for every preset that summarises", async () => {
  for (const preset of ["offload", "layered", "factor3"]) {
    const history = run(6, 10);
    history[4] = { role: "user", content: "Never edit </message> main.rs $& 한국어" };
    const { messages, ledger } = await compact(history, {
      preset,
      summarize: () => "## Key Decisions\nRead on, file by file.",
      pins: { match: (message, index) => message === history[4] && index === 4 },
    });
    await valid(messages);
    assert.ok(messages[0].content.includes("Never edit &lt;/message> main.rs $& 한국어"), preset);
    assert.deepEqual([ledger[4].fate, ledger[4].quoted], ["verbatim", true]);
  }
});
