/** Lessons about what may be sent: pairs, blocks, reasoning, roles, the middle of a turn, Unicode. docs/lessons.md lists them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  buildSummaryPrompt,
  compact,
  extractiveSummary,
  openSession,
  repairHistory,
  splitMessages,
  validateHistory,
} from "../support/offload.mjs";
import { anthropicExchange, chat, exchange, frozen, RECORD, summariser, SUMMARY } from "../support/api.mjs";

const LONG = "The parser fails in src/parser.rs on line 42 with error E0502. ".repeat(8).trimEnd();
const user = (content) => ({ role: "user", content });
const assistant = (content, more = {}) => ({ role: "assistant", content, ...more });
const call = (id, name = "read") => ({ id, type: "function", function: { name, arguments: "{}" } });
const calls = (...ids) => assistant(null, { tool_calls: ids.map((id) => call(id)) });
const result = (id, content = `${id}: ${LONG}`) => ({ role: "tool", tool_call_id: id, content });
const use = (id) => ({ type: "tool_use", id, name: "read", input: {} });
const used = (id, content = `${id}: ${LONG}`) => ({ type: "tool_result", tool_use_id: id, content });
const thinking = (nth) => ({ type: "thinking", thinking: `Thought ${nth}.`, signature: `c2ln${nth}` });

const valid = async (messages, format, what) =>
  assert.deepEqual((await validateHistory(messages, { format })).problems, [], what);

/** A session that moves results out at every `prepare` and summarises nothing. */
const offloading = () =>
  openSession({ store: "memory", compactAt: { tokens: 1 }, advanced: { minOffloadGain: 1 } });

/** Compacts a history with every number of messages to keep, and hands what came out to `check`. */
async function everywhere(history, format, check) {
  for (let messages = 1; messages < history.length; messages++) {
    const result = await compact(history, { format, keep: { messages }, summarize: summariser() });
    assert.equal(result.success, true, `keep ${messages}: ${result.error}`);
    await check(result, `keep ${messages}`);
  }
}

// ---- orphaned tool pairs --------------------------------------------------------------------------------------------

const PARALLEL = {
  "openai-chat": [1, 2, 3].flatMap((turn) => [
    user(`Question ${turn}: ${LONG}`),
    // The ids come again in every turn, as some models make them.
    calls("call_0", "call_1", "call_2"),
    result("call_2"),
    result("call_0"),
    result("call_1"),
    assistant(`Answer ${turn}: ${LONG}`),
  ]),
  anthropic: [1, 2, 3].flatMap((turn) => [
    user(`Question ${turn}: ${LONG}`),
    assistant([{ type: "text", text: "I look." }, use("t0"), use("t1")]),
    user([used("t1"), used("t0"), { type: "text", text: "And then?" }]),
    assistant(`Answer ${turn}: ${LONG}`),
  ]),
};

for (const [format, history] of Object.entries(PARALLEL)) {
  test(`lesson: orphaned tool pairs: parallel calls of ${format} whose ids repeat are cut whole, wherever the cut is`, async () => {
    await valid(history, format);
    await everywhere(frozen(history), format, ({ messages }, what) => valid(messages, format, what));
  });

  test(`lesson: orphaned tool pairs: a second and third compaction of ${format} part none either`, async () => {
    const session = await openSession({ store: "memory", format, keep: { messages: 2 }, summarize: summariser() });
    for (const message of [...history, ...history, ...history]) {
      await session.append(message);
      await session.compact();
      await valid((await session.prepare()).messages, format);
    }
  });
}

test("lesson: orphaned tool pairs: a step that was aborted between call and result is not sent, and not forgotten", async () => {
  const session = await openSession({ store: "memory" });
  const warnings = [];
  session.on("warning", (warning) => warnings.push(warning));
  const history = [user("Read both."), calls("a", "b"), result("a"), user("Stop. What is 2 + 2?"), assistant("4")];
  await session.append(...history);
  const { messages } = await session.prepare();
  await valid(messages, "openai-chat");
  assert.ok(
    !messages.some(({ tool_calls }) => tool_calls?.some(({ id }) => id === "b")),
    "a call that has no result",
  );
  assert.ok(messages.includes(history[0]) && messages.includes(history[3]) && messages.includes(history[4]));
  assert.equal((await session.context.explain()).length, 5);
  assert.ok(
    warnings.some(({ message }) => message.includes("OC2")),
    "it is said",
  );
});

