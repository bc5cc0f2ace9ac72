/** Recall: the tools with which a model reads back and searches what is no longer in its context. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore, openSession, validateHistory } from "../support/offload.mjs";
import { anthropicExchange, chat, exchange, fails, openStore, runtime, summariser } from "../support/api.mjs";
import { formats } from "../support/names.mjs";

/** Options under which 20 exchanges of 2,000 characters are offloaded. */
const SMALL = { contextWindow: 24_000, maxOutputTokens: 1_000 };
/** Options under which results are offloaded, and nothing is summarised. */
const ONLY_OFFLOAD = { compactAt: { tokens: 5_000 }, keep: { messages: 1_000 } };
const NAMES = ["recall_read", "recall_search"];

/** How a scripted model and its app speak in a format. */
const DIALECTS = {
  "openai-chat": {
    exchange,
    assistant: (content) => ({ role: "assistant", content }),
    asks: (call) => ({ role: "assistant", content: null, tool_calls: [call] }),
    call: (name, args) => ({ id: "call_0", type: "function", function: { name, arguments: JSON.stringify(args) } }),
    names: (definitions) => definitions.map((definition) => definition.function.name),
    result: (message) => (message.role === "tool" ? message.content : undefined),
  },
  anthropic: {
    exchange: anthropicExchange,
    assistant: (text) => ({ role: "assistant", content: [{ type: "text", text }] }),
    asks: (call) => ({ role: "assistant", content: [call] }),
    call: (name, input) => ({ type: "tool_use", id: "toolu_0", name, input }),
    names: (definitions) => definitions.map((definition) => definition.name),
    result: (message) => (message.content[0].type === "tool_result" ? message.content[0].content : undefined),
  },
};

for (const [format, dialect] of Object.entries(DIALECTS)) {
  test(`lesson_offload_traps_a_model_reads_back_what_was_offloaded_and_keeps_it: ${format}`, async () => {
    const session = await openSession({ store: memoryStore(), ...ONLY_OFFLOAD });
    const history = Array.from({ length: 20 }, (_, nth) => dialect.exchange(nth, 2_000)).flat();
    await session.append(...history);
    const { definitions, handle } = session.recall.tools();
    assert.deepEqual(dialect.names(definitions), NAMES);

    // A model that needs the third result, sees only where it is, and calls the tool that it was given.
    const model = (messages, tools) => {
      const at = 10;
      const text = dialect.result(messages[at]);
      const reference = /^Tool result is at: (off_\w+)/.exec(text)?.[1];
      const last = dialect.result(messages.at(-1));
      if (last?.includes(`\n[${reference}: all `)) return { says: last.slice(0, last.lastIndexOf("\n")) };
      return { calls: dialect.call(dialect.names(tools)[0], { ref: reference }) };
    };
    await session.append({ role: "user", content: "What did the third file say?" });
    let said;
    for (let step = 0; step < 5 && said === undefined; step++) {
      const { messages } = await session.prepare({ tools: definitions });
      assert.deepEqual((await validateHistory(messages)).problems, []);
      const { says, calls } = model(messages, definitions);
      if (calls) await session.append(dialect.asks(calls), await handle(calls));
      else await session.append(dialect.assistant((said = says)));
    }
    assert.equal(said, dialect.result(history[10]));
    const at = (await session.context.explain()).length - 2;

    // It stays where it is read, however much comes behind it, and everything else goes.
    for (let nth = 20; nth < 80; nth += 20) {
      await session.append(...Array.from({ length: 20 }, (_, more) => dialect.exchange(nth + more, 2_000)).flat());
      const { messages } = await session.prepare({ tools: definitions });
      assert.deepEqual((await validateHistory(messages)).problems, []);
    }
    const ledger = await session.context.explain();
    assert.equal(ledger[at].fate, "verbatim");
    assert.equal(ledger.slice(0, at).filter(({ fate }) => fate === "offloaded").length, 20);
    assert.ok(ledger.slice(at).some(({ fate }) => fate === "offloaded"));
  });
}

