/** `context-compactor/tanstack-ai` in TanStack AI itself (E18, E20, E21). */

import { chat, maxIterations, toolDefinition } from "@tanstack/ai";
import { createOpenaiChat, createOpenaiChatCompletions } from "@tanstack/ai-openai";
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { z } from "zod";
import { memoryStore, openSession } from "context-compactor";
import { contextCompactor } from "context-compactor/tanstack-ai";
import { DONE, fileText, holds, logOf, OPTIONS, provider, SUMMARIES, TASK } from "../support/agents.mjs";

/** A compactor whose warnings fail the test, unless they are taken from `warnings`. */
function compactor(context, options = {}, warnings = []) {
  const made = contextCompactor({ ...OPTIONS, logger: (level, message) => level === "warn" && warnings.push(message), ...options });
  context.after(async () => {
    await made.close();
    assert.deepEqual(warnings, []);
  });
  return made;
}

const readFile = toolDefinition({ name: "read_file", description: "Reads a file", inputSchema: z.object({ nth: z.number() }) }).server(({ nth }) => fileText(nth));

const adapterAt = (server, key = "a", make = createOpenaiChatCompletions) => make("gpt-4.1", key, { baseURL: `${server.url}/v1`, maxRetries: 0 });
const user = (content) => [{ role: "user", content }];

/** What is the same in every run. */
const common = { systemPrompts: ["You read files."], tools: [readFile], agentLoopStrategy: maxIterations(100), debug: false };

/** The chunks of a run. */
async function chunksOf(options) {
  const chunks = [];
  for await (const chunk of chat({ ...common, ...options })) chunks.push(chunk);
  return chunks;
}

/** The ways to run an agent: each resolves to its text. */
const WAYS = {
  text: (options) => chat({ ...common, ...options, stream: false }),
  async stream(options) {
    const chunks = await chunksOf(options);
    const error = chunks.find(({ type }) => type === "RUN_ERROR");
    if (error) throw Object.assign(new Error(error.message), { code: error.code });
    assert.deepEqual(chunks.map(({ type }) => type).filter((type) => /^RUN_(?!FINISHED)/.test(type)), ["RUN_STARTED"]);
    return chunks.map(({ type, delta }) => (type === "TEXT_MESSAGE_CONTENT" ? delta : "")).join("");
  },
};

/** Roles of the log of a conversation of so many calls of one tool each. */
const rolesAfter = (calls) => ["user", ...Array.from({ length: calls }, () => ["assistant", "tool"]).flat()];

/** A middleware that keeps the messages that the run has in the end. */
function witness() {
  const seen = { name: "witness", messages: [], onFinish: ({ messages }) => (seen.messages = [...messages]) };
  return seen;
}

for (const [way, run] of Object.entries(WAYS)) {
  test(`E18, E21: ${way}: an agent dies without it, and ends its work with it`, async (context) => {
    const server = await provider(context);
    await assert.rejects(run({ adapter: adapterAt(server, "without"), messages: user(TASK) }), /maximum context length/);
    const died = server.figures("without");
    assert.ok(died.calls >= 20 && died.calls <= 27 && died.refused === 1, JSON.stringify(died));

    for (const [key, more] of [["a", { middleware: (cc) => [cc] }], ["b", { with: true }]]) {
      const cc = compactor(context);
      const seen = witness();
      const adapter = adapterAt(server, key);
      const bound = more.with ? cc.with(adapter) : { adapter, middleware: more.middleware(cc) };
      const text = await run({ ...bound, middleware: [seen, ...bound.middleware], messages: user(TASK), threadId: "one" });
      assert.equal(text, DONE);
      holds(server.figures(key));
      assert.deepEqual((await logOf(await cc.session("one"))).map(({ role }) => role), rolesAfter(60));
      // What the run has itself stays whole.
      assert.deepEqual(seen.messages.map(({ role }) => role), [...rolesAfter(60), "assistant"]);
      for (const [at, { content }] of seen.messages.filter(({ role }) => role === "tool").entries()) assert.equal(content, fileText(at));
    }
  });

  test(`E18, E20: ${way}: only summaries make room, and the agent's own adapter writes them`, async (context) => {
    const server = await provider(context);
    const cc = compactor(context, SUMMARIES);
    assert.equal(await run({ ...cc.with(adapterAt(server)), messages: user(TASK) }), DONE);
    holds(server.figures("a"));
    const summaries = server.requests.filter(({ kind }) => kind === "summary");
    assert.ok(summaries.length >= 1);
    for (const { body } of summaries) assert.deepEqual([body.model, body.tools], ["gpt-4.1", undefined]);
  });

  test(`E18, E20: ${way}: the provider says "too long" at call 30: one retry with less`, async (context) => {
    for (const [make, inStream] of [[createOpenaiChatCompletions, false], [createOpenaiChat, false], [createOpenaiChat, true]]) {
      const server = await provider(context, { overflowAt: 30, inStream });
      const text = await run({ ...compactor(context).with(adapterAt(server, "a", make)), messages: user(TASK) });
      assert.equal(text, DONE);
      holds(server.figures("a"), { refusals: 1 });
      const [refused, again] = server.requests.filter(({ kind }) => kind === "agent").slice(29, 31);
      assert.ok(again.tokens < refused.tokens, `${again.tokens} after ${refused.tokens}`);
    }
  });
}
