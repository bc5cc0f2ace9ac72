/** Transcripts through the package: history, archive, Markdown, and sessions from transcripts. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { addTurn, importSession, memoryStore, openSession, withDocumentedNames } from "../support/offload.mjs";
import { anthropicExchange, chat, exchange, fails, frozen, openStore, runtime, summariser } from "../support/api.mjs";
import { transcripts } from "../support/transcripts.mjs";

const all = async (iterable) => {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
};

const textOf = async (stream) => new TextDecoder().decode(Buffer.concat(await all(stream)));

/** What JSON has not, and texts that are hard to keep. */
const ODD = frozen([
  { role: "user", content: "한국어 👩‍👩‍👧 \u202eabc 中文\n## user (now)", at: new Date(1_700_000_000_000) },
  { role: "user", content: [{ type: "text", text: "x" }], data: new Uint8Array([0, 255, 10]), none: undefined, n: -0 },
  { role: "assistant", content: "half \ud800 and __proto__", extra: { $cc: "bytes", v: "AA==" }, url: new URL("a:b") },
]);

/** A session with a summary and offloads. */
async function worked(options = {}) {
  const store = options.store ?? memoryStore();
  const session = await openSession({
    id: "work",
    preset: "offload",
    contextWindow: 8_000,
    presetOptions: { offloadThreshold: 2_000 },
    summarize: summariser(),
    advanced: { runtime: runtime() },
    ...options,
    store,
  });
  const messages = [...ODD, ...Array.from({ length: 6 }, (_, nth) => exchange(nth, 4_000)).flat()];
  await session.append(...messages);
  await session.prepare();
  assert.equal((await session.compact()).success, true);
  const more = Array.from({ length: 6 }, (_, nth) => exchange(nth + 6, 3_000)).flat();
  await session.append(...more);
  await session.prepare();
  return { session, store, messages: [...messages, ...more] };
}

test("S5.3: the history is the very messages in order, after compaction too, and deeply equal after a restart", async () => {
  const { session, store, messages } = await worked();
  const history = await all(session.archive.history());
  assert.equal(history.length, messages.length);
  assert.ok(history.every((message, at) => message === messages[at]), "the same objects");
  const again = await openSession({ id: "work", store });
  const read = await all(again.archive.history());
  assert.deepEqual(read, messages);
  assert.ok(Object.is(read[1].n, -0) && "none" in read[1]);
});

test("S5.3: turns of a trajectory come back too, and a session without messages has none", async () => {
  const session = await openSession({ format: "react", store: "memory" });
  assert.deepEqual(await all(session.archive.history()), []);
  const turns = [1, 2].map((nth) => ({ thought: `t${nth}`, action: { tool: "ls", nth }, result: "a\nb" }));
  for (const turn of turns) await addTurn(session, turn);
  assert.deepEqual(await all(session.archive.history()), turns);
  const text = await textOf(session.archive.jsonl());
  const again = await importSession(text, { id: "b", store: "memory" });
  assert.deepEqual([again.context.format, await all(again.archive.history())], ["react", turns]);
});

test("S5.3: the history is read in pages: of a long log few rows are held at a time", async () => {
  const store = openStore();
  let largest = 0;
  const watched = {
    ...store,
    scan: async (prefix, options) => {
      const entries = await store.scan(prefix, options);
      largest = Math.max(
        largest,
        entries.reduce((sum, [, value]) => sum + value.length, 0),
      );
      return entries;
    },
  };
  const session = await openSession({ store: watched, contextWindow: 100_000_000 });
  const long = (nth) => ({ role: "user", content: `${nth} `.padEnd(500_000, "x") });
  for (let nth = 0; nth < 30; nth += 1) await session.append(long(nth));
  let count = 0;
  for await (const message of session.archive.history()) {
    assert.deepEqual(message, long(count++));
    // Other calls go on between two pages.
    if (count === 1) await session.append({ role: "user", content: "meanwhile" });
  }
  assert.equal(count, 30, "what was appended meanwhile is not part of it");
  assert.ok(largest <= 4 << 20, `${largest} bytes at once`);
});

