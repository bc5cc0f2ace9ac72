/** `compact(messages, { state })`: a conversation that no session is opened for (E4). */

import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { test } from "node:test";
import { compact, openSession, recallTools } from "context-compactor";
import { chat, fails, runtime, summariser } from "../support/api.mjs";
import { transcripts } from "../support/transcripts.mjs";

const OPTIONS = { contextWindow: 16_000, maxOutputTokens: 1_000 };

/** One agent that reads 60 files, about 650 tokens each. */
function agent() {
  let seed = 7;
  const word = () => ((seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff) % 1_000_000).toString(36);
  const file = (nth) => Array.from({ length: 52 }, (_, line) => `${nth}.${line}: let ${word()} = read_${word()}(${word()});`).join("\n");
  return Array.from({ length: 61 }, (_, nth) => {
    if (nth === 0) return [{ role: "user", content: "Read all files of src/ and say what they do. Never touch src/secret.rs." }];
    const call = { id: `call_${nth}`, type: "function", function: { name: "read_file", arguments: `{"path":"src/${nth}.rs"}` } };
    return [{ role: "assistant", content: null, tool_calls: [call] }, { role: "tool", tool_call_id: call.id, content: file(nth) }];
  });
}

/** A jsonb column: shorter keys first. */
function jsonb(value) {
  if (Array.isArray(value)) return value.map(jsonb);
  if (typeof value !== "object" || value === null) return value;
  const order = ([a], [b]) => a.length - b.length || (a < b ? -1 : 1);
  return Object.fromEntries(Object.entries(value).sort(order).map(([key, field]) => [key, jsonb(field)]));
}
const column = (value) => jsonb(JSON.parse(JSON.stringify(value)));

/** A provider that counts characters and refuses calls without results, and the other way round. */
function send(messages) {
  const tokens = Math.ceil(JSON.stringify(messages).length / 4);
  assert.ok(tokens <= 16_000, `context_length_exceeded: ${tokens}`);
  const open = new Set();
  for (const { role, tool_calls, tool_call_id } of messages) {
    if (role === "tool") assert.ok(open.delete(tool_call_id), "a result without its call");
    else assert.equal(open.size, 0, "a call without its result");
    for (const { id } of tool_calls ?? []) open.add(id);
  }
  assert.equal(open.size, 0);
  return tokens;
}

for (const [name, summarize] of Object.entries({ "the built-in summarizer": undefined, "a model": summariser() })) {
  test(`E4: 61 calls with ${name} through a jsonb column`, async () => {
    let [row, history, summaries, changes, largest, bytes] = [null, [], 0, 0, 0, 0];
    for (const more of agent()) {
      history = column([...history, ...more]);
      const options = summarize ? { ...OPTIONS, summarize } : OPTIONS;
      const { messages, state, changed, summary, success } = await compact(history, { ...options, state: row });
      assert.ok(success);
      largest = Math.max(largest, send(messages));
      if (summary !== undefined) summaries++;
      if (!changed) assert.deepEqual(state, row);
      if (!changed) continue;
      changes++;
      bytes = Math.max(bytes, JSON.stringify(state).length);
      row = column(state);
    }
    console.log(`${name}: ${changes} changes, ${summaries} summaries, largest prompt ${largest}, ${bytes} bytes`);
    assert.ok(changes >= 1 && changes <= 10 && summaries <= 6, `${changes} changes, ${summaries} summaries`);
    assert.ok(bytes <= 8_192, `${bytes} bytes`);
  });
}

async function compacted(options = {}) {
  const history = agent().slice(0, 31).flat();
  return { history, ...(await compact(history, { ...OPTIONS, state: { when: "now", ...options } })) };
}

test("E4: kept messages are the app's own objects, and nothing is done before it is due", async () => {
  const short = chat(3);
  const idle = await compact(short, { ...OPTIONS, state: null });
  assert.deepEqual([idle.changed, idle.state], [false, null]);
  idle.messages.forEach((message, at) => assert.equal(message, short[at]));
  const { history, state } = await compacted();
  const again = await compact(history, { ...OPTIONS, state });
  assert.equal(again.state, state, "what did not change is the object that was passed");
  assert.ok(again.messages.length < history.length);
  assert.equal(again.messages.at(-1), history.at(-1));
});

test("E4: an edited history says what it still uses", async () => {
  const { history, state } = await compacted();
  const other = await compact(chat(4), { ...OPTIONS, state });
  assert.match(other.reason, /the state was dropped/);
  assert.deepEqual([other.changed, other.state], [true, null]);
  const edited = [...history.slice(0, -2), { role: "user", content: "Stop." }];
  const { reason, messages } = await compact(edited, { ...OPTIONS, state });
  assert.match(reason, /the history was edited: the state is used for its first \d+ messages/);
  send(messages);
});

test("E4: a signature binds a state to its key and its conversation", async () => {
  const key = webcrypto.getRandomValues(new Uint8Array(32));
  const { history, state } = await compacted({ key, id: "chat-1" });
  assert.match(state.signature, /^[0-9a-f]{64}$/);
  const ask = (value, more) => compact(history, { ...OPTIONS, state: { value, key, id: "chat-1", ...more } });
  assert.equal((await ask(column(state))).changed, false);
  const imported = await webcrypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  assert.equal((await ask(column(state), { key: imported })).changed, false);
  const corrupt = fails("store_corrupt", { field: "state" });
  const { signature: _, ...unsigned } = state;
  await assert.rejects(ask(unsigned), corrupt);
  await assert.rejects(ask({ ...state, steps: 9 }), corrupt);
  await assert.rejects(ask(state, { id: "chat-2" }), corrupt);
  await assert.rejects(ask(state, { key: new Uint8Array(32) }), corrupt);
  await assert.rejects(ask(state, { key: new Uint8Array(8) }), fails("invalid_option", { field: "state.key" }));
  await assert.rejects(ask(state, { key: "secret" }), fails("invalid_option", { field: "state.key" }));
  await assert.rejects(ask(state, { id: "" }), fails("invalid_option", { field: "state.id" }));
});

