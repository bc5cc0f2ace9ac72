/**
 * `summarize: "server"` in the real clients of Anthropic and OpenAI (X10). The provider is a local server that answers by shapes
 * recorded from the published documentation.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { memoryStore, openSession } from "context-compactor";
import { contextCompactor } from "context-compactor/ai-sdk";
import { compactingFetch } from "context-compactor/fetch";
import { compactingProvider } from "../support/compacting-provider.mjs";
import { fails } from "../support/api.mjs";

const OPTIONS = { contextWindow: 200_000, compactAt: { tokens: 60_000 } };
const WORDS = "abcdefg ".repeat(4_000).trim();
const question = (nth) => ({ role: "user", content: `Part ${nth}, please. ${WORDS}` });

/** Of each provider: a call of its client, the messages of the answer, and what the newest item of an answer is. */
const PROVIDERS = {
  anthropic: {
    client: (url, fetch) => new Anthropic({ apiKey: "k", baseURL: url, maxRetries: 0, ...(fetch ? { fetch } : {}) }),
    ask: (client, messages, request = {}) => client.beta.messages.create({ model: "claude-sonnet-4-6", max_tokens: 1_000, messages, ...request }),
    said: ({ content }) => [{ role: "assistant", content }],
    sent: ({ body }) => body.messages,
    begins: (messages) => messages[0].content[0].type === "compaction",
    holds: (messages) => messages.some(({ content }) => Array.isArray(content) && content.some(({ type }) => type === "compaction")),
  },
  "openai-responses": {
    client: (url, fetch) => new OpenAI({ apiKey: "k", baseURL: `${url}/v1`, maxRetries: 0, ...(fetch ? { fetch } : {}) }),
    ask: (client, input, request = {}) => client.responses.create({ model: "gpt-5.4", input, store: false, ...request }),
    said: ({ output }) => output,
    sent: ({ body }) => body.input,
    begins: (items) => items[0].type === "compaction",
    holds: (items) => items.some(({ type }) => type === "compaction"),
  },
};

const plain = (value) => JSON.parse(JSON.stringify(value));

async function originals(session) {
  const found = [];
  for await (const message of session.archive.history()) found.push(message);
  return plain(found);
}

for (const [format, provider] of Object.entries(PROVIDERS)) {
  /** So many turns of a conversation, each with a question of 8,000 tokens; returns what was said. */
  async function talk(session, client, count, said = []) {
    for (let nth = 0; nth < count; nth++) {
      const asked = question(said.length);
      await session.append(asked);
      const prompt = await session.prepare();
      const answer = await provider.ask(client, prompt.messages, prompt.request);
      session.context.recordUsage(answer.usage);
      const messages = provider.said(answer);
      await session.append(...messages);
      said.push(asked, ...messages);
    }
    return said;
  }

  test(`X10: ${format}: a session moves between the provider's compaction and its own, and back`, async (context) => {
    const server = await compactingProvider(context);
    const client = provider.client(server.url);
    const store = memoryStore();
    const open = (summarize) => openSession({ ...OPTIONS, format, id: "s", store, summarize });

    const first = await open("server");
    const told = [];
    first.on("compact", (event) => told.push(event));
    const said = await talk(first, client, 14);
    assert.ok(told.length >= 1 && told[0].freedTokens > 50_000, JSON.stringify(told));
    assert.ok(server.requests.some((request) => provider.begins(provider.sent(request))));
    assert.equal(first.context.checkpoints().length, 1);
    const ledger = await first.context.explain();
    assert.deepEqual([ledger[0].fate, ledger.at(-1).fate], ["summarized", "verbatim"]);
    assert.match(ledger[0].reason, /its provider compacted it, in message \d+/);
    assert.deepEqual(await originals(first), plain(said));
    await first.close();

    const second = await open("extractive");
    const from = server.requests.length;
    await talk(second, client, 6, said);
    for (const request of server.requests.slice(from)) assert.ok(!provider.holds(provider.sent(request)));
    assert.deepEqual(await originals(second), plain(said));
    await second.close();

    const third = await open("server");
    const again = server.requests.length;
    await talk(third, client, 10, said);
    assert.ok(server.requests.slice(again).some((request) => provider.begins(provider.sent(request))));
    assert.deepEqual(await originals(third), plain(said));
    const [{ id }] = third.context.checkpoints();
    assert.ok((await third.recall.expand(id)).length > 1);
    await third.close();
  });

  test(`X10: ${format}: the built-in page stands by where the provider does not compact`, async (context) => {
    const server = await compactingProvider(context, { refuses: () => true });
    const client = provider.client(server.url);
    const session = await openSession({ ...OPTIONS, format, store: "memory", summarize: "server" });
    const fallen = [];
    session.on("warning", ({ message }) => fallen.push(message));
    const said = await talk(session, client, 25);
    assert.ok(fallen.some((message) => message.includes("the provider had not compacted the conversation")), String(fallen));
    assert.ok(session.context.usage().usedTokens < 190_000);
    assert.deepEqual(await originals(session), plain(said));
    await session.close();
  });

  test(`X10: ${format}: compactingFetch adds the fields, beside those of the app`, async (context) => {
    const server = await compactingProvider(context);
    const warnings = [];
    const fetch = compactingFetch({ ...OPTIONS, summarize: "server", thread: "t", logger: (level, message) => level === "warn" && warnings.push(message) });
    context.after(() => fetch.close());
    const client = provider.client(server.url, fetch);
    const history = [];
    const own = format === "anthropic" ? { betas: ["context-management-2025-06-27"], context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } } : {};
    for (let nth = 0; nth < 12; nth++) {
      history.push(question(nth));
      history.push(...provider.said(await provider.ask(client, history, own)));
    }
    assert.deepEqual(warnings, []);
    const { body, headers } = server.requests[0];
    if (format === "anthropic") {
      assert.deepEqual(body.context_management.edits.map(({ type }) => type), ["clear_tool_uses_20250919", "compact_20260112"]);
      assert.match(headers["anthropic-beta"], /context-management-2025-06-27.*compact-2026-01-12/);
      assert.equal(body.betas, undefined);
    } else {
      assert.deepEqual(body.context_management, [{ type: "compaction", compact_threshold: 60_000 }]);
    }
    const short = server.requests.filter((request) => provider.begins(provider.sent(request)));
    assert.ok(short.length >= 2, "later requests begin with the item");
    assert.deepEqual(await originals(await fetch.session("t")), plain(history.slice(0, -provider.said(server.requests.at(-1).answer).length)));
  });
}

test("X10: an adapter that cannot add the fields refuses the option", () => {
  assert.throws(() => contextCompactor({ summarize: "server" }), fails("invalid_option", { field: "summarize", message: /compactingFetch/ }));
});
