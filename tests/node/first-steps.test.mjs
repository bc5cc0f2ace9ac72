/** What goes wrong at the first try: each mistake is told where it is made, with what to write instead. */

import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chatCommand } from "context-compactor/commands";
import { compact, importSession, openSession } from "context-compactor";
import { detectFormat, splitMessages, validateHistory } from "context-compactor/history";
import { estimateTokens, loadTokenizer } from "context-compactor/tokens";
import { chat, exchange, fails, SUMMARY } from "../support/api.mjs";

const memory = (options) => openSession({ store: "memory", contextWindow: 8_000, ...options });
const user = (content) => ({ role: "user", content });
const call = { id: "c", type: "function", function: { name: "read", arguments: "{}" } };

// ---- what is no message -------------------------------------------------------------------------------------

const WHOLE = [
  ["a completion", { id: "x", object: "chat.completion", choices: [{ message: { role: "assistant", content: "a" } }] }, /\.choices\[0\]\.message/],
  ["an answer of Gemini", { candidates: [{ content: { role: "model", parts: [{ text: "a" }] } }] }, /\.candidates\[0\]\.content/],
  ["a response", { object: "response", output: [{ type: "message", role: "assistant", content: [] }] }, /response\.output/],
  ["a result of the AI SDK", { text: "a", response: { messages: [] } }, /response\.messages/],
  ["blocks of content", [{ type: "text", text: "a" }], /\{ role: "assistant", content \}/],
  ["a history", chat(1), /append\(\.\.\.messages\).*compact\(messages\)/],
  ["a pair of LangChain", ["human", "hi"], /\{ role: "user", content: text \}/],
];
for (const [what, given, message] of WHOLE) {
  test(`F34: ${what} in the place of a message says what to hand over`, async () => {
    const session = await memory();
    await assert.rejects(session.append(given), fails("invalid_message", { index: 0, message }));
    await assert.rejects(compact([given], { contextWindow: 8_000 }), fails("invalid_message", { index: 0, message }));
  });
}

test("F34: messages handed to prepare are to be appended", async () => {
  const session = await memory();
  await assert.rejects(session.prepare(chat(1)), fails("invalid_option", { message: /append the messages, then prepare\(\)/ }));
});

// ---- fields and blocks that would be lost -------------------------------------------------------------------

const invocations = { role: "assistant", content: "", toolInvocations: [{ state: "result", toolCallId: "c", toolName: "read", args: {}, result: "r" }] };
const camel = { role: "assistant", content: "x", toolCalls: [{ id: "c", name: "read", arguments: {} }] };
for (const format of [undefined, "openai-chat", "ai-sdk", "anthropic"]) {
  for (const [name, message] of [["toolInvocations", invocations], ["toolCalls", camel], ["toolInvocations", { ...invocations, parts: [{ type: "tool-invocation", toolInvocation: {} }] }]]) {
    test(`F9: calls in ${name}${message.parts ? " and parts" : ""} are refused with format ${format}, and said how to read them`, async () => {
      const refused = (index) => fails("unknown_format", { index, message: new RegExp(`\`${name}\`.*looks like .*context-compactor/formats`) });
      const given = format ? { format } : {};
      const session = await memory(given);
      await session.append(user("q"));
      await assert.rejects(session.append(message), refused(0));
      await assert.rejects(compact([user("q"), message], { contextWindow: 8_000, ...given }), refused(1));
      assert.throws(() => estimateTokens([user("q"), message], given), refused(1));
      await assert.rejects(() => validateHistory([user("q"), message], given), refused(1));
    });
  }
}

test("F9: what Ollama and Cohere have beside the content is counted", async () => {
  const words = "the parser reads the file again ".repeat(50);
  const tokens = (message) => estimateTokens([message], { format: "openai-chat" });
  for (const field of ["thinking", "tool_plan"]) {
    const bare = { role: "assistant", content: "a", tool_calls: [call] };
    const session = await memory();
    await session.append(user("q"), { ...bare, [field]: words });
    assert.ok(tokens({ ...bare, [field]: words }) - tokens(bare) > 200, field);
    assert.ok(session.context.usage().usedTokens > 200);
  }
  assert.ok(tokens({ ...user("What is this?"), images: ["iVBORw0KGgo".repeat(500)] }) - tokens(user("What is this?")) > 50);
});

