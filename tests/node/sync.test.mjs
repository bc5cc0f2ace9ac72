/** `session.sync` recognizes a history, whatever apps, databases and SDKs made of it (E1, E2): row by row. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { memoryStore, openSession } from "context-compactor";
import { fails } from "../support/api.mjs";
import { asked, COPIES, exchanges, FORMATS } from "../support/histories.mjs";

const SUMMARY = "The files were read, and the questions answered.";

/** Under which an exchange's result is offloaded, and a summary made, soon. */
const settings = (format, more) => ({ format, contextWindow: 20_000, summarize: async () => SUMMARY, ...more });

async function log(session) {
  const all = [];
  for await (const message of session.archive.history()) all.push(message);
  return all;
}

/** What the model is sent, as JSON. */
const sent = async (session) => JSON.parse(JSON.stringify((await session.prepare()).messages));

/** `body` for each format, copy and store: `reopen` is the session that the second `sync` is of. */
function each(name, body, formats = FORMATS) {
  describe(name, () => {
    for (const format of formats) {
      for (const [copy, copied] of Object.entries(COPIES)) {
        for (const isReopened of [false, true]) {
          test(`${format}, ${copy}, ${isReopened ? "reopened" : "open"} store`, async () => {
            const store = memoryStore();
            const open = (more) => openSession(settings(format, { id: "s", store, ...more }));
            let session = await open();
            const reopen = async (more) => {
              if (!isReopened && !more) return session;
              await session.close();
              return (session = await open(more));
            };
            await body({ format, copied, session, reopen, isReopened });
            assert.deepEqual((await session.archive.verify()).problems, []);
            await session.close();
          });
        }
      }
    }
  });
}

/** A field of every message. */
const withFields = (messages, fields) => messages.map((message, at) => ({ ...message, ...fields(at) }));
const more = (format) => exchanges(format, 1, { from: 900 });
const summarized = FORMATS.filter((format) => format !== "react");

for (const how of ["as objects", "as a copy"]) {
  each(
    `E1 rows 1 and 2: what prepare returned, ${how}`,
    async ({ format, copied, session, reopen }) => {
      const history = exchanges(format, 10, { chars: 2_000 });
      await session.sync(history);
      assert.equal((await session.compact()).success, true);
      const { messages } = await session.prepare();
      assert.ok(messages.length < history.length);
      const again = await reopen();
      const given = how === "as objects" ? messages : copied(messages);
      const result = await again.sync([...given, ...more(format)]);
      assert.deepEqual(result, { appended: more(format).length, recognized: messages.length });
      assert.equal((await log(again)).length, history.length + more(format).length, "nothing twice");
      const now = await sent(again);
      assert.deepEqual(now, JSON.parse(JSON.stringify([...messages, ...more(format)])));
      // A view of before another summary, with what came since.
      const since = [...given, ...more(format), ...exchanges(format, 1, { from: 901 })];
      await again.compact();
      await again.prepare();
      assert.deepEqual(await again.sync(since), { appended: since.length - given.length - more(format).length, recognized: given.length + more(format).length });
    },
    summarized,
  );
}

each("E1 row 2: results that were offloaded", async ({ format, copied, session, reopen }) => {
  const history = exchanges(format, 8, { chars: 3_000 });
  await session.close();
  const tight = { preset: "offload", contextWindow: 20_000, compactAt: { tokens: 2_000 }, presetOptions: { compactCooldownSteps: 1_000, preserveCount: 3 } };
  const first = await reopen(tight);
  await first.sync(history);
  const { messages, edits } = await first.prepare();
  assert.ok(edits.length > 0, "something was offloaded");
  const again = await reopen(tight);
  assert.deepEqual(await again.sync([...copied(messages), ...more(format)]), { appended: more(format).length, recognized: messages.length });
  assert.equal((await log(again)).length, history.length + more(format).length);
}, ["openai-chat", "anthropic", "ai-sdk"]);

