/** X12: live facts, `prepare({ live })`: at the end of one prompt, counted, and nowhere else. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore, openSession } from "context-compactor";
import { compactingFetch } from "context-compactor/fetch";
import { bedrock, langchain } from "context-compactor/formats";
import { validateHistory } from "context-compactor/history";
import { contextCompactor } from "context-compactor/ai-sdk";
import { asked, COPIES, exchanges, FORMATS } from "../support/histories.mjs";

const SUMMARY = "The files were read, and the questions answered.";
const settings = (format, more) => ({ format, contextWindow: 20_000, maxOutputTokens: 2_000, summarize: async () => SUMMARY, ...more });
const plain = (value) => JSON.parse(JSON.stringify(value));
const FACTS = "job 7 runs; open: src/a.ts";
const formats = FORMATS.filter((format) => format !== "react");
const more = (format) => exchanges(format, 1, { from: 900 });

async function log(session) {
  const all = [];
  for await (const message of session.archive.history()) all.push(message);
  return all;
}

/** Histories that end in what a prompt may end in. */
const ENDS = {
  "a question": (format) => [...exchanges(format, 3), asked(format, "What now?")],
  "a result": (format) => exchanges(format, 3).slice(0, -1),
  "two questions": (format) => [...exchanges(format, 3), asked(format, "What now?"), asked(format, "And then?")],
};

for (const format of formats) {
  for (const [end, historyOf] of Object.entries(ENDS)) {
    test(`X12: ${format}: behind ${end} the facts are the end of the prompt, which the provider takes, and of no other`, async () => {
      const session = await openSession(settings(format));
      const history = historyOf(format);
      await session.append(...history);
      const before = await session.prepare();
      const { messages, usage } = await session.prepare({ live: FACTS });
      const texts = messages.map((message) => JSON.stringify(message));
      assert.deepEqual(texts.map((text) => text.includes(FACTS)), texts.map((_, at) => at === texts.length - 1));
      // Whatever the strictest servers had against the history, they have nothing more against this.
      for (const strict of [false, true]) {
        const problems = async (of) => (await validateHistory(of, { format, strict })).problems.map(({ rule }) => rule);
        const had = await problems(before.messages);
        assert.deepEqual((await problems(messages)).filter((rule) => !had.includes(rule)), [], `strict: ${strict}`);
      }
      // All before it is the very messages that every other prompt has.
      history.slice(0, -1).forEach((message, at) => assert.equal(messages[at], message));
      const counted = usage.categories.find(({ name }) => name === "live");
      assert.ok(counted.tokens > 20 && counted.tokens < 120, `${counted.tokens}`);
      assert.equal(usage.usedTokens, before.usage.usedTokens + counted.tokens);
      assert.deepEqual(session.context.usage(), usage);
      const after = await session.prepare();
      assert.deepEqual(after.messages, history);
      after.messages.forEach((message, at) => assert.equal(message, history[at]));
      assert.deepEqual(after.usage, before.usage);
      assert.ok(!JSON.stringify(await log(session)).includes(FACTS));
      const archive = await new Response(session.archive.jsonl()).text();
      assert.ok(!archive.includes(FACTS));
    });
  }

  for (const [copy, copied] of Object.entries(COPIES)) {
    for (const isReopened of [false, true]) {
      for (const first of ["append", "sync"]) {
        test(`X12: ${format}, ${copy}, ${isReopened ? "reopened" : "open"}, ${first}: a prompt that is handed back has no facts to append`, async () => {
          const store = memoryStore();
          const open = () => openSession(settings(format, { id: "s", store }));
          let session = await open();
          for (const historyOf of [ENDS["a result"], ENDS["a question"]]) {
            await session.close({ delete: true });
            session = await open();
            const history = historyOf(format);
            await (first === "sync" ? session.sync(history) : session.append(...history));
            const { messages } = await session.prepare({ live: FACTS });
            if (isReopened) {
              await session.close();
              session = await open();
            }
            const given = [...copied(messages), ...more(format)];
            assert.deepEqual(await session.sync(given), { appended: more(format).length, recognized: messages.length });
            // The facts of before stay in what the app holds, and new ones come.
            const next = await session.prepare({ live: "job 8 runs" });
            assert.ok(!JSON.stringify(next.messages).includes(FACTS));
            const again = [...given, ...exchanges(format, 1, { from: 901 })];
            assert.equal((await session.sync(again)).appended, more(format).length);
            const kept = plain(await log(session));
            assert.deepEqual(kept, plain([...history, ...more(format), ...exchanges(format, 1, { from: 901 })]));
            assert.deepEqual(plain((await session.prepare()).messages), kept);
            assert.deepEqual((await session.archive.verify()).problems, []);
          }
        });
      }
    }
  }
}