const BLOCKS = {
  anthropic: [{ role: "assistant", content: [{ type: "tool_use", id: "c", name: "read", input: {} }] }, { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "r" }] }],
  "ai-sdk": [{ role: "assistant", content: [{ type: "tool-call", toolCallId: "c", toolName: "read", input: {} }] }],
  "openai-responses": [{ role: "user", content: [{ type: "input_text", text: "q" }] }],
};
for (const [theirs, messages] of Object.entries(BLOCKS)) {
  for (const settled of [true, false]) {
    test(`F9: a message of ${theirs} in a session of openai-chat is refused, and both are named (${settled ? "settled" : "said"})`, async () => {
      const session = await memory(settled ? {} : { format: "openai-chat" });
      if (settled) await session.append(...exchange(1));
      for (const message of messages) {
        const told = { index: 0, field: "content[0]", message: new RegExp(`is of .*${theirs}.*openai-chat`) };
        await assert.rejects(session.append(message), fails("invalid_message", told));
      }
      assert.equal((await session.context.explain()).length, settled ? 4 : 0);
      await session.append(user("on"));
    });
  }
}

for (const [what, message, near] of [
  ["a text beside it", { role: "user", text: "IMPORTANT" }, /it has `text`: write that as `content`/],
  ["a message in it", { role: "user", message: "IMPORTANT" }, /it has `message`/],
  ["parts", { role: "user", parts: "IMPORTANT" }, /content|no known format/],
  ["nothing", { role: "user" }, /is missing/],
  ["undefined", { role: "system", content: undefined }, /is missing/],
  ["nothing of a model", { role: "assistant" }, /is missing/],
  ["an output", { role: "tool", tool_call_id: "c", output: "r" }, /it has `output`/],
]) {
  for (const format of [undefined, "openai-chat", "anthropic"]) {
    if (format === "anthropic" && message.role === "tool") continue;
    test(`F12: a message without content (${what}, format ${format}) is refused when it is appended`, async () => {
      const session = await memory(format ? { format } : {});
      if (message.role === "tool") await session.append(user("q"), { role: "assistant", content: null, tool_calls: [call] });
      await assert.rejects(session.append(message), (error) => ["invalid_message", "unknown_format"].includes(error.code) && near.test(error.message));
      await session.append(user("on"));
    });
  }
}

test("F34: pinned that returns undefined, as for a field that is not there, pins nothing", async () => {
  const session = await memory({ pins: { match: ({ flag }) => flag } });
  await session.append({ ...user("q"), flag: true }, { role: "assistant", content: "a" });
  assert.deepEqual(await session.pins.proposals(), []);
  assert.equal((await compact(chat(3), { contextWindow: 8_000, pins: { match: ({ flag }) => flag } })).success, true);
});

test("F12: what models answer without content is taken", async () => {
  const session = await memory();
  await session.append(user("q"), { role: "assistant", content: null, tool_calls: [call] }, { role: "tool", tool_call_id: "c", content: "" });
  await session.append({ role: "assistant", tool_calls: [{ ...call, id: "d" }] }, { role: "tool", tool_call_id: "d", content: "r" });
  await session.append({ role: "assistant", content: null }, user("more"), { role: "assistant", refusal: "No." }, user(""));
  assert.equal((await session.context.explain()).length, 9);
});

// ---- the app's own functions --------------------------------------------------------------------------------

const ANSWERS = [
  ["a Promise", async () => true, /it returned a Promise.*cannot be asynchronous/],
  ["a text", () => "yes", /it returned a text/],
  ["null", () => null, /it returned null/],
  ["a number", () => 1, /it returned 1/],
];
for (const [what, match, message] of ANSWERS) {
  test(`F34: pins.match that returns ${what} is refused`, async () => {
    const wrong = fails("invalid_option", { field: "pins.match", message });
    const session = await memory({ pins: { match } });
    await assert.rejects(session.append(user("q")), wrong);
    await assert.rejects(compact(chat(3), { contextWindow: 8_000, pins: { match } }), wrong);
    await assert.rejects(() => splitMessages(chat(9), { pins: { match } }), wrong);
  });
}

for (const [what, tokenCounter, message] of [
  ["a Promise", async () => 5, /it returned a Promise/],
  ["a text", () => "5", /it returned a text/],
  ["NaN", () => Number.NaN, /it returned NaN/],
  ["a negative number", () => -1, /it returned -1/],
]) {
  test(`F34: tokenCounter that returns ${what} is refused`, async () => {
    const session = await memory({ tokenCounter });
    await assert.rejects(session.append(user("q")), fails("invalid_option", { field: "tokenCounter", message }));
  });
}