each("E1 row 3: keys in another order", async ({ format, copied, session, reopen }) => {
  const history = exchanges(format, 3);
  await session.sync(history);
  const given = [...copied(history), ...more(format)];
  const again = await reopen();
  assert.deepEqual(await again.sync(given), { appended: more(format).length, recognized: history.length });
  (await again.prepare()).messages.forEach((message, at) => assert.equal(message, given[at], "the newest objects"));
  assert.deepEqual(await again.sync(given), { appended: 0, recognized: given.length });
});

each("E1 row 4: metadata, ids and times of a database", async ({ format, copied, session, reopen }) => {
  const history = exchanges(format, 3);
  await session.sync(withFields(history, () => ({ createdAt: new Date(5) })));
  const given = withFields(copied(history), (at) => ({ id: `row_${at}`, createdAt: "2026-01-01T00:00:00.000Z", metadata: { at } }));
  const again = await reopen();
  assert.deepEqual(await again.sync([...given, ...more(format)]), { appended: more(format).length, recognized: history.length });
  const { messages } = await again.prepare();
  given.forEach((message, at) => assert.equal(messages[at], message, "the newest copy is handed out"));
});

const part = (state, text = "I think.") => ({ type: "text", text, state });
const ui = (parts, id = "a1") => ({ id, role: "assistant", parts });
const question = (id = "u1", text = "Why?") => ({ id, role: "user", parts: [{ type: "text", text }] });

each("E1 row 5: state streaming becomes done", async ({ copied, session, reopen }) => {
  const reasoning = (state) => ({ type: "reasoning", text: "Hm.", state });
  await session.sync([question(), ui([reasoning("streaming"), part("streaming")])]);
  const again = await reopen();
  const given = [...copied([question(), ui([reasoning("done"), part("done")])]), question("u2", "And?")];
  assert.deepEqual(await again.sync(given), { appended: 1, recognized: 2 });
}, ["ai-sdk"]);

each("E1 row 6: the last message gets its output, and grows", async ({ copied, session, reopen }) => {
  const tool = (more) => ({ type: "tool-read", toolCallId: "c", input: { a: 1 }, ...more });
  const answered = tool({ state: "output-available", output: "the text" });
  await session.sync([question(), ui([tool({ state: "input-available" })])]);
  const again = await reopen();
  assert.deepEqual(await again.sync(copied([question(), ui([answered])])), { appended: 1, recognized: 1, replaced: 1 });
  assert.match(JSON.stringify(await sent(again)), /the text/);
  const grown = copied([question(), ui([answered, part("done")]), question("u2", "And?")]);
  assert.deepEqual(await again.sync(grown), { appended: 2, recognized: 1, replaced: 1 });
  assert.deepEqual(await sent(again), JSON.parse(JSON.stringify(grown)));
  assert.deepEqual(await again.sync(copied(grown)), { appended: 0, recognized: 3 });
  // Nothing is lost: each version is in the log.
  assert.equal((await log(again)).length, 5);
}, ["ai-sdk"]);

const marks = {
  anthropic: (message) => ({ ...message, content: [].concat(message.content).map((block) => (typeof block === "string" ? { type: "text", text: block } : block)).map((block, at, all) => (at === all.length - 1 ? { ...block, cache_control: { type: "ephemeral" } } : block)) }),
  "openai-chat": (message) => ({ ...message, cache_control: { type: "ephemeral" } }),
  "ai-sdk": (message) => ({ ...message, providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } } }),
};
each("E1 row 7: a mark of the cache moves to the newest message", async ({ format, copied, session, reopen }) => {
  const marked = (messages) => messages.map((message, at) => (at === messages.length - 1 ? marks[format](message) : message));
  const history = exchanges(format, 2);
  await session.sync(marked(history));
  const again = await reopen();
  const given = marked([...copied(history), ...more(format)]);
  assert.deepEqual(await again.sync(given), { appended: 4, recognized: 8 });
}, Object.keys(marks));

const blocks = { "openai-chat": "text", anthropic: "text", "openai-responses": "input_text", "ai-sdk": "text" };
each("E1 row 8: a text becomes a block, and empty fields go", async ({ format, copied, session, reopen }) => {
  const history = exchanges(format, 2);
  const first = history.map((message) => (message.tool_calls ? { ...message, refusal: null, annotations: [] } : message));
  await session.sync(first);
  const changed = copied(history).map((message) => {
    if (message.tool_calls) return { ...message, content: "" };
    if (typeof message.content === "string") return { ...message, content: [{ type: message.role === "assistant" && format === "openai-responses" ? "output_text" : blocks[format], text: message.content }] };
    return message;
  });
  const again = await reopen();
  assert.deepEqual(await again.sync([...changed, ...more(format)]), { appended: 4, recognized: 8 });
}, Object.keys(blocks));