test("lesson: orphaned tool pairs: a result whose call is gone is reported by index, and mended only when asked", async () => {
  const history = frozen([result("a"), ...chat(10)]);
  assert.deepEqual(
    (await validateHistory(history)).problems.map(({ rule, index }) => [rule, index]),
    [["OC1", 0]],
  );
  const { messages, changes } = await repairHistory(history);
  assert.deepEqual(
    changes.map(({ rule, index }) => [rule, index]),
    [["OC1", 0]],
  );
  assert.equal(messages.length, 20);
  messages.forEach((message, at) => assert.equal(message, history[at + 1]));
});

// ---- server tools / new block types ---------------------------------------------------------------------------------

const SERVER = [1, 2].flatMap((turn) => [
  user(`Question ${turn}: ${LONG}`),
  assistant([
    { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "E0502" } },
    {
      type: "web_search_tool_result",
      tool_use_id: "srv_1",
      content: [
        {
          type: "web_search_result",
          url: "https://example.org/",
          title: LONG,
          encrypted_content: "ZW5j".repeat(50),
        },
      ],
    },
    // A tool that nobody knows yet.
    { type: "hologram_tool_use", id: "srv_2", name: "hologram", input: {} },
    { type: "hologram_tool_result", tool_use_id: "srv_2", content: { frames: [1, 2, 3] }, expires: null },
    { type: "text", text: "Found.", citations: null, _extra: { a: [1] } },
  ]),
  user(`Good. ${LONG}`),
  assistant(`Done. ${LONG}`),
]);

test("lesson: server tools / new block types: what nobody knows yet stays with its partner, to the letter", async () => {
  await everywhere(frozen(SERVER), "anthropic", async ({ messages }, what) => {
    await valid(messages, "anthropic", what);
    const kept = messages.filter((message) => SERVER.includes(message));
    assert.deepEqual(kept, SERVER.slice(-kept.length), what);
  });
});

test("lesson: server tools / new block types: their results are never moved out", async () => {
  const presetOptions = { offloadThreshold: 1, scanRatio: 1, minChars: 1, compactTriggerThreshold: 1, retryCount: 1 };
  // What cannot be moved is to be summarised; that fails here, and nothing else is done.
  const session = await openSession({ store: "memory", presetOptions, summarize: summariser("no") });
  await session.append(...frozen(SERVER));
  const { messages, edits } = await session.prepare();
  assert.deepEqual(
    edits.filter(({ kind }) => kind === "offload"),
    [],
  );
  messages.forEach((message, at) => assert.equal(message, SERVER[at]));
});

test("lesson: server tools / new block types: an unknown block never fails a history", async () => {
  for (const format of ["openai-chat", "anthropic"]) {
    const odd = { type: "hologram", data: [1], nested: { type: "tool_use", id: "x" } };
    const history = frozen([user([odd, { type: "text", text: "Hi." }]), assistant([odd]), user("Go on.")]);
    await valid(history, format);
    assert.equal((await splitMessages(history, { format, keep: { messages: 1 } })).boundary, 2);
    assert.ok((await repairHistory(history, { format })).messages.every((message, at) => message === history[at]));
  }
});

// ---- reasoning and its call -----------------------------------------------------------------------------------------

const REASONED = [1, 2, 3].flatMap((turn) => [
  user(`Question ${turn}: ${LONG}`),
  assistant([thinking(turn), use(`t${turn}`)]),
  user([used(`t${turn}`)]),
  assistant([thinking(turn + 10), { type: "text", text: `Answer ${turn}: ${LONG}` }]),
]);

/** Every block of thinking of a history, as text. */
const thoughts = (messages) =>
  messages
    .flatMap(({ content }) => (Array.isArray(content) ? content : []))
    .filter(({ type }) => type === "thinking")
    .map((block) => JSON.stringify(block));