test("F34: what redact, readFile, systemPrompt and summarize return is named", async () => {
  const redacted = await compact(chat(20), { contextWindow: 8_000, redact: { text: async (text) => text }, summarize: { call: () => SUMMARY, attempts: 1 } }).catch((error) => ({ error }));
  assert.match(redacted.error.message, /it returned a Promise/);
  const session = await memory({ systemPrompt: async () => "x" });
  await session.append(user("q"));
  await assert.rejects(session.prepare(), fails("invalid_option", { field: "systemPrompt", message: /a Promise/ }));
  for (const [answer, message] of [
    [{ choices: [{ message: { content: "x" } }] }, /return response\.choices\[0\]\.message\.content/],
    [{ content: [{ type: "text", text: "x" }] }, /return response\.content\[0\]\.text/],
    [undefined, /undefined came/],
    [{ text: Promise.resolve("x") }, /await its text/],
  ]) {
    const { error } = await compact(chat(20), { contextWindow: 8_000, summarize: { call: () => answer, attempts: 1 } });
    assert.match(error.message, message);
  }
});

test("F34: a summariser may answer at once", async () => {
  assert.equal((await compact(chat(20), { contextWindow: 8_000, summarize: () => SUMMARY })).summary, SUMMARY);
});

for (const usage of [
  { inputTokens: 100, outputTokens: 7, cacheReadTokens: 40 },
  { prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 40 } },
  { input_tokens: 60, output_tokens: 7, cache_read_input_tokens: 40 },
]) {
  test(`F34: usage in the words of ${Object.keys(usage)[0]} counts`, async () => {
    const { usage: counted } = await compact(chat(20), { contextWindow: 8_000, summarize: async () => ({ text: SUMMARY, usage }) });
    assert.deepEqual([counted.inputTokens, counted.outputTokens, counted.cacheReadTokens], [100, 7, 40]);
  });
}

const OWN_CALLS = {
  prepare: (session) => session.prepare(),
  compact: (session) => session.compact(),
  "pins.add": (session) => session.pins.add(0),
  "snapshots.rewind": (session) => session.snapshots.rewind(0),
  close: (session) => session.close(),
};
for (const [name, call] of Object.entries(OWN_CALLS)) {
  test(`F34: summarize that calls ${name} of its own session is told so, and waits for nothing`, async () => {
    const calls = [];
    const session = await memory({ summarize: { call: async () => {
      calls.push(call(session));
      await calls[0];
      return SUMMARY;
    }, attempts: 1, timeoutMs: 20_000 } });
    await session.append(...chat(20));
    const started = Date.now();
    const { success, error } = await session.compact();
    assert.equal(success, false);
    fails("summary_failed", { message: /summarize: it called the session that waits for its answer/ })(error);
    assert.ok(Date.now() - started < 5_000);
    await assert.rejects(calls[0], fails("invalid_option", { field: "summarize" }));
    await session.append(user("on"));
    assert.equal((await session.prepare()).messages.length, 41);
  });
}

test("F34: a summariser that waits for its own session, and gets no answer in time, is told so", async () => {
  const session = await memory({ summarize: { call: async () => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    await session.prepare();
    return SUMMARY;
  }, attempts: 1, timeoutMs: 200 } });
  await session.append(...chat(20));
  const { error } = await session.compact();
  fails("timeout", { message: /no answer within 200 ms.*does summarize call its own session\?/ })(error);
  const alone = await memory({ summarize: { call: () => new Promise(() => {}), attempts: 1, timeoutMs: 200 } });
  await alone.append(...chat(20));
  assert.doesNotMatch((await alone.compact()).error.message, /own session/);
});

// ---- a summary that could not be had ------------------------------------------------------------------------

/** What `admit` would cut before a summary is tried. */
const withLarge = () => [...exchange(1, 40_000), ...chat(8)];
const refusing = async () => { throw Object.assign(new Error("invalid key"), { status: 401 }) };

