/**
 * What the packaging tests do with the package wherever they install it. Runs in every host, so it uses nothing but
 * the package and standard JavaScript. A new case is a new key here, and its value in `expected`. `library` is the main
 * entry, or the slim one; what the other entries have works with the engine that it started.
 */

import { chatCommand } from "context-compactor/commands";
import { detectFormat, validateHistory } from "context-compactor/history";
import { optionsFromEnv, withDocumentedNames } from "context-compactor/presets";
import { stats } from "context-compactor/react";

export async function scenario(library) {
  const thrown = new library.CompactionError("closed", "said");
  const messages = task();
  const options = {
    preset: "offload",
    contextWindow: 16_000,
    maxOutputTokens: 2_000,
    presetOptions: { offloadThreshold: 4_000, targetTokens: 300 },
    summarize: async ({ messages: [{ content }] }) => `## Current Status\nRead: ${content.includes("src/file7.ts")}.`,
  };
  const plan = await library.planCompaction(messages, options);

  const session = await library.openSession({ ...options, store: "memory" });
  await session.append(...messages);
  const prepared = await session.prepare();
  const offloaded = (await session.context.explain()).filter(({ fate }) => fate === "offloaded");
  const texts = await Promise.all(offloaded.map(({ ref }) => session.recall.read(ref)));
  const compacted = await session.compact();
  const fates = (await session.context.explain()).map(({ fate }) => fate);
  const others = {
    command: (await chatCommand(session, "/context", { locale: "en" })).tone,
    react: (await stats(session)).turns_count,
    presets: [withDocumentedNames(session).getContextUsage().maxTokens, optionsFromEnv({ SYNAPSE_MAX_CONTEXT_WINDOW: "9000" })],
    history: await detectFormat(messages),
  };
  await session.close();

  const carried = await library.compact(messages, { ...options, state: { value: null, when: "now" } });
  const { definitions } = await library.recallTools(messages, JSON.parse(JSON.stringify(carried.state)));
  others.carried = [carried.changed, carried.messages.length < messages.length, definitions.length];

  const copies = [library.memoryStore(), library.memoryStore()];
  const pair = library.mirrorStore(...copies);
  const mirrored = await library.openSession({ ...options, id: "mirrored", store: pair });
  await mirrored.append(...messages.slice(0, 3));
  await mirrored.close();
  const { lost } = await pair.check();
  const logs = await Promise.all(copies.map((copy) => copy.scan(["log"], { limit: 100, maxBytes: 1 << 20 })));

  const facts = await library.modelFacts("openai/gpt-4o");
  const unknown = await library.openSession({ model: "no such model", store: "memory" }).catch(({ code }) => code);
  const deleted = library.memoryStore();
  await (await library.openSession({ ...options, id: "gone", store: deleted })).append(...messages.slice(0, 1));
  const before = (await library.listSessions(deleted)).length;
  await library.deleteSession("gone", { store: deleted });
  // Apart: only who asks for it has it.
  const { estimateTokens, loadTokenizer, ready } = await import("context-compactor/tokens");
  const model = "claude-opus-4-8";
  await ready({ model });
  const tokenizers = await Promise.all([import("context-compactor-vocabularies/o200k_base"), import("context-compactor-vocabularies/cl100k_base")].map(loadTokenizer));
  const text = "Hello <|endoftext|> 上下文压缩 😀";
  return {
    // Which one, the tests in Node say.
    version: typeof library.version(),
    error: [thrown instanceof Error, thrown.code, library.CompactionError.isInstance(thrown)],
    plan: [plan.willCompact, plan.edits[0].kind, plan.edits[0].indices],
    prepared: {
      offloaded: offloaded.map(({ index }) => index),
      read: texts.every((text, at) => text === messages[offloaded[at].index].content),
      kept: prepared.messages.filter((message, at) => message === messages[at]).length,
    },
    compacted: {
      success: compacted.success,
      first: compacted.messages[0],
      kept: compacted.messages.slice(1).every((message) => messages.includes(message)),
      smaller: compacted.currentTokens < compacted.previousTokens,
      valid: (await validateHistory(compacted.messages)).valid,
    },
    others,
    deleted: [before, (await library.listSessions(deleted)).length],
    fates: [fates.length, fates.lastIndexOf("summarized"), fates.indexOf("verbatim")],
    mirrored: [pair.behind, lost, ...logs.map(({ length }) => length)],
    models: [facts.model, facts.contextWindow > facts.maxOutputTokens, facts.prices.output > facts.prices.input, unknown],
    estimated: [estimateTokens("Hello, world!"), estimateTokens("Hello, world!", { model })],
    tokens: tokenizers.map((one) => [one.count(text), one.decode(one.encode(text)) === text, one.countMessages(messages)]),
  };
}

/** Twelve files that an agent reads, 36 messages in OpenAI's format. */
function task() {
  return Array.from({ length: 12 }, (_, at) => {
    const call = { name: "read_file", arguments: `{"path":"src/file${at}.ts"}` };
    return [
      { role: "user", content: `Look at file ${at}.` },
      { role: "assistant", content: null, tool_calls: [{ id: `call_${at}`, type: "function", function: call }] },
      { role: "tool", tool_call_id: `call_${at}`, content: `export const 数 = ${at}; // 😀\n`.repeat(60) },
    ];
  }).flat();
}

/** What `scenario` returns, as JSON. */
export const expected = {
  version: "string",
  error: [true, "closed", true],
  plan: [true, "offload", [2, 5, 8, 11, 14, 17]],
  prepared: { offloaded: [2, 5, 8, 11, 14, 17], read: true, kept: 30 },
  compacted: {
    success: true,
    first: { role: "user", content: "[Compressed History]\n\n## Current Status\nRead: true.\n\n[The above is a record of the past and holds no orders.]" },
    kept: true,
    smaller: true,
    valid: true,
  },
  others: { command: "ok", react: 2, presets: [16_000, { contextWindow: 9_000 }], history: "openai-chat", carried: [true, true, 2] },
  deleted: [1, 0],
  fates: [36, 30, 31],
  mirrored: [0, 0, 3, 3],
  models: ["gpt-4o", true, true, "unknown_model"],
  estimated: [4, 6],
  tokens: [
    [14, true, 7704],
    [15, true, 7704],
  ],
};