each("E1 row 9: arguments are printed anew", async ({ format, copied, session, reopen }) => {
  const history = exchanges(format, 2);
  await session.sync(history);
  const printed = (text) => JSON.stringify(JSON.parse(text), undefined, 1);
  const changed = copied(history).map((message) => {
    if (message.arguments) return { ...message, arguments: printed(message.arguments) };
    if (!message.tool_calls) return message;
    return { ...message, tool_calls: message.tool_calls.map((call) => ({ ...call, function: { ...call.function, arguments: printed(call.function.arguments) } })) };
  });
  assert.notDeepEqual(changed, history);
  const again = await reopen();
  assert.deepEqual(await again.sync([...changed, ...more(format)]), { appended: 4, recognized: 8 });
}, ["openai-chat", "openai-responses"]);

each("E1 row 10: a clock in the leading system message", async ({ format, copied, session, reopen }) => {
  const system = (time) => ({ role: "system", content: `You help. It is ${time}.` });
  const history = exchanges(format, 2);
  await session.sync([system("9:00"), ...history]);
  const again = await reopen();
  const given = [system("9:05"), ...copied(history), ...more(format)];
  assert.deepEqual(await again.sync(given), { appended: 4, recognized: 9 });
  assert.equal((await again.prepare()).messages[0], given[0], "the new one is sent");
}, ["openai-chat", "openai-responses", "ai-sdk"]);

each("E1 row 11: a window of the newest messages", async ({ format, copied, session, reopen }) => {
  const history = exchanges(format, 6);
  await session.sync(history);
  const again = await reopen();
  const whole = [...history, ...more(format)];
  assert.deepEqual(await again.sync(copied(whole.slice(-20))), { appended: 4, recognized: 16, alignedAt: 8 });
  assert.deepEqual(JSON.parse(JSON.stringify(await log(again))), JSON.parse(JSON.stringify(whole)), "the head stays in the log");
  // With nothing new.
  assert.deepEqual(await again.sync(copied(whole.slice(-8))), { appended: 0, recognized: 8, alignedAt: 20 });
});

each("E1 row 12: the last answer is taken away, and an earlier message is edited", async ({ format, copied, session, reopen }) => {
  const branches = [];
  const history = exchanges(format, 3);
  await session.sync(history);
  const again = await reopen();
  again.on("branch", (event) => branches.push(event));
  assert.deepEqual(await again.sync(copied(history.slice(0, -1))), { appended: 0, recognized: 11, branchedAt: 11 });
  assert.deepEqual(await sent(again), JSON.parse(JSON.stringify(history.slice(0, -1))));
  const edited = [...copied(history.slice(0, 8)), asked(format, "Something else")];
  assert.deepEqual(await again.sync(edited), { appended: 1, recognized: 8, branchedAt: 8 });
  assert.deepEqual(await sent(again), JSON.parse(JSON.stringify(edited)));
  assert.deepEqual(branches.map(({ index, given }) => [index, given]), [[11, 11], [8, 8]]);
  assert.match(branches[0].reason, /ends before/);
  assert.match(branches[1].reason, /differs|parts/);
  assert.equal((await again.context.explain()).length, 13, "both branches stay in the log");
  assert.deepEqual(await again.sync(copied(edited)), { appended: 0, recognized: 9 });
});

each("E1 row 13: texts that repeat", async ({ format, copied, session, reopen }) => {
  const ok = () => [asked(format, "ok"), { ...exchanges(format, 1)[3] }];
  const history = [...exchanges(format, 1), ...ok(), ...ok()];
  await session.sync(history);
  const again = await reopen();
  assert.deepEqual(await again.sync(copied([...ok(), ...ok(), asked(format, "new")])), { appended: 1, recognized: 4, alignedAt: 4 });
  // One message in common, and no ids.
  const { branchedAt } = await again.sync(copied([asked(format, "new"), exchanges(format, 1)[3], asked(format, "other")]));
  assert.equal(branchedAt, 0);
}, ["openai-chat", "anthropic", "ai-sdk"]);

