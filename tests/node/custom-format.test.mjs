/** The option `format` as an object: messages in a format of the app's own (E10). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, importSession, memoryStore, openSession, planCompaction, recallTools } from "context-compactor";
import { buildSummaryPrompt, extractiveSummary, proposePins, repairHistory, splitMessages, validateHistory } from "context-compactor/history";
import { estimateTokens, estimateTokensDetailed, loadTokenizer } from "context-compactor/tokens";
import { fails, frozen, summariser } from "../support/api.mjs";

/** An app's own messages, which no library knows. */
const own = {
  name: "own",
  base: "openai-chat",
  read: ({ from, said, did, answers }) => {
    if (answers) return { role: "tool", tool_call_id: answers, content: said };
    const calls = did?.map(({ key, what, how }) => ({ id: key, type: "function", function: { name: what, arguments: JSON.stringify(how) } }));
    return { role: from === "me" ? "user" : "assistant", content: said ?? null, ...(calls ? { tool_calls: calls } : {}) };
  },
  write: ({ role, content, tool_call_id: answers, tool_calls: calls }) => ({
    from: { user: "me", assistant: "it", tool: "tool" }[role],
    ...(content === null ? {} : { said: content }),
    ...(answers ? { answers } : {}),
    ...(calls ? { did: calls.map(({ id, function: { name, arguments: how } }) => ({ key: id, what: name, how: JSON.parse(how) })) } : {}),
  }),
  patch: (message, { results, calls }) => ({
    ...message,
    ...(results[0] ? { said: results[0].content } : {}),
    ...(message.did ? { did: message.did.map((call, at) => ({ ...call, how: calls.find(({ nth }) => nth === at)?.input ?? call.how })) } : {}),
  }),
};

/** The same without ids: results are paired by order and name. */
const untied = {
  ...own,
  name: "untied",
  read: (message) => {
    const read = own.read(message);
    if (read.role === "tool") return { role: "tool", name: message.answers, content: message.said };
    return read.tool_calls ? { ...read, tool_calls: read.tool_calls.map(({ id: _, ...call }) => call) } : read;
  },
  write: (message) => {
    const { did, answers, ...rest } = own.write(message);
    return { ...rest, ...(answers ? { answers: message.tool_call_id.replace(/_\d+$/, "") } : {}), ...(did ? { did: did.map(({ key: _, ...call }) => call) } : {}) };
  },
};

const LINE = "src/parser.rs line 42 borrows the buffer that module 7 has moved. ";

/** A question, two calls of one tool, their results and an answer; `more` is known to the app alone. */
const turn = (nth) => [
  { from: "me", said: `Question ${nth}: what is in file ${nth}?`, more: { nth } },
  { from: "it", did: [0, 1].map((half) => ({ key: `c${nth}${half}`, what: "read", how: { path: `f${nth}${half}` } })), more: { nth } },
  ...[0, 1].map((half) => ({ from: "tool", answers: `c${nth}${half}`, said: `File ${nth}${half}. ${LINE.repeat(30)}`, more: { nth } })),
  { from: "it", said: `File ${nth} was read.`, more: { nth } },
];
const history = (turns, from = 0) => Array.from({ length: turns }, (_, nth) => turn(from + nth)).flat();
const named = (messages) =>
  messages.map(({ answers, did, ...message }) => ({
    ...message,
    ...(answers ? { answers: "read" } : {}),
    ...(did ? { did: did.map(({ key: _, ...call }) => call) } : {}),
  }));
const copies = (messages) => JSON.parse(JSON.stringify(messages));

/** A summary that says enough for so long a history. */
const FULL = `The parser is to be mended. ${Array.from({ length: 60 }, (_, nth) => `File ${nth} was read: line ${nth} borrows what module ${nth} has moved.`).join(" ")}`;

const OPTIONS = { format: own, contextWindow: 12_000, maxOutputTokens: 1_000 };
const all = async (iterable) => {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
};

