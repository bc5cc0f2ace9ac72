/** What all adapters share, shown with the AI SDK: which session a conversation has, and options that are refused at once (E20). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { contextCompactor } from "context-compactor/ai-sdk";
import { withCompaction } from "context-compactor/cloudflare";
import { compactingFetch } from "context-compactor/fetch";
import { AI_SDKS } from "../support/ai-sdks.mjs";
import { OPTIONS, provider } from "../support/agents.mjs";

const { sdk, createOpenAI } = Object.values(AI_SDKS).at(-1);

/** A compactor without a window, and one request of a model. */
async function asking(context, options = {}) {
  const server = await provider(context);
  const cc = contextCompactor({ logger: () => {}, ...options });
  context.after(() => cc.close());
  const ask = (name, thread) => sdk.generateText({
    model: createOpenAI({ apiKey: "a", baseURL: `${server.url}/v1` }).chat(name),
    prompt: "Hello.",
    maxRetries: 0,
    prepareStep: cc.with({ thread }).prepareStep,
  });
  return { cc, ask };
}

test("E20: a session that the app reads before the first request has the window of that request's model", async (context) => {
  const { cc, ask } = await asking(context);
  const early = await cc.session("one");
  assert.equal(early.context.usage().maxTokens, 200_000);
  await ask("gpt-4", "one");
  const session = await cc.session("one");
  assert.equal(session.context.usage().maxTokens, 8_192);
  assert.equal(await cc.session("one"), session, "and stays it");
  assert.equal((await session.context.explain()).length, 1);
  assert.equal(early.context.usage().maxTokens, 200_000, "the handle that the app has is open still");
});

test("E20: where the app says which model or window it is, the session that it reads first is the one that goes on", async (context) => {
  for (const options of [{ model: "gpt-4" }, { contextWindow: 16_000 }]) {
    const { cc, ask } = await asking(context, options);
    const early = await cc.session("one");
    await ask("gpt-4", "one");
    assert.equal(await cc.session("one"), early);
  }
});

test("E20: a session that the app closed or deleted is opened anew", async (context) => {
  for (const end of [{}, { delete: true }]) {
    const { cc, ask } = await asking(context);
    await ask("gpt-4", "one");
    const first = await cc.session("one");
    await first.close(end);
    const second = await cc.session("one");
    assert.notEqual(second, first);
    assert.equal((await second.context.explain()).length, end.delete ? 0 : 1);
    await ask("gpt-4", "one");
    assert.equal((await (await cc.session("one")).context.explain()).length, 1);
  }
});

test("E20: an option that no session has, or of another kind, is refused where the adapter is made", () => {
  const makes = {
    "ai-sdk": contextCompactor,
    fetch: compactingFetch,
    cloudflare: (options) => withCompaction(class {}, options),
  };
  for (const [entry, make] of Object.entries(makes)) {
    for (const [options, field] of [
      [{ contextwindow: 16_000 }, "contextwindow"],
      [{ contextWindow: "16000" }, "contextWindow"],
      [{ keep: { message: 3 } }, "keep.message"],
      [{ summarize: { target: 3 } }, "summarize.target"],
      [{ recall: "yes" }, "recall"],
      [{ id: "one" }, "id"],
    ]) {
      assert.throws(() => make({ ...OPTIONS, ...options }), { code: "invalid_option", field }, `${entry} ${field}`);
    }
    make({ ...OPTIONS, systemPrompt: () => "You read files.", summarize: { model: "small" }, recall: { tools: false } });
  }
});
