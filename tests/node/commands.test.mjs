/** The commands of chats (`S1.13`), on real sessions. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { chatCommand, COMMANDS, CompactionError, isChatCommand, openSession } from "../support/offload.mjs";
import { chat, deferred, exchange, fails, settled, summariser } from "../support/api.mjs";

const open = (options) => openSession({ store: "memory", ...options });
const US = { locale: "en-US" };

/** A session with `turns` questions and answers. */
async function talked(turns, options) {
  const session = await open({ summarize: summariser(), ...options });
  await session.append(...chat(turns));
  return session;
}

test("S1.13: a command is what the table has, and anything else is not answered", async () => {
  const session = await open();
  for (const text of ["", "please /compact this", "  hello", "/compacted", "/", "/COMPACT", "/context2"]) {
    assert.equal(isChatCommand(text), false, text);
    assert.equal(await chatCommand(session, text), undefined, text);
  }
  for (const { name } of COMMANDS) assert.ok(isChatCommand(` ${name} `), name);
});

test("F25: a message that begins with a slash, and is no command, is the model's", async () => {
  const session = await open();
  const texts = [
    "/etc/hosts has a wrong line, please fix it",
    "// TODO: explain",
    "/* what does this comment say? */",
    "/usr/bin/env: no such file",
    "/ is full",
    "/r/rust has a thread on it",
    "/goals are unclear",
    "/helpful answers only",
    "/compact/me is a path",
    "/context-menu is broken",
    "/api/v1/users answers 500",
    "/^a+$/ does not match",
    "/dev/null swallows it",
    "/pinned messages?",
    "/searching takes long",
    "/snapshots are where?",
    "/RESTORE is a folder",
    "/src/index.ts fails",
    "/me waves",
    "/home",
  ];
  assert.equal(texts.length, 20);
  for (const text of texts) {
    assert.equal(isChatCommand(text), false, text);
    assert.equal(await chatCommand(session, text), undefined, text);
  }
});

test("F25: every command of the table runs", async () => {
  const session = await talked(20);
  await session.append({ role: "user", content: "Never push to main." }, { role: "assistant", content: "Understood." });
  const say = async (text, tone = "ok") => {
    const answer = await chatCommand(session, text, US);
    assert.equal(answer.tone, tone, `${text}: ${answer.text}`);
    return answer.text;
  };
  const ran = new Set();
  const runs = {
    "/help": async () => assert.equal((await say("/help")).split("\n").length, COMMANDS.length),
    "/goal": async () => {
      assert.match(await say("/goal", "idle"), /no goal/);
      assert.equal(await say("/goal Ship the parser"), "Goal: Ship the parser");
      assert.equal(await say("/goal"), "Ship the parser");
      assert.equal(session.goal.current.description, "Ship the parser");
    },
    "/pin": async () => {
      assert.match(await say("/pin"), /^40 {2}Never push to main\.$/);
      assert.match(await say("/pin 40"), /Message 40 stays/);
      assert.match(await say("/pin", "idle"), /No message/);
      assert.match(await say("/pin this", "error"), /\/pin 4/);
      assert.match(await say("/pin 4000", "error"), /4000|there/);
    },
    "/search": async () => {
      assert.match(await say("/search parser borrow E0502"), /E0502/);
      assert.match(await say("/search zzzzqqqq", "idle"), /Nothing/);
      assert.match(await say("/search", "error"), /words/);
    },
    "/snapshot": async () => assert.match(await say("/snapshot"), /^Snapshot /),
    "/restore": async () => {
      const [id] = (await say("/restore")).split(" ");
      await session.append({ role: "user", content: "One more." });
      assert.match(await say(`/restore ${id}`), /Back at/);
      assert.equal((await session.prepare()).messages.length, 42);
      assert.match(await say("/restore nowhere", "error"), /nowhere|snapshot/);
    },
    "/context": async () => assert.match(await say("/context"), /tokens/),
    "/compact": async () => assert.match(await say("/compact keep names"), /Freed/),
  };
  for (const [name, run] of Object.entries(runs)) {
    await run();
    ran.add(name);
  }
  assert.deepEqual([...ran].sort(), COMMANDS.map(({ name }) => name).sort());
});

test("F25: what a command does not take is refused, and what a chat cannot do is not offered", async () => {
  const session = await talked(1);
  for (const name of ["/context", "/help", "/snapshot"]) {
    const { tone, text } = await chatCommand(session, `${name} snapshot`);
    assert.deepEqual([tone, text], ["error", `${name} takes nothing behind it.`]);
  }
  const few = { compact: session.compact, context: session.context };
  assert.deepEqual((await chatCommand(few, "/help")).text.match(/^\/\w+/gm), ["/compact", "/context", "/help"]);
  assert.match((await chatCommand(few, "/goal x")).text, /no session\.goal/);
});