test("S3.9: an archive restores the session exactly: messages, context, checkpoints, offloads", async () => {
  const { session, messages } = await worked();
  const text = await textOf(session.archive.jsonl());
  const lines = text.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.equal(lines[0].kind, "session");
  assert.deepEqual([lines[0].v, lines[0].id, lines[0].totalMessages], [201, "work", messages.length]);
  const said = lines.filter(({ kind }) => kind === "message");
  assert.deepEqual(said.map(({ index }) => index), messages.map((_, index) => index));
  assert.deepEqual(said.map(({ role }) => role), messages.map(({ role }) => role));
  assert.deepEqual(
    lines.filter(({ kind }) => kind === "checkpoint").map(({ v, kind, ...record }) => record),
    await session.archive.checkpoints(),
  );
  let report;
  const store = memoryStore();
  const again = await importSession(text, { store, onImport: (found) => (report = found) });
  assert.deepEqual([again.id, again.context.format], ["work", "openai-chat"]);
  assert.deepEqual(report, { kind: "context-compactor", lines: lines.length, messages: messages.length, skipped: {} });
  assert.deepEqual(await all(again.archive.history()), messages);
  assert.deepEqual([(await again.context.explain()), again.context.checkpoints(), again.archive.metadata()], [(await session.context.explain()), session.context.checkpoints(), session.archive.metadata()]);
  const refs = (await session.context.explain()).flatMap(({ ref }) => ref ?? []);
  assert.ok(refs.length > 0);
  for (const ref of refs) assert.equal(await again.recall.read(ref), await session.recall.read(ref));
  assert.deepEqual((await again.prepare()).messages, (await session.prepare()).messages);
  assert.equal((await textOf(again.archive.jsonl())).split("\n").slice(1).join("\n"), text.split("\n").slice(1).join("\n"));
  await again.append(...chat(1));
  const reopened = await openSession({ id: "work", store });
  assert.equal((await all(reopened.archive.history())).length, messages.length + 2);
});

test("S3.9: a session is restored from the transcript or from the summary", async () => {
  const { session, messages } = await worked();
  const text = await textOf(session.archive.jsonl());
  const options = { preset: "offload", contextWindow: 1_000_000 };
  const whole = await importSession(text, { ...options, from: "transcript", store: "memory" });
  assert.ok((await whole.context.explain()).every(({ fate }) => fate === "verbatim"));
  assert.equal((await whole.context.explain()).length, messages.length);
  const summed = await importSession(text, { ...options, from: "context", store: "memory" });
  assert.ok((await summed.context.explain()).some(({ fate }) => fate === "summarized"));
});

test("S3.9: export is pulled, one page at a time, and can be stopped; import takes a stream cut anywhere", async () => {
  const store = openStore();
  const session = await openSession({ store, contextWindow: 100_000_000 });
  for (let nth = 0; nth < 12; nth += 1) await session.append({ role: "user", content: `${nth} `.padEnd(1_000_000, "é") });
  let pages = 0;
  const counted = await openSession({
    id: session.id,
    store: { ...store, scan: (...given) => ((pages += 1), store.scan(...given)) },
  });
  const stream = counted.archive.jsonl();
  pages = 0;
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(pages, 0, "nothing is read before it is asked for");
  const reader = stream.getReader();
  const first = await reader.read();
  assert.ok(first.value.length < 8 << 20 && pages <= 3, `${first.value.length} bytes, ${pages} reads`);
  await reader.cancel();
  const bytes = Buffer.concat(await all(session.archive.jsonl()));
  const pieces = [1, 7, 65_537, 1_000_003];
  let at = 0;
  let turn = 0;
  const cut = new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      const size = at < 4_000 ? pieces[turn++ % 2] : pieces[2 + (turn++ % 2)];
      controller.enqueue(new Uint8Array(bytes.subarray(at, (at += size))));
    },
  });
  const again = await importSession(cut, { store: "memory" });
  assert.deepEqual(await all(again.archive.history()), await all(session.archive.history()));
});