for (const preset of ["balanced", "layered", "offload", "factor3", "checkpoint"]) {
  test(`S1.10: ${preset}: compact whose summary failed gives back the very messages that it was given`, async () => {
    for (const history of [withLarge(), chat(60), [...chat(30), ...exchange(9, 60_000)]]) {
      const { success, messages, error, appliedEdits, freedTokens, previousTokens, currentTokens } = await compact(history, { preset, contextWindow: 8_000, summarize: { call: refusing, attempts: 1 } });
      assert.equal(success, false);
      assert.equal(messages.length, history.length);
      messages.forEach((message, at) => assert.equal(message, history[at]));
      assert.deepEqual([appliedEdits, freedTokens], [[], 0]);
      assert.equal(previousTokens, currentTokens);
      assert.match(error.message, /invalid key/);
    }
  });

  test(`F1: ${preset}: a summary that failed and was needed is said first, is the cause, and gives no other advice`, async () => {
    const { fits, error } = await compact(chat(60), { preset, contextWindow: 8_000, summarize: { call: refusing, attempts: 1 } });
    assert.equal(fits, false);
    fails("context_overflow", { message: /^the summary failed \(invalid key\); .*without one \d+ tokens do not fit/ })(error);
    assert.doesNotMatch(error.message, /larger window|fewer messages/);
    fails("summary_failed", { message: "invalid key" })(error.cause);
    assert.equal(error.cause.cause.status, 401);
  });
}

test("F1: where no summary would help either, the overflow says what would", async () => {
  const { error } = await compact([...chat(20), user("word ".repeat(20_000))], { contextWindow: 8_000, summarize: { call: refusing, attempts: 1 }, pins: { match: ({ content }) => content.startsWith("word") } });
  fails("context_overflow", { message: /^the summary failed \(invalid key\); .*pin less/ })(error);
  assert.equal(error.cause.code, "summary_failed");
});

test("F1: a session that cannot send for want of a summary says so", async () => {
  const session = await memory({ preset: "layered", summarize: { call: refusing, attempts: 1 } });
  await session.append(...chat(60));
  await assert.rejects(session.prepare(), (error) => {
    fails("context_overflow", { message: /^the summary failed \(invalid key\)/ })(error);
    return fails("summary_failed")(error.cause);
  });
});

test("F1: too little for a built-in summary is no failure, and says why nothing was done", async () => {
  for (const preset of ["balanced", "layered", "offload", "factor3"]) {
    const short = [user("hi"), { role: "assistant", content: "hello" }, user("ok")];
    const given = { preset, contextWindow: 8_000, keep: { messages: 1 } };
    const { success, fits, error, reason, messages, appliedEdits } = await compact(short, given);
    assert.deepEqual([success, fits, error, messages.length, appliedEdits], [true, true, undefined, 3, []]);
    assert.match(reason, /^Nothing to compress: too little to summarize, \d+ tokens$/);
    // A model that was asked for what is no smaller did fail.
    const asked = await compact(short, { ...given, summarize: { call: () => SUMMARY, attempts: 1 } });
    assert.deepEqual([asked.success, asked.error.code], [false, "summary_rejected"]);
    const fallen = await compact(short, { ...given, summarize: { call: refusing, attempts: 1, fallback: "extractive" } });
    assert.deepEqual([fallen.success, fallen.error.message], [false, "invalid key"]);
  }
});

test("S1.10: the reason counts pinned messages among those that stay", async () => {
  const { reason } = await compact(chat(5), { contextWindow: 8_000, pins: { match: () => true }, keep: { messages: 4 } });
  assert.match(reason, /Nothing to compress: 10 messages stay/);
});

// ---- options ------------------------------------------------------------------------------------------------

test("F34: only names that are near are named", async () => {
  const told = async (options) => (await compact(chat(1), options).catch((error) => error)).message;
  assert.match(await told({ contextwindow: 5 }), /did you mean contextWindow, /);
  assert.match(await told({ sumarize: 5 }), /did you mean summarize/);
  assert.match(await told({ window: 5 }), /did you mean contextWindow/);
  assert.match(await told({ maxTokens: 5 }), /did you mean maxOutputTokens/);
  assert.match(await told({ summaryModel: "m" }), /did you mean model, .*summarize\.model/);
  assert.match(await told({ pinProposals: "off" }), /did you mean pins\.proposals/);
  assert.match(await told({ flavour: 5 }), /is not an option of this release$/);
  for (const text of [await told({ sumarize: 5 }), await told({ contextwindow: 5 })]) assert.doesNotMatch(text, /runtime|signal|level/);
});

test("F34: a misspelt choice names the one that was meant", async () => {
  const named = (name) => fails("invalid_option", { message: new RegExp(`did you mean "${name}"\\?$`) });
  await assert.rejects(compact(chat(1), { preset: "balancd" }), named("balanced"));
  await assert.rejects(compact(chat(1), { preset: "Offload" }), named("offload"));
  await assert.rejects(compact(chat(1), { format: "openai_chat" }), named("openai-chat"));
  await assert.rejects(compact(chat(1), { preset: "none" }), (error) => !/did you mean/.test(error.message));
});

