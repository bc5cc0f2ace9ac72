/** What is known to be wrong, each with the name that it goes by: marked as expected to fail until it is mended. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, openSession } from "context-compactor";
import { estimateTokens } from "context-compactor/tokens";

const texts = (messages) => messages.map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content)));
const said = (messages) => texts(messages).join("\n");

/** Questions and answers that say nothing of note, of about `words` words each. */
const talk = (turns, words = 60) =>
  Array.from({ length: turns }, (_, nth) => [
    { role: "user", content: `Question ${nth}: ${"word ".repeat(words)}` },
    { role: "assistant", content: `Answer ${nth}: ${"thing ".repeat(words)}` },
  ]).flat();

/** A call of a tool and its result. */
const called = (id, name, input, output) => [
  { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: { name, arguments: JSON.stringify(input) } }] },
  { role: "tool", tool_call_id: id, content: output },
];

test("F5: every constraint is in the context, is referenced, or is listed as omitted", async () => {
  const rule = (nth) => `Never touch module ${nth} of the service before its owner has agreed to the change in writing.`;
  const rules = Array.from({ length: 120 }, (_, nth) => rule(nth));
  for (const contextWindow of [16_000, 32_000, 200_000]) {
    for (const first of [[{ role: "user", content: rules.join("\n") }], rules.flatMap((content) => [{ role: "user", content }, { role: "assistant", content: "Fine." }])]) {
      const summarize = async () => "## State\nThe user asked for the service to be tidied up, and that was begun.";
      const result = await compact([...first, ...talk(50)], { contextWindow, summarize, preset: "balanced" });
      const context = said(result.messages);
      const omitted = JSON.stringify(result.omittedConstraints ?? []);
      const lost = rules.filter((text) => !context.includes(text) && !omitted.includes(text));
      assert.deepEqual(lost.length, 0, `${contextWindow}: ${lost.length} of 120 are lost without a word`);
    }
  }
});

test("F13: a window that is a little larger leaves a little more", async () => {
  const history = talk(160, 110);
  let before;
  for (const contextWindow of [43_000, 45_000, 47_000, 48_000, 50_000]) {
    const { currentTokens } = await compact(history, { contextWindow, preset: "balanced" });
    assert.ok(before === undefined || currentTokens <= before * 1.2, `${before} tokens, and ${currentTokens} at ${contextWindow}`);
    before = currentTokens;
  }
});

test("F16: what the kept messages finish, change or repair is told as they leave it", async () => {
  const todo = (status) => ({ todos: [{ content: "Run the nightly tests", status }] });
  const history = [
    { role: "user", content: "Mend the parser." },
    ...called("1", "TodoWrite", todo("pending"), "ok"),
    ...called("2", "Read", { file_path: "/src/parser.ts" }, "export const parse = 1;"),
    ...called("3", "bash", { command: "cargo test -p exporter" }, "error[E0463]: can't find crate for `exporter_core`\nExit code 101"),
    ...talk(20),
    ...called("4", "TodoWrite", todo("completed"), "ok"),
    ...called("5", "Edit", { file_path: "/src/parser.ts", old_string: "1", new_string: "2" }, "ok"),
    ...called("6", "bash", { command: "cargo test -p exporter" }, "test result: ok. 3 passed"),
    { role: "assistant", content: "All of it is done." },
  ];
  const { messages } = await compact(history, { contextWindow: 16_000, preset: "balanced", keep: { messages: 7 } });
  const summary = texts(messages).find((text) => text.includes("[Compressed History]"));
  assert.ok(!/## Open tasks\n- Run the nightly tests/.test(summary), summary);
  assert.ok(!summary.includes("/src/parser.ts (read"), summary);
  assert.ok(!/## Open errors\n- .*E0463/.test(summary), summary);
});

test("F17: names of the system prompt are known", async () => {
  const names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"].map((name) => `/srv/app/docs/${name}.md`);
  const system = { role: "system", content: `You work in /srv/app. Its rules are in ${names.join(", ")}.` };
  let calls = 0;
  const summarize = async () => (calls++, `## State\nThe rules of the project are in ${names.join(", ")}; the user asked twenty questions.`);
  const result = await compact([system, ...talk(20)], { contextWindow: 16_000, preset: "balanced", summarize });
  assert.deepEqual([result.reason, calls], [undefined, 1]);
});

test("F18: a refusal of the user and a failure that was repaired cost no second request", async () => {
  const failures = ["The user doesn't want to proceed with this tool use. The tool use was rejected.", "File does not exist. Did you mean src/b.ts?"];
  for (const text of failures) {
    const use = { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "Read", input: { file_path: "src/a.ts" } }] };
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", is_error: true, content: text }] };
    const history = [{ role: "user", content: "Look at it." }, use, result, { role: "assistant", content: "I go on without it." }, ...talk(20)];
    let calls = 0;
    const summarize = async () => (calls++, "## State\nThe user asked questions about words and things, and each was answered.");
    await compact(history, { format: "anthropic", contextWindow: 16_000, preset: "balanced", summarize });
    assert.equal(calls, 1, text);
  }
});

test("F19: without a price nothing is compacted before the window asks for it", async () => {
  const session = await openSession({ store: "memory", contextWindow: 32_000, prices: { input: 0, output: 0 } });
  const acted = [];
  for (const [nth, message] of talk(120, 20).entries()) {
    await session.append(message);
    if (nth % 2 === 1) continue;
    const before = session.context.usage().usedTokens;
    const { edits } = await session.prepare();
    if (edits.length > 0) acted.push(before);
  }
  assert.deepEqual(acted, [], "tokens at each compaction");
  await session.close();
});

test("F28: a run of one character is counted as one", () => {
  // As the o200k vocabulary has it.
  const exact = 18;
  const estimate = estimateTokens([{ role: "user", content: ` a.rs | 372 ${"+".repeat(300)}` }], { model: "gpt-4o" });
  assert.ok(Math.abs(estimate - exact) <= 8, `${estimate} for ${exact}, and what a message costs`);
});

test("F29: the mark of a result names the tool that reads it", async () => {
  const session = await openSession({ store: "memory", preset: "offload", contextWindow: 16_000, compactAt: { tokens: 1_000 } });
  await session.append({ role: "user", content: "Read it." }, ...called("1", "Read", { file_path: "/src/a.ts" }, "line of code; ".repeat(600)), ...talk(4));
  const tools = [{ type: "function", function: { name: "recall_read", parameters: { type: "object", properties: {} } } }];
  const { messages } = await session.prepare({ tools });
  const mark = messages.find(({ role }) => role === "tool").content;
  assert.ok(mark.includes("off_"), mark);
  assert.ok(mark.includes("recall_read") && mark.includes("/src/a.ts"), mark);
  await session.close();
});