test("F34: chatCommand without a session, or without a text, is a typed error", async () => {
  await assert.rejects(chatCommand("/context"), fails("invalid_option", { field: "session", message: /chatCommand\(session, text\)/ }));
  await assert.rejects(chatCommand(await open(), { text: "/context" }), fails("invalid_option", { field: "text" }));
});

test("S1.13: the help text of /compact is the document's", async () => {
  assert.equal(COMMANDS.find(({ name }) => name === "/compact").help, "Compress conversation history");
  const { tone, text } = await chatCommand(await open(), "/help");
  assert.equal(tone, "ok");
  assert.deepEqual(
    text.split("\n").map((line) => line.split(/\s{2,}/)),
    COMMANDS.map(({ name, argument, help }) => [`${name} ${argument}`.trim(), help]),
  );
});

test("S1.13: success prints before and after, the freed tokens and the deleted offloads, as the locale writes numbers", async () => {
  for (const [locale, separator] of [["en-US", ","], ["de-DE", "."], ["fr-FR", "\u202f"]]) {
    const session = await open({ summarize: summariser(), compactAt: { tokens: 10_000 }, advanced: { minOffloadGain: 1 } });
    await session.append(...Array.from({ length: 20 }, (_, nth) => exchange(nth, 8_000)).flat());
    const { edits } = await session.prepare();
    const deleted = edits.find(({ kind }) => kind === "offload").offload.offloadedCount;
    const tokens = () => session.context.usage().usedTokens;
    const before = tokens();
    const { tone, text } = await chatCommand(session, "/compact", { locale });
    const number = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, separator);
    assert.ok(before > 10_000 && deleted > 1, `${before} tokens, ${deleted} offloads`);
    assert.equal(tone, "ok");
    assert.deepEqual(text.split("\n"), [
      `${number(before)} → ${number(tokens())} tokens`,
      `Freed ${number(before - tokens())} tokens, deleted ${deleted} offloads.`,
    ]);
  }
});

test("S1.13: one deleted offload is one offload", async () => {
  const session = await open({ summarize: summariser(), compactAt: { tokens: 100 }, advanced: { minOffloadGain: 1 } });
  await session.append(...exchange(1, 4_000), ...chat(10));
  await session.prepare();
  assert.match((await chatCommand(session, "/compact", US)).text, / deleted 1 offload\.$/);
});

test("S1.13: /compact skips threshold, cooldown and minimum gain", async () => {
  const cases = {
    threshold: {},
    cooldown: { compactAt: { tokens: 1_000 }, advanced: { cooldownSteps: 1_000 } },
    "minimum gain": { preset: "layered", compactAt: { tokens: 1_000 }, presetOptions: { minSavings: 1_000_000 } },
  };
  for (const [name, options] of Object.entries(cases)) {
    const summarize = summariser();
    const session = await talked(20, { ...options, summarize });
    await session.prepare();
    // The first attempt is never delayed (S1.4); it is the next that waits.
    const first = name === "cooldown" ? 1 : 0;
    assert.equal(summarize.calls.length, first, name);
    await session.append(...chat(20, 20));
    await session.prepare();
    assert.equal(summarize.calls.length, first, name);
    const { tone, text } = await chatCommand(session, "/compact", US);
    assert.deepEqual([tone, summarize.calls.length], ["ok", first + 1], name);
    assert.match(text, / → /);
  }
});

test("S1.13: nothing to do says so, without asking a model: the last messages stay", async () => {
  const summarize = summariser();
  const session = await talked(2, { summarize });
  const { tone, text } = await chatCommand(session, "/compact", US);
  assert.equal(tone, "idle");
  assert.match(text, /^Nothing to compress: 4 messages stay[^\n]*\n\d+ tokens in context\.$/);
  assert.equal(summarize.calls.length, 0);
  // Preset `checkpoint` says it in its own words (S5.5).
  const other = await chatCommand(await talked(2, { preset: "checkpoint" }), "/compact", US);
  assert.deepEqual([other.tone, other.text.split("\n")[0]], ["idle", "No messages to compress"]);
});

test("S1.13: failure says that the history is unchanged, and it is", async () => {
  const summarize = async () => { throw new Error("the model is gone"); };
  const session = await talked(20, { summarize: { call: summarize, attempts: 1 } });
  const before = (await session.prepare()).messages;
  const { tone, text } = await chatCommand(session, "/compact", US);
  assert.equal(tone, "error");
  assert.match(text, /^Compaction failed: [^\n]*the model is gone[^\n]*\nThe history is unchanged\.$/);
  assert.deepEqual((await session.prepare()).messages, before);
  await session.close();
  assert.match((await chatCommand(session, "/compact")).text, /^Compaction failed: .*closed.*\nThe history is unchanged\.$/);
  assert.match((await chatCommand(session, "/context")).text, /closed/);
});

