/** The preset that nobody has to ask for: what it keeps, what it changes and when. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSession, planCompaction } from "context-compactor";
import { validateHistory } from "context-compactor/history";

const RULE = "Never touch the public API of src/parser.rs.";

/** A question, a call, a result of about 1,000 tokens and an answer. */
function turn(nth) {
  const id = `call_${nth}`;
  const call = { id, type: "function", function: { name: "read_file", arguments: JSON.stringify({ path: `src/f${nth}.rs` }) } };
  const lines = Array.from({ length: 60 }, (_, at) => `${at}: let value_${nth}_${at} = parse(${at})?; // step ${nth}`);
  return [
    { role: "user", content: nth === 0 ? `Fix the parser. ${RULE}` : `Go on with step ${nth}.` },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: id, content: lines.join("\n") },
    { role: "assistant", content: `Step ${nth} is done.` },
  ];
}

/** A question and an answer of about 500 tokens, in words of their own. */
function talk(nth) {
  const words = Array.from({ length: 70 }, (_, at) => `Point ${nth}.${at} of the plan is settled.`);
  const question = nth === 0 ? `Fix the parser. ${RULE}` : `What about step ${nth}?`;
  return [
    { role: "user", content: question },
    { role: "assistant", content: words.join(" ") },
  ];
}

/** Runs an agent of so many turns, each a second after the last: what was sent at each, and what was done before it. */
async function agent(options, of = turn, turns = 60) {
  let [now, ids] = [1_700_000_000_000, 0];
  const runtime = { now: () => (now += 1_000), id: () => (++ids).toString(16).padStart(32, "0") };
  const session = await openSession({ store: "memory", contextWindow: 32_000, advanced: { runtime }, ...options });
  const steps = [];
  for (let nth = 0; nth < turns; nth++) {
    await session.append(...of(nth));
    const tokens = session.context.usage().usedTokens;
    const { messages, edits, result } = await session.prepare();
    steps.push({ messages, tokens, rungs: edits.map(({ kind }) => kind), result });
  }
  return { session, steps };
}

test("W2 balanced, the default, summarizes at the number that it shows, and clears in batches before that", async () => {
  const { session, steps } = await agent({}, talk);
  const { threshold } = session.context.usage();
  const summarized = steps.filter(({ rungs }) => rungs.includes("summarize"));
  assert.ok(summarized.length >= 1, "it acts");
  assert.ok(summarized.every(({ tokens }) => tokens >= threshold), `${summarized.map(({ tokens }) => tokens)} of ${threshold}`);
  const { steps: working } = await agent({});
  const cleared = working.filter(({ rungs }) => rungs.length > 0);
  assert.ok(cleared.length >= 2 && cleared.length < working.length / 3, `${cleared.length} of ${working.length} steps`);
  assert.ok(cleared.every(({ tokens }) => tokens >= threshold / 2), `${cleared.map(({ tokens }) => tokens)}: no recall tools`);
  const { steps: waiting } = await agent({ contextWindow: 200_000, compactAt: { tokens: 150_000 } }, talk);
  assert.equal(waiting.filter(({ rungs }) => rungs.length > 0).length, 0, "who names a threshold gets that");
});

test("balanced: in the place of a result stand its reference, its call, its length and its first line, and its call stays", async () => {
  for (const recall of [true, false]) {
    const { session, steps } = await agent({ recall });
    const { messages } = steps.at(-1);
    assert.deepEqual((await validateHistory(messages)).problems, []);
    const stands = recall ? "Tool result is at: (off_\\w+)" : "Tool result left out; look it up again if needed";
    const form = new RegExp(`^${stands} \\((.+?); (\\d+) characters${recall ? "; read it with recall_read" : ""}\\)\nIt begins: (.+)$`);
    const at = messages.findIndex(({ role, content }) => role === "tool" && form.test(content));
    const [call, chars, line] = form.exec(messages[at].content).slice(-3);
    // The order of those in the prompt is that of the ledger.
    const nth = messages.slice(0, at).filter(({ role, content }) => role === "tool" && form.test(content)).length;
    const { ref } = (await session.context.explain()).filter(({ fate }) => fate === "offloaded")[nth];
    assert.equal(messages[at].content.includes(ref), recall);
    const text = await session.recall.read(ref);
    assert.deepEqual([text.length, text.split("\n")[0]], [Number(chars), line]);
    const { function: called } = messages[at - 1].tool_calls[0];
    assert.equal(call, `${called.name} ${JSON.parse(called.arguments).path ?? JSON.parse(called.arguments).file_path}`);
  }
});

for (const [name, of] of Object.entries({ results: turn, talk })) {
  test(`lesson: cache: without a compaction no message that was sent before changes: ${name}`, async () => {
    const { steps } = await agent({}, of);
    let changed = 0;
    for (const [nth, { messages, rungs }] of steps.entries()) {
      if (nth === 0) continue;
      const before = JSON.stringify(steps[nth - 1].messages);
      const same = JSON.stringify(messages.slice(0, steps[nth - 1].messages.length)) === before;
      assert.equal(same, rungs.length === 0, `step ${nth}: ${rungs}`);
      changed += Number(!same);
    }
    assert.ok(changed > 0, "it acts");
  });
}

test("balanced keeps the user's rule beside any summary, and what left the context is one search away", async () => {
  for (const text of ["## Current Status\nThe points of the plan are settled one after the other.", undefined]) {
    const { session, steps } = await agent(text ? { summarize: { call: async () => text, fallback: "extractive" } } : {}, talk, 80);
    const [{ content }] = steps.at(-1).messages;
    assert.match(content, /^\[Compressed History\]/);
    assert.ok(content.includes(RULE), content);
    assert.ok((await session.context.explain()).some(({ fate }) => fate === "summarized"));
    const found = await session.recall.search("Point 3.17 of the plan");
    assert.ok(found.some(({ snippet }) => snippet.includes("Point 3.17")), JSON.stringify(found));
  }
});

test("planCompaction of a short chat proves that nothing is to be done", async () => {
  const { willCompact, tokens, floor, edits: rungs } = await planCompaction(turn(0));
  assert.deepEqual([willCompact, floor, rungs], [false, tokens, []]);
});