for (const [name, format, given] of [["with ids", own, history(14)], ["without ids", untied, named(history(14))]]) {
  test(`E10 a session over messages ${name}: kept ones are the app's objects, edited ones its copies, a summary is written`, async () => {
    const summarize = summariser(FULL);
    const session = await openSession({ ...OPTIONS, format, summarize, offload: false, clear: false, admit: false, digest: false, keep: { messages: 3 } });
    frozen(given);
    for (const message of given) await session.append(message);
    const { messages, edits } = await session.prepare();
    assert.ok(edits.some(({ kind }) => kind === "summarize"));
    const kept = messages.filter((message) => given.includes(message));
    const summary = messages.filter(({ said }) => said?.includes("The parser is to be mended"));
    assert.equal(summary.length, 1);
    assert.equal(summary[0].from, "me");
    assert.ok(kept.length >= 3 && kept.length < given.length);
    assert.deepEqual((await validateHistory(messages, { format })).problems, []);
    assert.equal(session.context.format, "openai-chat");

    const before = await openSession({ ...OPTIONS, format, preset: "offload", compactAt: { tokens: 10_000 }, keep: { messages: 2 } });
    await before.sync(given);
    const offloaded = (await before.prepare()).messages;
    const edited = offloaded.filter((message) => !given.includes(message));
    assert.ok(edited.length > 5);
    for (const message of edited) {
      const original = given[offloaded.indexOf(message)];
      assert.deepEqual({ ...message, said: "" }, { ...original, said: "" }, "what the app alone knows is there");
      assert.match(message.said, /off_/);
    }
    for (const open of [session, before]) {
      const { messages: again } = await open.prepare();
      const sent = open === session ? messages : offloaded;
      again.forEach((message, at) => assert.equal(message, sent[at], "the same objects again"));
      assert.equal((await open.sync(copies(again))).appended, 0);
      await open.close();
    }
  });

  test(`E10 sync over messages ${name}: JSON copies, another order of fields and windows are recognized; also after a reopening`, async () => {
    const store = memoryStore();
    const open = () => openSession({ ...OPTIONS, contextWindow: 200_000, format, id: "one", store });
    const session = await open();
    await session.sync(given);
    assert.deepEqual(await session.sync(copies(given)), { appended: 0, recognized: given.length });
    const turned = copies(given).map((message) => Object.fromEntries(Object.entries(message).reverse()));
    const more = name === "with ids" ? history(1, 14) : named(history(1, 14));
    assert.deepEqual(await session.sync([...turned, more[0]]), { appended: 1, recognized: given.length });
    await session.append(...more.slice(1, 3));
    await session.close();

    const again = await open();
    // The call of this result is in the store alone.
    await again.append(more[3]);
    const stored = await all(again.archive.history());
    assert.equal(stored.at(-1), more[3]);
    const bare = (messages) => messages.map(({ more: _, ...message }) => message);
    assert.deepEqual(bare(stored), bare([...given, ...more.slice(0, 4)]));
    assert.deepEqual((await validateHistory((await again.prepare()).messages, { format })).problems, []);
    const { alignedAt, ...window } = await again.sync(copies([...given.slice(10), ...more]));
    assert.deepEqual([alignedAt, window], [10, { appended: 1, recognized: given.length - 10 + 4 }]);
    await again.close();
  });
}

test("E10 appends that share a transaction, and a result whose call is in it", async () => {
  const session = await openSession({ format: untied, contextWindow: 200_000 });
  const messages = named(history(2));
  await Promise.all(messages.map((message) => session.append(message)));
  const { problems } = await validateHistory((await session.prepare()).messages, { format: untied });
  assert.deepEqual(problems, []);
  const lines = Buffer.concat(await all(session.archive.jsonl())).toString();
  assert.deepEqual(lines.match(/"tool_call_id":"\w+"/g), ["read_1", "read_2", "read_1", "read_2"].map((id) => `"tool_call_id":"${id}"`));
  await session.close();
});

test("E10 every index is that of the app's message", async () => {
  const asked = [];
  const session = await openSession({ ...OPTIONS, contextWindow: 200_000, pins: { match: (message, index) => (asked.push([message, index]), index === 5) } });
  const messages = history(3);
  messages[10].said = "Never push to main.";
  await session.append(...messages);
  const ledger = await session.context.explain();
  assert.equal(ledger.length, messages.length);
  assert.deepEqual(asked, messages.map((message, index) => [message, index]));
  assert.deepEqual((await session.pins.proposals()).map(({ index }) => index), [10]);
  await session.snapshots.rewind(10);
  assert.equal((await session.prepare()).messages.at(-1), messages[9]);
  await assert.rejects(session.append(messages[0], { from: "me", said: 5n }), fails("unsupported_value", { index: 1 }));
  await assert.rejects(session.sync([...messages.slice(0, 10), { from: "me" }, { get from() { throw new Error("gone"); } }]), (error) => {
    assert.equal(fails("invalid_message", { index: 11 })(error), true);
    assert.match(error.message, /message 11: format own could not read it: gone/);
    return true;
  });
  assert.throws(() => estimateTokens([messages[0], 5], { format: own }), fails("invalid_message", { index: 1 }));
  await session.close();
});