test("parallel calls are answered one by one and stay valid", async () => {
  for (const [format, { exchange, asks, call }] of Object.entries(DIALECTS)) {
    const session = await openSession({ store: "memory" });
    await session.append(...exchange(0));
    const { handle } = session.recall.tools(format);
    const calls = ["a", "b"].map((id) => ({ ...call("recall_search", { query: "file" }), id }));
    const both = asks(calls[0]);
    (both.tool_calls ?? both.content).push(calls[1]);
    await session.append({ role: "user", content: "Look." }, both, ...(await Promise.all(calls.map(handle))));
    const { messages } = await session.prepare();
    assert.equal(messages.length, 8);
    assert.deepEqual((await validateHistory(messages)).problems, [], format);
  }
});

test("every format has both definitions and answers a call of its own", async () => {
  const session = await openSession({ store: "memory" });
  await session.append(...chat(2));
  const arguments_ = { query: "nothing of the kind" };
  const name = "recall_search";
  const calls = {
    "openai-chat": { id: "a", type: "function", function: { name, arguments: JSON.stringify(arguments_) } },
    "openai-responses": { type: "function_call", call_id: "a", name, arguments: JSON.stringify(arguments_) },
    anthropic: { type: "tool_use", id: "a", name, input: arguments_ },
    gemini: { functionCall: { name, args: arguments_ }, thoughtSignature: "AAAA" },
    "ai-sdk": { type: "tool-call", toolCallId: "a", toolName: name, input: arguments_, dynamic: undefined },
    react: { tool: name, args: arguments_ },
  };
  const text = "Nothing was found. Try other words, as they would stand in the text.";
  const answers = {
    "openai-chat": { role: "tool", tool_call_id: "a", content: text },
    "openai-responses": { type: "function_call_output", call_id: "a", output: text },
    anthropic: { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: text }] },
    gemini: { role: "user", parts: [{ functionResponse: { name, response: { output: text } } }] },
    "ai-sdk": {
      role: "tool",
      content: [{ type: "tool-result", toolCallId: "a", toolName: name, output: { type: "text", value: text } }],
    },
    react: { thought: "", action: calls.react, result: text },
  };
  for (const format of formats) {
    const { definitions, handle } = session.recall.tools(format);
    const listed = definitions.map((definition) => definition.function ?? definition);
    assert.deepEqual(
      listed.map(({ name }) => name),
      NAMES,
    );
    for (const { description, parameters, parametersJsonSchema, input_schema, inputSchema } of listed) {
      assert.ok(description.length > 100);
      const schema = parameters ?? parametersJsonSchema ?? input_schema ?? inputSchema;
      assert.equal(schema.type, "object");
      assert.ok(schema.properties[schema.required[0]].description);
    }
    assert.deepEqual(await handle(calls[format]), answers[format], format);
  }
});

test("the app's own values in a call come back as they were", async () => {
  const session = await openSession({ store: "memory" });
  const part = { type: "tool-recall_read", toolCallId: "a", state: "input-available", input: { ref: "x\ud800" }, at: new Date(5) };
  const answer = await session.recall.tools("ai-sdk").handle(part);
  assert.deepEqual({ ...answer, errorText: undefined }, { ...part, state: "output-error", errorText: undefined });
  assert.match(answer.errorText, /^Nothing in this conversation has this reference/);
  assert.equal(part.state, "input-available");
});

test("what is no call is the app's mistake, and so is a format that there is not", async () => {
  const session = await openSession({ store: "memory" });
  const { handle } = session.recall.tools("anthropic");
  const invalid = (field) => fails("invalid_message", { field, index: undefined, message: /^call/ });
  for (const call of [undefined, null, "recall_read", 5, { input: () => {} }, { call: 5n }]) {
    await assert.rejects(handle(call), invalid("call"), String(call));
  }
  await assert.rejects(handle([]), invalid("call"));
  await assert.rejects(handle({ type: "tool_use", id: "a", name: "recall_read" }), invalid("call.input"));
  for (const format of ["claude", "", "__proto__", 5, null]) {
    assert.throws(() => session.recall.tools(format), fails("invalid_option", { field: "format" }), String(format));
  }
  await session.close();
  await assert.rejects(handle({}), fails("closed"));
  assert.throws(() => session.recall.tools(), fails("closed"));
  await assert.rejects(session.recall.search("x"), fails("closed"));
});