test("E4: what is no state is refused with its field, and a newer one by its version", async () => {
  const { history, state } = await compacted();
  const ask = (value) => compact(history, { ...OPTIONS, state: value });
  await assert.rejects(ask(JSON.stringify(state)), fails("invalid_option", { field: "state" }));
  await assert.rejects(ask([]), fails("invalid_option", { field: "state" }));
  await assert.rejects(ask({ value: "{}" }), fails("invalid_option", { field: "state.value" }));
  await assert.rejects(ask({ v: 200 }), fails("schema_too_new", { field: "state" }));
  for (const wrong of [{ v: 1 }, { v: 100 }, { ...state, view: [{ messages: [0, 1e9] }] }, { ...state, secret: "" }]) {
    await assert.rejects(ask(wrong), fails("store_corrupt", { field: "state" }));
  }
});

test("E4: recallTools reads the app's messages, and not those that it deleted", async () => {
  const { history, state } = await compacted();
  const read = async (messages) => {
    const { definitions, handle } = await recallTools(messages, state);
    assert.deepEqual(definitions.map(({ function: { name } }) => name), ["recall_read", "recall_search"]);
    const ask = async (name, args) => (await handle({ id: "c", type: "function", function: { name, arguments: JSON.stringify(args) } })).content;
    return ask("recall_search", { query: "src/4.rs read_file" });
  };
  assert.match(await read(history), /\[m|\[off_/);
  assert.doesNotMatch(await read(history.filter((_, at) => at !== 7 && at !== 8)), /src\/4\.rs\b.*·/);
  const { definitions } = await recallTools(chat(2), null);
  assert.equal(definitions.length, 2);
});

test("E4: recallTools have the format that is asked for, before a history says it", async () => {
  const greeting = [{ role: "user", content: "Read all files." }];
  for (const format of ["openai-chat", "anthropic", "ai-sdk"]) {
    const session = await openSession({ ...OPTIONS, format });
    const { definitions, handle } = await recallTools(greeting, null, { format });
    assert.deepEqual(definitions, session.recall.tools().definitions);
    if (format === "ai-sdk") assert.equal((await handle({ type: "tool-call", toolCallId: "c", toolName: "recall_search", input: { query: "files" } })).role, "tool");
  }
  await assert.rejects(recallTools(greeting, null, { format: "claude" }), fails("invalid_option", { field: "format" }));
});

/** File, format, which record, how many of its messages, and a window too small for them. */
const RECORDED = [
  ["openai/tau", "openai-chat", 30, 65, 12_000],
  ["openai/tau_composite", "openai-chat", 1, 250, 12_000],
  ["openai/claude_code", "openai-chat", 8, 75, 16_000],
  ["openai/claude_code", "openai-chat", 12, 150, 24_000],
  ["anthropic/claude_code", "anthropic", 0, 52, 24_000],
  ["anthropic/claude_code", "anthropic", 13, 150, 16_000],
  ["responses/codex", "openai-responses", 1, 120, 64_000],
  ["responses/codex", "openai-responses", 2, 120, 48_000],
];

const isOfModel = ({ role, type = "message" } = {}) => role === "assistant" || !(type === "message" || type.endsWith("_output"));

/** References are secrets of a session, and of a state: they count by their places. */
function numbered(messages) {
  const refs = new Map();
  return JSON.stringify(messages).replace(/\boff_\w+/g, (ref) => {
    if (!refs.has(ref)) refs.set(ref, `off_${refs.size}`);
    return refs.get(ref);
  });
}

for (const [file, format, which, count, contextWindow] of RECORDED) {
  const records = transcripts(`core/${file}`);
  test(`E4: ${file} ${which}: the prompts of a session and those by the state are equal`, { skip: !records && "no transcripts (CC_DATA)" }, async (context) => {
    const messages = records[which].messages.slice(0, count);
    for (const summarize of ["extractive", { call: summariser(), attempts: 1 }]) {
      // What is worth keeping may depend on ids.
      const options = () => ({ format, contextWindow, summarize, logger: () => {}, advanced: { runtime: runtime() } });
      // Only a session can tell what is read again as what changed.
      const session = await openSession({ ...options(), background: false, admit: { rereads: false } });
      let [row, from, calls, changes] = [null, 0, 0, 0];
      for (let to = 1; to <= messages.length; to++) {
        if (isOfModel(messages[to - 1]) || (to < messages.length && !isOfModel(messages[to]))) continue;
        await session.append(...messages.slice(from, to));
        from = to;
        const prepared = await session.prepare().catch(({ code }) => code);
        const { success, error, changed, state, messages: fitting } = await compact(messages.slice(0, to), { ...options(), state: row });
        const equal = numbered(success ? fitting : error.code) === numbered(prepared.messages ?? prepared);
        assert.ok(equal, `the prompts of call ${calls} differ`);
        calls++;
        if (!changed) continue;
        changes++;
        row = column(state);
      }
      await session.close();
      context.diagnostic(`${calls} calls, ${changes} changes`);
      assert.ok(changes >= 1, "nothing was compacted");
    }
  });
}