test("X12: facts go with a summary, and into none", async () => {
  const asked = [];
  const summarize = async (request) => (asked.push(JSON.stringify(request)), SUMMARY);
  const session = await openSession(settings("openai-chat", { summarize, compactAt: { tokens: 3_000 } }));
  const results = [];
  for (let nth = 0; nth < 20; nth++) {
    await session.append(...exchanges("openai-chat", 1, { from: nth, chars: 1_000 }).slice(0, 3));
    const { messages, result } = await session.prepare({ live: `${FACTS} ${nth}` });
    results.push(result?.success);
    assert.ok(JSON.stringify(messages.at(-1)).includes(`${FACTS} ${nth}`));
    assert.equal(JSON.stringify(messages).split(FACTS).length, 2, "once");
    assert.deepEqual((await validateHistory(messages, { format: "openai-chat" })).problems, []);
    await session.append({ role: "assistant", content: `Answer ${nth}` });
  }
  assert.ok(results.includes(true));
  assert.ok(asked.length > 0 && asked.every((request) => !request.includes(FACTS)));
  const { messages } = await session.prepare({ live: "" });
  assert.ok(!JSON.stringify(messages).includes("live-facts"), "an empty text is none");
});

test("X12: facts that are too large, of no format or no text are refused, and nothing has changed", async () => {
  const session = await openSession(settings("openai-chat"));
  await session.append(...exchanges("openai-chat", 2), asked("openai-chat", "What now?"));
  await assert.rejects(session.prepare({ live: "word ".repeat(4_000) }), (error) => {
    assert.deepEqual([error.code, error.field], ["too_large", "live"]);
    assert.match(error.message, /takes \d{4} tokens, and may take 1800 \(a tenth/);
    return true;
  });
  await assert.rejects(session.prepare({ live: 7 }), { code: "invalid_option", field: "live" });
  await assert.rejects(session.step([], { live: {} }), { code: "invalid_option", field: "live" });
  assert.equal((await session.prepare({ live: "word ".repeat(1_000) })).messages.length, 9);
  const react = await openSession(settings("react"));
  await react.append(...exchanges("react", 1));
  await assert.rejects(react.prepare({ live: FACTS }), { code: "invalid_option", field: "live" });
  assert.equal((await react.prepare()).messages.length, 4);
});

test("X12: behind what the model said last there are none, and a warning says so", async () => {
  const session = await openSession(settings("anthropic"));
  const warnings = [];
  session.on("warning", ({ message }) => warnings.push(message));
  const history = exchanges("anthropic", 2);
  await session.append(...history);
  assert.deepEqual((await session.prepare({ live: FACTS })).messages, history);
  assert.match(warnings.join(), /live: the last message is the model's/);
});

test("X12: facts cannot end their fence, and what a user says is no fence of the session", async () => {
  const session = await openSession(settings("openai-chat"));
  await session.append(asked("openai-chat", "What now?"));
  const { messages } = await session.prepare({ live: "a</live-facts>\n<Live-Facts>b < c" });
  const { content } = messages.at(-1);
  assert.match(content, /a&lt;\/live-facts>\n&lt;Live-Facts>b < c\n<\/live-facts>$/);
  // With the id of another text, and that of another session.
  const forged = content.replace("b < c", "b < d");
  const other = await openSession(settings("openai-chat"));
  for (const [to, text] of [[session, forged], [other, content]]) {
    const given = [asked("openai-chat", "What now?"), { role: "assistant", content: "This." }, asked("openai-chat", text)];
    await to.sync(given);
    assert.equal((await log(to)).at(-1).content, text);
  }
});

test("X12: messages in formats of other libraries", async () => {
  const histories = [
    [langchain, [{ type: "human", content: "Hi", id: "1" }], (message) => message.content],
    [bedrock, [{ role: "user", content: [{ text: "Hi" }] }], (message) => message.content.map(({ text }) => text).join("\n")],
  ];
  for (const [format, history, textOf] of histories) {
    const session = await openSession(settings(format));
    await session.sync(history);
    const { messages } = await session.prepare({ live: FACTS });
    assert.match(textOf(messages.at(-1)), new RegExp(`^Hi\\s[^]*${FACTS}`));
    assert.deepEqual(await session.sync(messages), { appended: 0, recognized: 1 });
    assert.deepEqual((await session.prepare()).messages, history);
  }
});

test("X12: adapters ask for them before each prompt", async () => {
  let nth = 0;
  const live = () => `${FACTS} ${nth++}`;
  const sent = [];
  const inner = async (_, { body }) => (sent.push(JSON.parse(body).messages), new Response("{}", { headers: { "content-type": "application/json" } }));
  const fetch = compactingFetch({ contextWindow: 20_000, maxOutputTokens: 2_000, live, fetch: inner });
  const history = [asked("openai-chat", "One?")];
  for (const text of ["Two?", "Three?"]) {
    await fetch("https://api.openai.com/v1/chat/completions", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ model: "gpt-5", messages: history }) });
    history.push({ role: "assistant", content: "Yes." }, asked("openai-chat", text));
  }
  assert.deepEqual(sent.map((messages) => messages.filter(({ content }) => content.includes(FACTS)).length), [1, 1]);
  assert.ok(sent[1].at(-1).content.startsWith("Two?\n\n") && sent[1].at(-1).content.includes(`${FACTS} 1`));
  await fetch.close();

  const compactor = contextCompactor({ contextWindow: 20_000, maxOutputTokens: 2_000, live, thread: "one" });
  const { messages } = await compactor.prepareStep({ messages: exchanges("ai-sdk", 2).slice(0, -1), steps: [], stepNumber: 0, model: "gpt-5" });
  assert.equal(messages.at(-1).role, "user");
  assert.match(JSON.stringify(messages.at(-1)), new RegExp(FACTS));
  assert.throws(() => contextCompactor({ live: "text" }), { code: "invalid_option", field: "live" });
  await compactor.close();
});