test("S1.13: a compaction that is stopped says so", async () => {
  const controller = new AbortController();
  const summarize = () => {
    controller.abort();
    return new Promise(() => {});
  };
  const session = await talked(20, { summarize });
  const before = (await session.prepare()).messages;
  const answer = await chatCommand(session, "/compact", { signal: controller.signal });
  assert.deepEqual(answer, { tone: "error", text: "Stopped.\nThe history is unchanged." });
  assert.deepEqual((await session.prepare()).messages, before);
});

test("S1.13: where nobody knows whether it was written, no promise is made", async () => {
  const compact = () => Promise.reject(new CompactionError("indeterminate", "the disk did not answer"));
  const { text } = await chatCommand({ compact }, "/compact");
  assert.equal(text, "Compaction failed: the disk did not answer\nOpen the session again to see what it holds.");
});

test("S1.13: the command ends when the compaction has ended, and not before", async () => {
  const { promise, resolve } = deferred();
  const session = await talked(20, { summarize: () => promise });
  let ended = false;
  const command = chatCommand(session, "/compact", US).then((answer) => {
    ended = true;
    return answer;
  });
  await settled();
  assert.equal(ended, false);
  resolve(await summariser()());
  assert.equal((await command).tone, "ok");
  assert.match((await session.context.explain())[0].fate, /summarized/);
});

test("S3.7: /compact with instructions brings them to the prompt, over several lines", async () => {
  const summarize = summariser();
  const session = await talked(20, { summarize });
  await chatCommand(session, "  /compact keep the SQL,\nand 所有文件名  ");
  assert.match(summarize.calls[0].request.system + summarize.calls[0].request.messages[0].content, /keep the SQL,\nand 所有文件名/);
});

test("S1.13: /context prints tokens, percent, a bar, the threshold and the counts", async () => {
  const options = { contextWindow: 32_000, maxOutputTokens: 1_000, compactAt: { tokens: 24_000 }, tokenCounter: () => 1_000 };
  const session = await open(options);
  await session.append(...exchange(1), ...chat(6));
  assert.deepEqual(await chatCommand(session, "/context", US), {
    tone: "ok",
    text: [
      "16,000 / 32,000 tokens (50%)",
      `${"█".repeat(16)}${"░".repeat(8)}┃${"░".repeat(8)}`,
      "Compaction at 24,000 tokens",
      "16 messages · 1 tool calls · 0 offloads",
    ].join("\n"),
  });
  assert.match((await chatCommand(session, "/context", { locale: "de-DE" })).text, /^16\.000 \/ 32\.000 tokens \(50\s%\)\n/);
  assert.match((await chatCommand(await open(), "/context", US)).text, /^0 \/ 200,000 tokens \(0%\)\n░{24}┃░{8}\n/);
});

test("S1.13: /context counts the offloads that the context references, as the locale writes numbers", async () => {
  const session = await open({ contextWindow: 32_000, compactAt: { tokens: 1_000 }, advanced: { offload: { scanFraction: 1 } }, keep: { messages: 1_000 } });
  await session.append(...Array.from({ length: 3 }, (_, nth) => exchange(nth, 4_000)).flat());
  await session.prepare();
  assert.match((await chatCommand(session, "/context", US)).text, /^12 messages · 3 tool calls · 3 offloads$/m);
  const usage = { usedTokens: 9_000, maxTokens: 30_000, threshold: 20_000, messageCount: 1_001, toolCallCount: 2_002, offloadCount: 3_003 };
  const { text } = await chatCommand({ context: { usage: () => usage } }, "/context", { locale: "de-DE" });
  assert.deepEqual(text.split("\n").slice(2), ["Compaction at 20.000 tokens", "1.001 messages · 2.002 tool calls · 3.003 offloads"]);
});

test("S1.13: the bar never leaves its frame", async () => {
  const usage = { usedTokens: 90, maxTokens: 30, threshold: 60, messageCount: 1, toolCallCount: 0, offloadCount: 0 };
  const { text } = await chatCommand({ context: { usage: () => usage } }, "/context", US);
  assert.equal(text.split("\n")[1], `${"█".repeat(32)}┃`);
});

test("options of a command are checked", async () => {
  await assert.rejects(chatCommand(await open(), "/help", { lang: "de" }), fails("invalid_option", { field: "lang" }));
});