test("lesson: reasoning ↔ call coupling: what was signed before an edit of its past is dropped whole, never sent or changed", async () => {
  await everywhere(frozen(REASONED), "anthropic", async ({ messages, ledger, freedTokens }, what) => {
    await valid(messages, "anthropic", what);
    assert.ok(freedTokens === 0 || thoughts(messages).length === 0, `${what}: thinking behind a summary`);
    for (const { index, fate } of ledger) {
      if (fate === "reduced")
        assert.ok(thoughts([REASONED[index]]).length > 0, `${what}: message ${index} had none`);
    }
  });
});

test("lesson: reasoning ↔ call coupling: thinking before the first edit stays to the letter", async () => {
  const session = await offloading();
  const history = frozen([...REASONED.slice(0, 2), user([used("t1")]), ...REASONED.slice(3)]);
  await session.append(...history);
  const { messages } = await session.prepare();
  assert.equal(messages[1], history[1], "the thinking that led to the call whose result was moved");
  assert.deepEqual(thoughts(messages), thoughts(history.slice(0, 2)));
  await valid(messages, "anthropic");
});

test("lesson: reasoning ↔ call coupling: nothing is touched while nothing before it changes", async () => {
  const session = await openSession({ store: "memory" });
  await session.append(...frozen(REASONED));
  const { messages } = await session.prepare();
  messages.forEach((message, at) => assert.equal(message, REASONED[at]));
});

test("lesson: reasoning ↔ call coupling: reasoning in a field beside the calls stays with them", async () => {
  const reasoned = {
    ...calls("a"),
    reasoning_content: "First the file.",
    reasoning_details: [{ type: "reasoning.encrypted", data: "ZW5j" }],
  };
  const history = frozen([...chat(4), user("Read a."), reasoned, result("a"), assistant("Done.")]);
  const { messages } = await compact(history, { keep: { messages: 2 }, summarize: summariser() });
  assert.ok(messages.includes(reasoned));
});

// ---- role order -----------------------------------------------------------------------------------------------------

for (const [format, history] of Object.entries({
  "openai-chat": [
    { role: "system", content: "Be brief." },
    ...chat(3),
    ...exchange(1),
    ...chat(2),
    user("Go on."),
  ],
  anthropic: [...chat(3), ...anthropicExchange(1), ...chat(2), user("Go on.")],
})) {
  test(`lesson: role order: start, end and alternation of ${format} hold, wherever the cut is`, async () => {
    await valid(history, format);
    assert.deepEqual((await validateHistory(history, { format, strict: true })).problems, [], "of the history itself");
    await everywhere(frozen(history), format, async ({ messages }, what) => {
      assert.deepEqual((await validateHistory(messages, { format, strict: true })).problems, [], what);
      assert.equal(messages[0].role, history[0].role, what);
      assert.equal(messages.at(-1), history.at(-1), what);
    });
  });
}

test("lesson: role order: where the cut cannot move, an answer stands between the summary and the user's message", async () => {
  // No message of the assistant to move the cut to.
  const history = [
    user(LONG),
    assistant(LONG),
    ...Array.from({ length: 8 }, (_, nth) => user(`Part ${nth}: ${LONG}`)),
  ];
  const { messages } = await compact(frozen(history), { keep: { messages: 1 }, summarize: summariser() });
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant", "user"],
  );
  assert.equal(messages[2], history.at(-1));
});

test("lesson: role order: a summary is the user's message, never the system's", async () => {
  const { messages } = await compact(chat(10), { summarize: summariser() });
  assert.deepEqual(messages[0], { role: "user", content: `[Compressed History]\n\n${SUMMARY}${RECORD}` });
});

// ---- in the middle of a turn ----------------------------------------------------------------------------------------