test("S3.9: what cannot be imported is a typed error that names its line, and leaves nothing", async () => {
  const { session } = await worked();
  const text = await textOf(session.archive.jsonl());
  const lines = text.split("\n");
  for (const [wrong, code, field] of [
    [text.replace('"v":201', '"v":300'), "schema_too_new", "line 1"],
    [text.slice(0, -30), "invalid_message", `line ${lines.length - 1}`],
    [`${lines[0]}\n{"role":"user","content":"x"}`, "invalid_message", "line 2"],
    ['{"hello":"user","content":"x"}', "unknown_format", "line 1"],
    [[...lines.slice(0, 2), ...lines.slice(3)].join("\n"), "invalid_message", "line 3"],
  ]) {
    const store = openStore();
    await assert.rejects(importSession(wrong, { store }), fails(code, { field }));
    const session = await openSession({ id: "work", store });
    assert.deepEqual(await all(session.archive.history()), []);
  }
  await assert.rejects(importSession("", { store: "memory" }), fails("unknown_format"));
  const store = memoryStore();
  await importSession(text, { store });
  await assert.rejects(importSession(text, { store }), fails("invalid_option", { field: "id" }));
  for (const [given, options, field] of [
    [4, {}, "jsonl"],
    [undefined, {}, "jsonl"],
    [new ReadableStream({ start: (controller) => controller.enqueue("text") }), {}, "jsonl"],
    [text, { from: "summary" }, "from"],
    [text, { onImport: 4 }, "onImport"],
    [text, { form: "transcript" }, "form"],
  ]) {
    await assert.rejects(importSession(given, { store: "memory", ...options }), fails("invalid_option", { field }));
  }
  const stopped = new AbortController();
  const endless = new ReadableStream({
    pull: (controller) => (controller.enqueue(new TextEncoder().encode("\n")), stopped.abort()),
    cancel: () => stopped.cancelled = true,
  });
  await assert.rejects(importSession(endless, { store: "memory", signal: stopped.signal }), fails("aborted"));
  assert.equal(stopped.cancelled, true, "the stream is let go");
});