test("E10 functions of the app receive its own messages: tokenCounter, pins, a request that goes on", async () => {
  const seen = new Set();
  const counter = (messages) => messages.reduce((sum, message) => (seen.add(message), sum + JSON.stringify(message).length / 4), 0);
  const requests = [];
  const summarize = async (request) => (requests.push(request), "The parser of module 7 borrows a moved buffer; tests of line 42 fail and are to be fixed.");
  const session = await openSession({ ...OPTIONS, model: "gpt-4o", contextWindow: 12_000, summarize, keep: { messages: 2 }, tokenCounter: (messages) => Math.ceil(counter(messages)) });
  const messages = history(3);
  await session.append(...messages);
  await session.prepare();
  assert.ok(messages.every((message) => seen.has(message)));
  await session.compact();
  for (const message of seen) assert.ok("from" in message, JSON.stringify(message));
  const { thread } = requests.find(({ thread }) => thread);
  assert.deepEqual(thread.messages.map(({ from }) => from), ["me"]);
  await session.close();
});

test("E10 compact and planCompaction, with and without a state", async () => {
  const messages = frozen(history(8));
  const plan = await planCompaction(messages, OPTIONS);
  assert.equal(plan.willCompact, true);
  const once = await compact(messages, { ...OPTIONS, summarize: summariser(), keep: { messages: 3 } });
  assert.equal(once.success, true);
  assert.equal(once.ledger.length, messages.length);
  assert.equal(once.messages[0].from, "me");
  assert.ok(once.messages.slice(-3).every((message) => messages.includes(message)));

  const options = { ...OPTIONS, preset: "offload", compactAt: { tokens: 7_000 } };
  const first = await compact(messages, { ...options, state: null });
  assert.equal(first.changed, true);
  const edited = first.messages.find(({ said }) => said?.includes("off_"));
  assert.deepEqual({ ...edited, said: "" }, { ...messages[first.messages.indexOf(edited)], said: "" });
  // The history comes from a database: another order of fields, other objects.
  const later = copies(messages).map((message) => Object.fromEntries(Object.entries(message).reverse()));
  const second = await compact([...later, { from: "me", said: "Go on." }], { ...options, state: JSON.parse(JSON.stringify(first.state)) });
  assert.equal(second.appliedEdits.length, 0, "it goes on from the state");
  assert.deepEqual(second.messages.slice(0, first.messages.length), first.messages);
  const [, ref] = edited.said.match(/(off_\w+)/);
  const tools = await recallTools(messages, first.state, { format: own });
  const call = { id: "r", type: "function", function: { name: "recall_read", arguments: JSON.stringify({ ref }) } };
  assert.match((await tools.handle(call)).content, /borrows the buffer/);
});

test("E10 the functions of /history and /tokens", async () => {
  const messages = history(2);
  const native = messages.map(own.read);
  const [here, there] = [{ format: own }, { format: "openai-chat" }];
  assert.equal(estimateTokens(messages, here), estimateTokens(native, there));
  assert.deepEqual(estimateTokensDetailed(messages[1], here), estimateTokensDetailed(native[1], there));
  const tokenizer = await loadTokenizer(import("context-compactor-vocabularies/o200k_base"));
  assert.equal(tokenizer.countMessages(messages, here), tokenizer.countMessages(native, there));
  const split = await splitMessages(messages, { ...here, keep: { messages: 3 }, pins: { match: ({ more }, index) => more.nth === 0 && index === 0 } });
  assert.deepEqual([split.boundary, split.toPreserve[0]], [6, messages[0]]);
  assert.deepEqual(await validateHistory(messages.slice(0, 3), here), await validateHistory(native.slice(0, 3), there));
  assert.deepEqual(await buildSummaryPrompt(messages, here), await buildSummaryPrompt(native, there));
  assert.equal(await extractiveSummary(messages, here), await extractiveSummary(native, there));
  assert.deepEqual(await proposePins([{ from: "me", said: "Never push to main." }], here), await proposePins([{ role: "user", content: "Never push to main." }], there));
  const broken = await repairHistory(messages.slice(0, 3), here);
  assert.equal(broken.messages[0], messages[0]);
  assert.deepEqual(broken.messages[1], own.write((await repairHistory(native.slice(0, 3), there)).messages[1]));
});

test("E10 a fork, an archive and its import have the app's messages", async () => {
  const session = await openSession({ ...OPTIONS, contextWindow: 200_000 });
  const messages = history(2);
  await session.append(...messages);
  const fork = await session.fork();
  assert.deepEqual(await all(fork.archive.history()), messages);
  assert.equal((await fork.prepare()).messages[0], messages[0]);
  const copy = await importSession(session.archive.jsonl(), { ...OPTIONS, id: "copy", store: "memory" });
  const bare = messages.map(({ more: _, ...message }) => message);
  assert.deepEqual(await all(copy.archive.history()), bare, "what `read` leaves out is not stored");
  assert.deepEqual((await copy.context.parts()).recentMessages, bare);
  for (const open of [session, fork, copy]) await open.close({ delete: true });
});