test("search finds what was said, offloaded and summarised, with references that read takes", async () => {
  const store = openStore();
  const options = { store, id: "s", ...SMALL, summarize: summariser(), advanced: { runtime: runtime() } };
  const session = await openSession(options);
  const secret = exchange(0, 2_000);
  secret[2].content = `${secret[2].content} 暗号は「青い鯨」 port 5432`;
  await session.append(...secret, ...Array.from({ length: 20 }, (_, nth) => exchange(nth + 1, 2_000)).flat());
  const { edits } = await session.prepare();
  assert.equal(edits[0].kind, "offload");
  const [{ ref }] = (await session.context.explain()).slice(2);
  assert.equal((await session.compact()).success, true);
  assert.equal((await session.context.explain())[2].fate, "summarized");
  for (const query of ["青い鯨", "port 5432"]) {
    const [best] = await session.recall.search(query);
    assert.deepEqual([best.ref, best.seq], [ref, 2], query);
    assert.match(best.snippet, /^….* 0 +暗号は「青い鯨」 port 5432$/);
    assert.equal(await session.recall.read(best.ref), secret[2].content);
  }
  const found = await session.recall.search("read file7");
  assert.equal(found.length, 10);
  assert.equal(await session.recall.read(found[0].ref), "read\npath: file7");
  assert.deepEqual(
    (await session.recall.search("read file7", { limit: 3 })).map((hit) => hit.seq),
    found.slice(0, 3).map((hit) => hit.seq),
  );
  // Another tab, and another session of the same store.
  const tab = await openSession({ ...options, advanced: undefined });
  assert.deepEqual(await tab.recall.search("read file7"), found);
  const other = await openSession({ ...options, id: "t", advanced: undefined });
  await other.append(...exchange(0, 2_000));
  await assert.rejects(other.recall.read(found[0].ref), fails("not_found"));
  assert.deepEqual(await other.recall.search("青い鯨"), []);
});

test("search refuses a query without a word, and options that it does not have", async () => {
  const session = await openSession({ store: "memory" });
  await session.append(...chat(1));
  for (const query of ["", "  \n", "?!", undefined, null, 5, {}]) {
    await assert.rejects(session.recall.search(query), fails("invalid_option", { field: "query" }), String(query));
  }
  for (const limit of [0, -1, 1.5, "5", null, Number.NaN, 2 ** 32]) {
    await assert.rejects(session.recall.search("x", { limit }), fails("invalid_option", { field: "limit" }), String(limit));
  }
  await assert.rejects(session.recall.search("x", { top: 5 }), fails("invalid_option", { field: "top" }));
  await assert.rejects(session.recall.search("x", null), fails("invalid_option", { field: "" }));
  assert.equal((await session.recall.search("x\ud800 PARSER", { limit: undefined })).length, 2);
});

test("x8_ a checkpoint is expanded to the one before it and to messages, whose references are read", async () => {
  const store = openStore();
  const options = { store, id: "s", ...SMALL, keep: { messages: 1 }, summarize: summariser(), advanced: { runtime: runtime() } };
  const session = await openSession(options);
  const history = Array.from({ length: 12 }, (_, nth) => exchange(nth, 600)).flat();
  await session.append(...history);
  assert.equal((await session.compact()).success, true);
  const [first] = session.context.checkpoints();
  await session.append(...Array.from({ length: 6 }, (_, nth) => exchange(nth + 12, 600)).flat());
  assert.equal((await session.compact()).success, true);
  const newest = session.context.checkpoints().at(-1);
  assert.notEqual(newest.id, first.id);

  const [earlier, ...messages] = await session.recall.expand(newest.id);
  assert.deepEqual([earlier.kind, earlier.id, earlier.messageRange], ["checkpoint", first.id, first.messageRange]);
  assert.ok(earlier.text.length > 0);
  assert.deepEqual(
    messages.map((part) => [part.kind, part.index]),
    Array.from({ length: newest.messageRange[1] - first.messageRange[1] }, (_, at) => ["message", first.messageRange[1] + at]),
  );
  const below = await session.recall.expand(first.id);
  assert.deepEqual(
    below.map((part) => part.index),
    Array.from({ length: first.messageRange[1] }, (_, at) => at),
  );
  for (const { ref, role, place, snippet, index } of [...below, ...messages]) {
    const text = await session.recall.read(ref);
    assert.ok(text.startsWith(snippet.replace(/…$/, "")), `${index}: ${snippet}`);
    assert.equal(role === "tool", index % 4 === 2, `${index}: ${role}`);
    assert.equal(place, "summarized");
  }
  // A fork does not expand what its parent made, and no text is an id.
  const fork = await session.fork();
  await assert.rejects(fork.recall.expand(newest.id), fails("not_found"));
  for (const id of ["", "m0a", below[0].ref, undefined]) {
    await assert.rejects(session.recall.expand(id), fails("not_found", { message: /archive\.checkpoints\(\)/ }), String(id));
  }
  await session.close();
  await assert.rejects(session.recall.expand(newest.id), fails("closed"));
});

