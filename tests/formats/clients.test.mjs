/**
 * The providers' own clients, end to end: what the engine returns is accepted by a strict provider, what breaks a rule
 * is refused. The clients' errors are the ones that an app sees.
 */

import Anthropic from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import OpenAI from "openai";
import { compacted, prepared } from "../support/formats.mjs";
import { ANSWER, serveProvider } from "../support/provider.mjs";
import { kinds } from "./fixtures/index.mjs";
import { play } from "./fixtures/text.mjs";

let provider;
before(async () => (provider = await serveProvider()));
after(() => provider.close());

const options = () => ({ apiKey: "key", maxRetries: 0 });
const openai = () => new OpenAI({ ...options(), baseURL: `${provider.url}/v1` });
const anthropic = () => new Anthropic({ ...options(), baseURL: provider.url });
const gemini = () => new GoogleGenAI({ apiKey: "key", httpOptions: { baseUrl: provider.url } });

/** How each client sends a history; resolves to the answer's text. */
const CLIENTS = {
  "openai-chat": async (messages) => {
    const { choices } = await openai().chat.completions.create({ model: "gpt-5", messages });
    return choices[0].message.content;
  },
  "openai-responses": async (input) => {
    const { output_text } = await openai().responses.create({ model: "gpt-5", input, store: false });
    return output_text;
  },
  anthropic: async (messages) => {
    const { content } = await anthropic().beta.messages.create({
      model: "claude-opus-5",
      max_tokens: 100,
      messages,
    });
    return content[0].text;
  },
  gemini: async (contents) => {
    const { text } = await gemini().models.generateContent({ model: "gemini-3-pro", contents });
    return text;
  },
};

/** What each throws when a request is refused. */
const REFUSALS = {
  "openai-chat": OpenAI.BadRequestError,
  "openai-responses": OpenAI.BadRequestError,
  anthropic: Anthropic.BadRequestError,
  gemini: ApiError,
};

for (const [format, send] of Object.entries(CLIENTS)) {
  const { scenes, broken } = kinds[format];

  /** The client sends `messages` as they are, and the provider takes them. */
  async function assertAccepted(messages, what) {
    assert.equal(await send(messages), ANSWER, what);
    assert.deepEqual(provider.requests.at(-1), {
      format,
      messages: JSON.parse(JSON.stringify(messages)),
      problems: [],
    });
  }

  describe(`the client of ${format}`, () => {
    test("every scene is accepted", async () => {
      for (const [scene, make] of Object.entries(scenes)) await assertAccepted(make(1, 100), scene);
    });

    test("a compacted history is accepted, wherever it was cut", async () => {
      const history = play(scenes, 2, 100);
      for (let keep = 1; keep < history.length / 2; keep += 2) {
        const { messages, summary } = await compacted(format, history, keep);
        assert.ok(summary, `${keep} kept`);
        await assertAccepted(messages, `${keep} kept`);
      }
    });

    test("a prepared history with offloaded results is accepted", async () => {
      for (const summarise of [false, true]) {
        const { messages } = await prepared(format, play(scenes, 2, 2_000), { summarise });
        await assertAccepted(messages, summarise ? "with a summary" : "without");
      }
    });

    for (const [what, { messages, rule, shape }] of Object.entries(broken)) {
      // Gemini's client sends no key that it does not know.
      if (format === "gemini" && !rule) continue;
      test(`${what} is refused`, async () => {
        await assert.rejects(send(messages), (error) => {
          assert.ok(error instanceof REFUSALS[format], error.stack);
          assert.equal(error.status, 400);
          if (rule && !shape) assert.ok(error.message.includes(rule), error.message);
          return true;
        });
      });
    }
  });
}