test("S5.3: Markdown to the letter", async () => {
  const session = await openSession({ id: "s 1", store: "memory", advanced: { runtime: { now: () => 1_700_000_000_123, id: runtime().id } } });
  await session.append({ role: "user", content: "Hi\n# not a heading" }, ...exchange(1, 10).slice(1, 3));
  const time = "2023-11-14T22:13:20.123Z";
  assert.equal(
    await withDocumentedNames(session).exportMarkdown(),
    `# Session s 1\n\n**Started:** ${time}\n**Messages:** 3\n**Compressions:** 0\n\n` +
      `## user (${time})\n\nHi\n\\# not a heading\n\n` +
      `## assistant (${time})\n\n**Tool call:**\n\n  \`\`\`\n  read {"path":"file1"}\n  \`\`\`\n\n` +
      `## tool (${time})\n\n**Tool result:**\n\n  \`\`\`\n  1 1 1 1 1 \n  \`\`\`\n\n`,
  );
  const { session: long } = await worked();
  const markdown = await long.archive.markdown();
  const { totalMessages, compressionCount } = long.archive.metadata();
  assert.equal(markdown.match(/^## \w+ \(.*Z\)$/gm).length, totalMessages);
  assert.ok(markdown.includes(`**Compressions:** ${compressionCount}\n`) && compressionCount > 0);
});

test("S5.3: metadata and checkpoint records, which a closed session does not tell", async () => {
  const { session, messages } = await worked();
  const { startTime, lastUpdate, totalMessages, totalTokens, compressionCount } = session.archive.metadata();
  assert.ok(startTime < lastUpdate && totalTokens > 5_000);
  assert.deepEqual([totalMessages, compressionCount], [messages.length, 2]);
  const records = await session.archive.checkpoints();
  assert.deepEqual([records.length, records.at(-1)], [2, session.context.checkpoints()[0]]);
  for (const { messageRange, compressionRatio, compressedTokens, originalTokens } of records) {
    assert.ok(messageRange[0] === 0 && messageRange[1] < messages.length);
    assert.equal(compressionRatio, compressedTokens / originalTokens);
  }
  const stream = session.archive.jsonl();
  const history = session.archive.history();
  await session.close();
  await assert.rejects(all(stream), fails("closed"));
  await assert.rejects(all(history), fails("closed"));
  await assert.rejects(session.archive.markdown(), fails("closed"));
  assert.throws(() => session.archive.metadata(), fails("closed"));
});

/** A history as Claude Code keeps it: a line for each block. */
function asClaudeCode(messages) {
  const lines = messages.flatMap((message, nth) =>
    message.role === "assistant" && Array.isArray(message.content)
      ? message.content.map((block) => ({ type: "assistant", message: { id: `m${nth}`, role: "assistant", content: [block] } }))
      : [{ type: message.role, message }],
  );
  return lines.map((line, at) =>
    JSON.stringify({ parentUuid: at === 0 ? null : `u${at - 1}`, uuid: `u${at}`, sessionId: "s", timestamp: "2026-01-02T03:04:05Z", ...line }),
  );
}

test("S3.9: transcripts of Claude Code and Codex become sessions, with what was left out counted", async () => {
  const messages = [...anthropicExchange(1), ...anthropicExchange(2)];
  const lines = asClaudeCode(messages);
  lines.splice(3, 0, '{"type":"progress","uuid":"p","sessionId":"s"}');
  const reports = [];
  const session = await importSession(lines.join("\n"), { store: "memory", onImport: (report) => reports.push(report) });
  assert.deepEqual([session.context.format, await all(session.archive.history())], ["anthropic", messages]);
  const items = [
    { type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] },
    { type: "function_call", name: "ls", arguments: "{}", call_id: "c" },
    { type: "function_call_output", call_id: "c", output: "a" },
  ];
  const codex = [{ type: "session_meta", payload: {} }, ...items.map((payload) => ({ type: "response_item", payload }))];
  const other = await importSession(codex.map((line) => JSON.stringify(line)).join("\n"), {
    store: "memory",
    onImport: (report) => reports.push(report),
  });
  assert.deepEqual([other.context.format, await all(other.archive.history())], ["openai-responses", items]);
  assert.deepEqual(reports, [
    { kind: "claude-code", lines: lines.length, messages: messages.length, skipped: { progress: 1 } },
    { kind: "codex", lines: 4, messages: 3, skipped: { session_meta: 1 } },
  ]);
});

for (const [name, kind] of [
  ["core/anthropic/claude_code", "claude-code"],
  ["core/responses/codex", "codex"],
]) {
  const records = transcripts(name);
  test(`S3.9: recorded transcripts of ${kind} come back as they were, through an archive too`, { skip: !records && "no data (CC_DATA)" }, async () => {
    const longest = [...records].sort((a, b) => b.messages.length - a.messages.length).slice(0, 4);
    for (const { messages } of longest) {
      const lines =
        kind === "codex"
          ? messages.map((payload) => JSON.stringify({ type: "response_item", payload }))
          : asClaudeCode(messages);
      const options = { contextWindow: 200_000, summarize: summariser("The work went on as asked. ".repeat(20)) };
      const session = await importSession(lines.join("\n"), { ...options, id: "r", store: memoryStore() });
      assert.deepEqual(await all(session.archive.history()), messages);
      await session.prepare();
      await session.compact();
      const again = await importSession(session.archive.jsonl(), { ...options, store: memoryStore() });
      assert.deepEqual(await all(again.archive.history()), messages);
      assert.deepEqual([(await again.context.explain()), again.context.checkpoints()], [(await session.context.explain()), session.context.checkpoints()]);
    }
  });
}

test("F33: JSON lines that are nothing but messages are a session", async () => {
  const messages = [{ role: "user", content: "Hi.", at: 5 }, ...exchange(1, 10)];
  const reports = [];
  const text = messages.map((message) => JSON.stringify(message)).join("\n");
  const session = await importSession(text, { store: "memory", onImport: (report) => reports.push(report) });
  assert.deepEqual((await session.prepare()).messages, messages);
  assert.equal(session.context.format, "openai-chat");
  assert.deepEqual(reports, [{ kind: "messages", lines: messages.length, messages: messages.length, skipped: {} }]);
  assert.equal((await session.prepare()).stillExceedsThreshold, false);
  await session.close();
});