test("E10 a format that is none is refused, and says what to do", async () => {
  const wrong = [
    [{ ...own, base: "bedrock" }, "format.base", /must be one of "openai-chat", "anthropic"/],
    [{ ...own, name: "" }, "format.name", /must be a text/],
    [{ ...own, read: undefined }, "format.read", /must be a function/],
    [{ ...own, write: "x" }, "format.write", /must be a function/],
    [{ ...own, patch: 1 }, "format.patch", /must be a function/],
    [{ ...own, reader: () => {} }, "format.reader", /read/],
    ["bedrock", "format", /import \{ bedrock \} from "context-compactor\/formats"/],
  ];
  for (const [format, field, says] of wrong) {
    const isTold = (error) => fails("invalid_option", { field })(error) && says.test(error.message);
    await assert.rejects(openSession({ format }), isTold);
    await assert.rejects(compact(history(1), { format }), isTold);
    await assert.rejects(validateHistory(history(1), { format }), isTold);
    assert.throws(() => estimateTokens(history(1), { format }), isTold);
  }
  const replies = { read: [() => [{ role: "user", content: "" }], () => "text", async () => ({})], write: [() => [], () => undefined] };
  for (const [member, functions] of Object.entries(replies)) {
    for (const reply of functions) {
      const given = compact(history(8), { ...OPTIONS, keep: { messages: 3 }, format: { ...own, [member]: reply } });
      await assert.rejects(given, fails("invalid_option", { field: `format.${member}` }), `${member}: ${reply}`);
    }
  }
  const throws = { ...own, write: () => { throw new Error("no pen"); } };
  await assert.rejects(compact(history(8), { ...OPTIONS, keep: { messages: 3 }, format: throws }), /format.write: the function of format own threw: no pen/);
});

test("E10 a copy that does not say what the context should have is not sent", async () => {
  const lazy = { ...own, patch: (message) => ({ ...message }) };
  const messages = history(8);
  const { messages: sent } = await compact(messages, { ...OPTIONS, format: lazy, preset: "offload", compactAt: { tokens: 4_000 }, keep: { messages: 2 }, state: null });
  const edited = sent.filter((message) => !messages.includes(message));
  assert.ok(edited.length > 5);
  for (const message of edited) assert.deepEqual([message.more, /off_/.test(message.said)], [undefined, true]);
});

test("E10 ids that recur: an edited copy is one of its own message, whatever is between", async () => {
  const more = (nth, said) => [
    { from: "it", did: [{ key: "c", what: "write", how: { text: nth === 3 ? "short" : `${nth}: ${LINE.repeat(30)}` } }], more: { nth } },
    { from: "tool", answers: "c", said, more: { nth } },
  ];
  const messages = [{ from: "me", said: "Write.", more: {} }, ...Array.from({ length: 12 }, (_, nth) => more(nth, nth === 3 ? "Done." : `Done ${nth}. ${LINE.repeat(30)}`)).flat()];
  const options = { ...OPTIONS, clear: { inputs: true, keepRecent: 2, minTokens: 50 }, compactAt: { tokens: 6_000 }, offload: false, admit: false, digest: false };
  const session = await openSession(options);
  await session.sync(messages);
  for (const { messages: sent } of [await session.prepare(), await compact(messages, { ...options, state: null })]) {
    assert.equal(sent.length, messages.length);
    const edited = [...sent.keys()].filter((at) => sent[at] !== messages[at]);
    assert.ok(edited.some((at) => sent[at].did) && edited.some((at) => sent[at].answers) && edited.some((at) => at > 8), JSON.stringify(edited));
    assert.deepEqual(sent.map(({ more }) => more), messages.map(({ more }) => more));
  }
  await session.close();
});

test("E10 a message that grows is known by the id that `id` returns", async () => {
  const format = { ...own, id: ({ more }) => more?.id };
  const session = await openSession({ format, contextWindow: 100_000 });
  const messages = [{ from: "me", said: "Go.", more: { id: "m1" } }, { from: "it", said: "I", more: { id: "m2" } }];
  await session.sync(messages);
  assert.deepEqual(await session.sync([messages[0], { from: "it", said: "I went.", more: { id: "m2" } }]), { appended: 1, recognized: 1, replaced: 1 });
  await session.close();
});