test("X7: what the user forbade, and what an agent changed, are found without a word of theirs", async () => {
  const session = await openSession({ store: memoryStore(), format: "openai-chat" });
  await session.append({ role: "user", content: "Port the parser. Never touch the lock file." }, { role: "assistant", content: "Understood." });
  await session.append(...exchange(0, 200), { role: "user", content: "Now the lexer, please." });
  const [rule] = await session.recall.search("What did I ask you never to do?");
  assert.deepEqual([rule.index, rule.role, rule.snippet], [0, "user", "Never touch the lock file."]);
  assert.equal(await session.recall.read(rule.ref), "Port the parser. Never touch the lock file.");
  // The model is told how its answer is ordered.
  const { handle } = session.recall.tools();
  const { call, result } = DIALECTS["openai-chat"];
  const answer = result(await handle(call("recall_search", { query: "What was the last thing I asked you?" })));
  assert.match(answer, /newest first[^]*\n> Now the lexer, please\./);
});

/** How much a text has to do with pets, and with ships. */
const topics = (texts) => texts.map((text) => [/kitten|pet/.test(text) ? 1 : 0.1, /boat/.test(text) ? 1 : 0.1]);

async function talked(recall) {
  const session = await openSession({ store: memoryStore(), contextWindow: 32_000, format: "openai-chat", recall });
  const warnings = [];
  session.on("warning", (warning) => warnings.push(warning));
  await session.append({ role: "user", content: "My kitten is called Tom." }, { role: "assistant", content: "Nice." });
  await session.append({ role: "user", content: "The boat left." });
  return { session, warnings };
}

test("X9: a search by meaning finds what no word finds, and appends do not wait for it", async () => {
  const calls = [];
  let go;
  const embed = async (texts) => {
    calls.push(texts.length);
    await new Promise((resolve) => (go = resolve));
    return topics(texts);
  };
  const { session, warnings } = await talked({ embed });
  const found = session.recall.search("Which pets do I have?");
  while (go === undefined) await new Promise(setImmediate);
  await session.append({ role: "assistant", content: "It was appended meanwhile." });
  const timer = setInterval(() => go(), 1);
  assert.equal((await found)[0].snippet, "My kitten is called Tom.");
  assert.deepEqual(calls, [2, 3]);
  await session.recall.search("Which pets do I have?");
  assert.deepEqual(calls.slice(2), [2, 1], "what was appended since is all that is new");
  clearInterval(timer);
  assert.deepEqual(warnings, []);
  await session.close();
});

test("X9: what embed gets wrong is a warning that names the fix, and words answer", async () => {
  const cases = [
    [async () => { throw new Error("503"); }, /recall\.embed failed: 503; .*words alone/],
    [async () => ({ data: [{ embedding: [1] }] }), /must resolve to number\[\]\[\]: return response\.data\.map/],
    [async (texts) => texts.slice(1).map(() => [1]), /it resolved to 1 for 2 texts/],
    [async (texts) => texts.map((_, nth) => Array(nth + 1).fill(1)), /use one model for all texts/],
    [async (texts) => texts.map(() => ["x", 1]), /finite numbers/],
  ];
  for (const [embed, expected] of cases) {
    const { session, warnings } = await talked({ embed });
    assert.equal((await session.recall.search("kitten")).length, 1);
    assert.equal(warnings.length, 1);
    assert.equal(warnings[0].code, "invalid_option");
    assert.match(warnings[0].message, expected);
  }
  for (const recall of ["yes", { embed: 1 }, { tool: true }]) await assert.rejects(openSession({ recall }), fails("invalid_option"));
});
