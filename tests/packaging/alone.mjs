/** What the entries beside the main one do without it: each starts the engine that it needs. Runs in every host. */

import { contextCompactor } from "context-compactor/ai-sdk";
import { compactingFetch } from "context-compactor/fetch";
import { detectFormat, validateHistory } from "context-compactor/history";
import { optionsFromEnv, restoreBackup } from "context-compactor/presets";
import { estimateTokens, loadTokenizer } from "context-compactor/tokens";

export async function alone() {
  const messages = [{ role: "user", content: "Hello, world!" }];
  // A store in which nothing is.
  const none = { caps: { maxBatchOps: 100 }, read: (keys) => keys.map(() => undefined), scan: () => [], commit: () => {} };
  // What would be sent, by adapters that warn of nothing.
  const options = { contextWindow: 8_000, strict: true };
  const fetch = compactingFetch({ ...options, fetch: async (_, { body }) => new Response(body) });
  const sent = await fetch("https://api.test/v1/chat/completions", { method: "POST", body: JSON.stringify({ messages }) });
  const echo = { modelId: "gpt-5", doGenerate: async ({ prompt }) => ({ content: prompt }) };
  const { model } = await contextCompactor(options).prepareStep({ model: echo });
  const prompt = [{ role: "user", content: [{ type: "text", text: "Hello, world!" }] }];
  return {
    adapters: [(await sent.json()).messages.length, (await model.doGenerate({ prompt })).content.length],
    presets: [optionsFromEnv({ SYNAPSE_OFFLOAD_THRESHOLD: 9_000 }), await restoreBackup(none, "old").catch(({ code }) => code)],
    history: [await detectFormat(messages), (await validateHistory(messages)).valid],
    tokens: [estimateTokens("Hello, world!"), (await loadTokenizer(import("context-compactor-vocabularies/o200k_base"))).countMessages(messages)],
  };
}

/** What `alone` returns, as JSON. */
export const expectedAlone = {
  adapters: [1, 1],
  presets: [{ presetOptions: { offloadThreshold: 9_000 } }, "not_found"],
  history: ["openai-chat", true],
  tokens: [4, 8],
};
