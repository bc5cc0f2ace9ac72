/**
 * The AI SDK, end to end (in both versions with `CC_MAJORS=all`): its own validators, its conversion to every provider's wire format, and a
 * strict provider behind it. The SDK takes results without a call: its acceptance alone is no proof.
 */

import * as anthropic6 from "ai6-anthropic";
import * as google6 from "ai6-google";
import * as openai6 from "ai6-openai";
import * as anthropic7 from "ai7-anthropic";
import * as google7 from "ai7-google";
import * as openai7 from "ai7-openai";
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { repairHistory } from "context-compactor/history";
import { compacted, prepared } from "../support/formats.mjs";
import { majorsOf } from "../support/majors.mjs";
import { ANSWER, serveProvider } from "../support/provider.mjs";
import { kinds } from "./fixtures/index.mjs";
import { play } from "./fixtures/text.mjs";
import { sdks } from "./schemas/index.mjs";

/** Warnings of the SDK, as that a provider cannot take a part, are not what is tested. */
globalThis.AI_SDK_LOG_WARNINGS = false;

const model = kinds["ai-sdk, model messages"];
const ui = kinds["ai-sdk, UI messages"];

let provider;
before(async () => (provider = await serveProvider()));
after(() => provider.close());

/** The models of a version, by the format that each sends. */
function models({ createOpenAI }, { createAnthropic }, { createGoogleGenerativeAI }) {
  const at = (path) => ({ apiKey: "key", baseURL: `${provider.url}/${path}` });
  return {
    "openai-chat": () => createOpenAI(at("v1")).chat("gpt-5"),
    "openai-responses": () => createOpenAI(at("v1")).responses("gpt-5"),
    anthropic: () => createAnthropic(at("v1"))("claude-opus-4-5"),
    gemini: () => createGoogleGenerativeAI(at("v1beta"))("gemini-3-pro"),
  };
}

const MODELS = { 6: models(openai6, anthropic6, google6), 7: models(openai7, anthropic7, google7) };

/** Scenes that a provider takes: to some, the SDK sends the call of a provider's tool without its result. */
function scenesFor(format, scenes) {
  const { "a tool of the provider": own, ...others } = scenes;
  return format === "openai-chat" || format === "gemini" ? others : scenes;
}

/** As the user would go on: no provider answers its own answer. */
const GO_ON = { role: "user", content: "Go on." };

for (const [version, models] of majorsOf(MODELS)) {
  const sdk = sdks[version];
  const send = (name, messages) => sdk.generateText({ model: models[name](), messages, maxRetries: 0 });

  async function assertAccepted(format, messages, what) {
    const { text } = await send(format, [...messages, GO_ON]);
    assert.equal(text, ANSWER, what);
    assert.equal(provider.requests.at(-1).format, format);
  }

  /** UI messages through the SDK's own check and conversion. */
  async function converted(messages) {
    const { success, error } = await sdk.safeValidateUIMessages({ messages });
    assert.ok(success, error?.message);
    return await sdk.convertToModelMessages(messages);
  }

  describe(`AI SDK ${version}`, () => {
    for (const format of Object.keys(models)) {
      for (const [kind, { scenes }, toModel] of [
        ["model messages", model, async (messages) => messages],
        ["UI messages", ui, converted],
      ]) {
        const parts = scenesFor(format, scenes);

        test(`${kind} to ${format}: every scene is accepted`, async () => {
          for (const [scene, make] of Object.entries(parts)) {
            await assertAccepted(format, await toModel(make(1, 100)), scene);
          }
        });

        test(`${kind} to ${format}: compacted, wherever it was cut`, async () => {
          const history = play(parts, 3, 100);
          for (let keep = 1; keep < history.length / 2; keep += 2) {
            const { messages } = await compacted("ai-sdk", history, keep);
            await assertAccepted(format, await toModel(messages), `${keep} kept`);
          }
        });

        test(`${kind} to ${format}: prepared, with results offloaded`, async () => {
          for (const summarise of [false, true]) {
            const { messages } = await prepared("ai-sdk", play(parts, 3, 2_000), { summarise });
            await assertAccepted(format, await toModel(messages), summarise ? "with a summary" : "without");
          }
        });
      }
    }

    test("a tool's `toModelOutput` reads results that were offloaded", async () => {
      const lines = (output) => (typeof output === "string" ? [output] : (output.lines ?? [output.found]));
      const toModelOutput = ({ output }) => ({ type: "text", value: lines(output).map(String).join("\n") });
      const read = sdk.tool({ inputSchema: sdk.jsonSchema({ type: "object" }), toModelOutput });
      const { messages } = await prepared("ai-sdk", play(ui.scenes, 3, 2_000));
      const sent = await sdk.convertToModelMessages(messages, { tools: { read } });
      const results = sent.filter(({ role }) => role === "tool").flatMap(({ content }) => content);
      const texts = results.map(({ output }) => output?.value);
      assert.ok(texts.filter((text) => /^Tool result is at: \S+$/.test(text)).length >= 4);
    });

    function isRefused(what, error, format = "openai-chat") {
      test(`${what} to ${format}: ${error}`, async () => {
        await assert.rejects(send(format, model.broken[what].messages), { name: error });
      });
    }
    function isMended(what) {
      test(`${what}: accepted when repaired`, async () => {
        const { messages } = await repairHistory(model.broken[what].messages, { format: "ai-sdk" });
        await assertAccepted("openai-responses", messages, what);
      });
    }

    describe("what the SDK refuses", () => {
      for (const [what, error] of [
        ["a call without its result", "AI_MissingToolResultsError"],
        ["an approval of nothing", "AI_InvalidToolApprovalError"],
        ["an approval without its call", "AI_ToolCallNotFoundForApprovalError"],
      ]) {
        isRefused(what, error);
        isMended(what);
      }
      if (version === "6") isRefused("a result without a tag", "AI_InvalidPromptError");
      if (version === "7") isRefused("a system message", "AI_InvalidPromptError");

      const unfinished = ui.broken["a call under way, then more"].messages;
      test("a call under way in a UI message: AI_MissingToolResultsError", async () => {
        const messages = await converted(unfinished);
        await assert.rejects(send("openai-chat", messages), { name: "AI_MissingToolResultsError" });
      });
      test("a call under way in a UI message: accepted when repaired", async () => {
        const { messages } = await repairHistory(unfinished, { format: "ai-sdk" });
        await assertAccepted("openai-chat", await converted(messages), "repaired");
      });
    });

    describe("what the SDK takes and a provider refuses", () => {
      isRefused("a result without its call", "AI_APICallError");
      isRefused("a result without its call", "AI_APICallError", "anthropic");
      isMended("a result without its call");
      if (version === "7") isRefused("a result without a tag", "AI_APICallError");
    });
  });
}
