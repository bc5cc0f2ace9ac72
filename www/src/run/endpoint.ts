import { callModel, type Endpoint } from "../logic/model-call.js";
import type { CompactOptions } from "../engine.js";

export type { Endpoint };

const KEY = "context-compactor-demo.endpoint";

/** The endpoint lives in this tab's session storage: closing the tab forgets the key. */
export function loadEndpoint(): Endpoint | undefined {
  try {
    const text = sessionStorage.getItem(KEY);
    return text === null ? undefined : (JSON.parse(text) as Endpoint);
  } catch {
    return undefined;
  }
}

export function saveEndpoint(endpoint: Endpoint | undefined): void {
  try {
    if (endpoint) sessionStorage.setItem(KEY, JSON.stringify(endpoint));
    else sessionStorage.removeItem(KEY);
  } catch {
    // Without session storage the endpoint lasts until the page is left.
  }
}

/** Session options: the user's model writes the summaries, or the built-in extractive summarizer does. */
export function summaryOptions(endpoint: Endpoint | undefined): CompactOptions {
  if (!endpoint?.summaries) return {};
  return {
    summarize: {
      call: ({ system, messages, maxTokens }, { signal }) => callModel(endpoint, { system, messages, maxTokens }, signal),
      fallback: "extractive",
      attempts: 2,
    },
  };
}