test("F34: an option that is null is refused by name", async () => {
  for (const name of ["contextWindow", "preset", "model", "provider", "keep"]) {
    await assert.rejects(compact(chat(1), { [name]: null }), fails("invalid_option", { field: name, message: /null: leave it out/ }));
  }
});

test("F34: a goal names its field and what that may be", async () => {
  const session = await memory();
  const goal = { id: "g", description: "Ship it" };
  for (const [given, field, message] of [
    [{ ...goal, priority: "urgent" }, "goal.priority", /"low", "medium", "high"/],
    [{ ...goal, status: "done" }, "goal.status", /"active", "paused", "completed"/],
    [{ description: "x" }, "goal.id", /missing/],
    [{ id: "g", description: " " }, "goal.description", /not empty/],
    [{ ...goal, checkpoints: ["write it"] }, "goal.checkpoints[0]", /object/],
    [{ ...goal, checkpoints: [{ description: "x", status: "in_progress" }] }, "goal.checkpoints[0].status", /"in-progress"/],
    [{ ...goal, decisions: [{ id: "d" }] }, "goal.decisions[0].description", /missing/],
    [{ ...goal, artifacts: [{ type: "file", path: "a" }] }, "goal.artifacts[0].action", /"created"/],
  ]) {
    await assert.rejects(session.goal.set(given), fails("invalid_option", { field, message }));
    await assert.rejects(compact(chat(1), { goal: given }), fails("invalid_option", { field, message }));
  }
  await session.goal.set(goal);
});

test("F34: a model in the place of a vocabulary names its vocabulary", async () => {
  for (const [model, name] of [["gpt-4o", "o200k_base"], ["gpt-5", "o200k_base"], ["o3-mini", "o200k_base"], ["gpt-4", "cl100k_base"], ["gpt-3.5-turbo", "cl100k_base"]]) {
    await assert.rejects(loadTokenizer(model), fails("invalid_option", { field: "vocabulary", message: new RegExp(`npm install context-compactor-vocabularies.*/${name}"`) }));
  }
  await assert.rejects(loadTokenizer("claude-sonnet-4-5"), fails("invalid_option", { message: /estimateTokens/ }));
});

test("F25: a command may begin with a capital, as phones write it", async () => {
  const session = await memory();
  await session.append(...chat(1));
  for (const text of ["/Compact", "/Context", "/Help"]) assert.ok(await chatCommand(session, text), text);
});

// ---- importing ----------------------------------------------------------------------------------------------

test("F33: a session is imported from bytes, and from streams of Node", async () => {
  const lines = chat(3).map((message) => JSON.stringify(message)).join("\n");
  const sources = [Buffer.from(lines), new TextEncoder().encode(lines), Readable.from([Buffer.from(lines.slice(0, 99)), Buffer.from(lines.slice(99))]), Readable.from([lines.slice(0, 50), lines.slice(50)])];
  for (const source of sources) {
    const session = await importSession(source, { store: "memory", contextWindow: 8_000 });
    assert.equal((await session.context.explain()).length, 6);
  }
});

test("F34: a path is no transcript", async () => {
  for (const path of ["./session.jsonl", "/chats/session.jsonl", "C:\\chats\\a.jsonl", "session.jsonl"]) {
    await assert.rejects(importSession(path, { store: "memory" }), fails("invalid_option", { field: "jsonl", message: /is a path: pass what the file holds/ }));
  }
  for (const wrong of ["garbage", 5, null, {}, Readable.from([5])]) {
    await assert.rejects(importSession(wrong, { store: "memory" }), fails("invalid_option", { field: "jsonl", message: /text, bytes \(Uint8Array\) or a stream/ }));
  }
});

test("F34: initialize with the address of a file asks for its bytes in Node", async () => {
  const script = `const { initialize } = await import("context-compactor/slim");
    for (const address of ["file:///core.wasm", new URL("file:///core.wasm")])
      await initialize(address).catch(({ code, message }) => console.log(code, message));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], { cwd: fileURLToPath(new URL("./", import.meta.url)) });
  assert.equal(stdout.match(/invalid_option source: .*pass its bytes/g)?.length, 2);
});

test("a history that is detected is not refused for fields that nothing is lost with", async () => {
  assert.equal(await detectFormat([{ ...camel, tool_calls: [call] }]), "openai-chat");
  assert.equal(await detectFormat([{ role: "user", content: "x", toolInvocations: [] }]), "openai-chat");
});
