/** The AI SDK, both majors, with one and the same line in `prepareStep` (E1): version 7 hands over what that returned, 6 its whole history. */

import * as ai6 from "ai6";
import { MockLanguageModelV3 } from "ai6/test";
import * as ai7 from "ai7";
import { MockLanguageModelV4 } from "ai7/test";
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore, openSession } from "context-compactor";
import { jsonb } from "../support/histories.mjs";

const WINDOW = 16_000;
const CALLS = 61;
/** About 650 tokens. */
const result = (nth) => `line ${nth}: the parser reads a token and moves on. `.repeat(52);

/** A model that asks for 60 files, one by one. It counts as its provider would, and refuses what does not fit or pair. */
function model(Model, prompts) {
  return new Model({
    doGenerate: async ({ prompt }) => {
      const size = Math.ceil(JSON.stringify(prompt).length / 4);
      prompts.push(size);
      if (size > WINDOW) throw Object.assign(new Error("context_length_exceeded"), { statusCode: 400 });
      const of = (type) => prompt.flatMap(({ content }) => (Array.isArray(content) ? content : [])).filter((part) => part.type === type).map((part) => part.toolCallId);
      assert.deepEqual(of("tool-result"), of("tool-call"), "calls and results are paired");
      const nth = prompts.length;
      const isLast = nth === CALLS;
      const call = { type: "tool-call", toolCallId: `call_${nth}`, toolName: "read_file", input: JSON.stringify({ path: `f${nth}` }) };
      return {
        content: [isLast ? { type: "text", text: "Done." } : call],
        finishReason: { unified: isLast ? "stop" : "tool-calls", raw: undefined },
        usage: { inputTokens: { total: size }, outputTokens: { total: 10 } },
        warnings: [],
      };
    },
  });
}

const MAJORS = { 6: [ai6, MockLanguageModelV3], 7: [ai7, MockLanguageModelV4] };
const FORMS = { "as they are": (messages) => messages, "as a JSON copy": (messages) => jsonb(JSON.parse(JSON.stringify(messages))) };

for (const [major, [sdk, Model]] of Object.entries(MAJORS)) {
  for (const [form, given] of Object.entries(FORMS)) {
    test(`E1 AI SDK ${major}: 61 calls with one line, the messages ${form}: never above the window, no fork`, async () => {
      const session = await openSession({ id: "s", store: memoryStore(), contextWindow: WINDOW, maxOutputTokens: 1_000 });
      const branches = [];
      session.on("branch", (event) => branches.push(event));
      const sync = async (messages) => (await session.step(messages)).messages;
      const prompts = [];
      const { text, steps } = await sdk.generateText({
        model: model(Model, prompts),
        messages: [{ role: "user", content: "Read all files." }],
        tools: { read_file: sdk.tool({ inputSchema: sdk.jsonSchema({ type: "object", properties: { path: { type: "string" } } }), execute: async ({ path }) => result(path) }) },
        stopWhen: sdk.stepCountIs(100),
        maxRetries: 0,
        prepareStep: async ({ messages }) => ({ messages: await sync(given(messages)) }),
      });
      assert.equal(text, "Done.");
      assert.equal(steps.length, CALLS);
      assert.ok(Math.max(...prompts) <= WINDOW, `${Math.max(...prompts)}`);
      assert.deepEqual(branches, []);
      const log = [];
      for await (const message of session.archive.history()) log.push(message);
      assert.equal(log.length, 1 + 2 * (CALLS - 1), "each message once");
      assert.ok((await session.context.explain()).some(({ fate }) => fate !== "verbatim"), "something was compacted");
      await session.close();
    });
  }
}
