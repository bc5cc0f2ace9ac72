/** What the entries beside the main one do without it: each starts the engine that it needs. Runs in every host. */

import { detectFormat, validateHistory } from "context-compactor/history";
import { optionsFromEnv, restoreBackup } from "context-compactor/presets";
import { estimateTokens, loadTokenizer } from "context-compactor/tokens";

export async function alone() {
  const messages = [{ role: "user", content: "Hello, world!" }];
  // A store in which nothing is.
  const none = { caps: { maxBatchOps: 100 }, read: (keys) => keys.map(() => undefined), scan: () => [], commit: () => {} };
  return {
    presets: [optionsFromEnv({ SYNAPSE_OFFLOAD_THRESHOLD: 9_000 }), await restoreBackup(none, "old").catch(({ code }) => code)],
    history: [await detectFormat(messages), (await validateHistory(messages)).valid],
    tokens: [estimateTokens("Hello, world!"), (await loadTokenizer("o200k_base")).countMessages(messages)],
  };
}

/** What `alone` returns, as JSON. */
export const expectedAlone = {
  presets: [{ presetOptions: { offloadThreshold: 9_000 } }, "not_found"],
  history: ["openai-chat", true],
  tokens: [4, 8],
};