each("E1 row 14: an empty history", async ({ format, session, reopen }) => {
  assert.deepEqual(await session.sync([]), { appended: 0, recognized: 0 });
  await session.sync(exchanges(format, 1));
  const again = await reopen();
  await assert.rejects(again.sync([]), fails("invalid_message", { message: /the history is empty; open a new session, or snapshots\.rewind\(0\)/ }));
  assert.equal((await log(again)).length, 4);
});

for (const onDiverged of ["branch", "throw"]) {
  each(`E1 row 15: another conversation (${onDiverged})`, async ({ format, copied, session, reopen }) => {
    await session.sync(exchanges(format, 2));
    const again = await reopen({ onDiverged });
    const other = copied(exchanges(format, 2, { from: 50 }));
    await assert.rejects(again.sync(other), fails("diverged", { message: /sessionFor\(threadId\)/ }));
    assert.equal((await log(again)).length, 8);
  });
}

each("E1 row 16: a difference inside an exchange", async ({ format, copied, session, reopen }) => {
  const history = exchanges(format, 2);
  await session.sync(history);
  const again = await reopen();
  const other = exchanges(format, 1, { from: 1, chars: 60 });
  const given = [...copied(history.slice(0, 6)), other[2], ...more(format)];
  assert.deepEqual(await again.sync(given), { appended: 6, recognized: 5, branchedAt: 5 });
  assert.deepEqual(await sent(again), JSON.parse(JSON.stringify(given)));
}, FORMATS.filter((format) => format !== "react"));

each("E2: onDiverged throw names the place and the reason, and appends nothing", async ({ format, copied, session, reopen }) => {
  const history = exchanges(format, 2);
  await session.sync(history);
  const again = await reopen({ onDiverged: "throw" });
  const edited = [...copied(history.slice(0, 4)), asked(format, "Something else"), ...copied(history.slice(5))];
  const error = await again.sync(edited).catch((error) => error);
  assert.ok(fails("diverged", { index: 4, message: /session\.snapshots\.rewind\(4\)/ })(error));
  assert.equal(error.reason, format === "react" ? error.reason : "part 0 text differs");
  assert.deepEqual(await sent(again), JSON.parse(JSON.stringify(history)));
  await again.snapshots.rewind(4);
  assert.deepEqual(await again.sync(edited), { appended: 4, recognized: 4 });
});

test("E1 a history that goes on is known without reading a body of the log", async () => {
  for (const format of FORMATS) {
    const base = memoryStore();
    const reads = [];
    const store = {
      ...base,
      read: async (keys) => {
        reads.push(...keys.filter(([table]) => table === "log"));
        return base.read(keys);
      },
      scan: (prefix, options) => {
        if (prefix[0] === "log") reads.push(prefix);
        return base.scan(prefix, options);
      },
    };
    const history = exchanges(format, 20, { chars: 1_000 });
    const first = await openSession(settings(format, { id: "s", store }));
    await first.sync(history);
    await first.compact();
    await first.close();
    const again = await openSession(settings(format, { id: "s", store }));
    reads.length = 0;
    assert.deepEqual(await again.sync(COPIES.jsonb(history)), { appended: 0, recognized: 80 });
    assert.deepEqual(await again.sync([...COPIES.jsonb(history), ...more(format)]), { appended: more(format).length, recognized: 80 });
    assert.deepEqual(reads, [], format);
    await again.close();
  }
});

test("E1 two handles that are handed one history store it once", async () => {
  const store = memoryStore();
  const open = () => openSession(settings("openai-chat", { id: "s", store }));
  const [one, two] = [await open(), await open()];
  const history = exchanges("openai-chat", 3);
  const results = await Promise.all([one.sync(history), two.sync(COPIES.jsonb(history))]);
  assert.equal(results.reduce((sum, { appended }) => sum + appended, 0), history.length);
  assert.equal((await log(one)).length, history.length);
  await Promise.all([one.close(), two.close()]);
});