for (const [format, make] of Object.entries({
  "openai-chat": (nth) => [calls(`c${nth}`), result(`c${nth}`)],
  anthropic: (nth) => [assistant([use(`c${nth}`)]), user([used(`c${nth}`)])],
})) {
  test(`lesson: mid-turn: fifty tool calls of ${format} after one question never pass the window`, async () => {
    const options = { contextWindow: 4_000, maxOutputTokens: 500, format };
    const session = await openSession({ store: "memory", ...options, summarize: summariser() });
    const question = user("Find the bug.");
    await session.append(question);
    let edits = 0;
    for (let nth = 0; nth < 50; nth++) {
      await session.append(...make(nth));
      const prepared = await session.prepare();
      edits += prepared.edits.length;
      assert.ok(prepared.usage.usedTokens <= 3_500, `${nth}: ${prepared.usage.usedTokens}`);
      await valid(prepared.messages, format, `${nth}`);
      // What the model has just asked for is there, as it came.
      assert.deepEqual(prepared.messages.slice(-2), make(nth), `${nth}`);
    }
    assert.ok(edits > 3);
  });
}

test("lesson: mid-turn: calls that still wait for results are not compacted away", async () => {
  const session = await openSession({ store: "memory", keep: { messages: 1 }, summarize: summariser() });
  const open = calls("a", "b", "c");
  await session.append(...chat(6), user("Read three."), open, result("a"));
  assert.equal((await session.compact()).success, true);
  await session.append(result("b"), result("c"));
  const { messages } = await session.prepare();
  await valid(messages, "openai-chat");
  assert.deepEqual(messages.slice(-4), [open, result("a"), result("b"), result("c")]);
});

// ---- Unicode --------------------------------------------------------------------------------------------------------

const SCRIPTS = {
  "joined emoji": "👩‍👩‍👧‍👦",
  flags: "🇰🇷🇨🇳",
  "Korean in parts": "\u1112\u1161\u11ab",
  Chinese: "压缩上下文",
  Hebrew: "שָׁלוֹם",
  "marks on letters": "e\u0301\u0323",
};

/** True when a text consists of whole clusters of `unit`, and whatever else is in it is well-formed. */
function whole(text, unit) {
  const segments = new Intl.Segmenter("en", { granularity: "grapheme" });
  const clusters = new Set(Array.from(segments.segment(unit), ({ segment }) => segment));
  const pieces = [...unit].filter((character) => character > "\x7f");
  const cut = ({ segment }) => !clusters.has(segment) && pieces.some((piece) => segment.includes(piece));
  return text.isWellFormed() && !Array.from(segments.segment(text)).some(cut);
}

for (const [name, unit] of Object.entries(SCRIPTS)) {
  test(`lesson: Unicode cuts: ${name} are cut between clusters, in prompts, summaries and ranges`, async () => {
    for (const shift of ["", "x", "xy", "xyz"]) {
      const text = shift + unit.repeat(4_000);
      const history = [user(text), calls("a"), result("a", text), assistant(text), ...chat(3)];
      const { messages, truncated } = await buildSummaryPrompt(history, { maxInputTokens: 4_000 });
      assert.equal(truncated, true);
      assert.ok(whole(messages[0].content, unit), "prompt");
      assert.ok(whole(await extractiveSummary(history, { targetTokens: 100 }), unit), "summary");
    }
    const session = await offloading();
    const text = unit.repeat(100);
    await session.append(user("Read a."), calls("a"), result("a", text), ...chat(3));
    await session.prepare();
    const { ref } = (await session.context.explain())[2];
    let read = "";
    for (let limit = 1; read.length < text.length; limit += 3) {
      const part = await session.recall.read(ref, { offset: [...read].length, limit });
      assert.ok(part !== "" && whole(part, unit), `limit ${limit}`);
      read += part;
    }
    assert.equal(read, text);
  });
}

test("lesson: Unicode cuts: half a pair in the app's own message is reported, mended when asked, and sent to nobody", async () => {
  const broken = user("cut \ud83d");
  assert.deepEqual(
    (await validateHistory([broken])).problems.map(({ rule, index }) => [rule, index]),
    [["OC7", 0]],
  );
  assert.deepEqual((await repairHistory([broken])).messages, [user("cut \ufffd")]);
  const session = await openSession({ store: "memory", summarize: summariser() });
  await session.append(broken, ...chat(1));
  const { messages } = await session.prepare();
  assert.ok(messages.every(({ content }) => content.isWellFormed()));
  const { messages: asked } = await buildSummaryPrompt([broken, ...chat(3)]);
  assert.ok(asked[0].content.isWellFormed());
});
