// @ts-check
/** Requests to the user's own endpoint. The key goes into the request's headers and nowhere else. */
import { callsOf } from "./messages.js";

/** @typedef {{ kind: "openai" | "anthropic", url: string, key: string, model: string, summaries: boolean }} Endpoint */
/** @typedef {{ system?: string, messages: readonly object[], maxTokens: number }} Ask */

export const DEFAULT_URLS = {
  openai: "https://api.openai.com/v1/chat/completions",
  anthropic: "https://api.anthropic.com/v1/messages",
};

/** @param {Endpoint} endpoint @param {Ask} ask @returns {{ url: string, headers: Record<string, string>, body: Record<string, unknown> }} */
export function buildRequest(endpoint, { system, messages, maxTokens }) {
  const names = [...new Set(messages.flatMap((message) => callsOf(message).map(({ name }) => name)))];
  const parameters = { type: "object", additionalProperties: true };
  if (endpoint.kind === "anthropic") {
    return {
      url: endpoint.url,
      headers: {
        "content-type": "application/json",
        "x-api-key": endpoint.key,
        "anthropic-version": "2023-06-01",
        "anthropic-dangerous-direct-browser-access": "true",
      },
      body: {
        model: endpoint.model,
        max_tokens: maxTokens,
        ...(system ? { system } : {}),
        messages,
        // A history with tool calls is refused unless the tools are declared.
        ...(names.length > 0
          ? {
              tools: names.map((name) => ({ name, input_schema: parameters })),
              tool_choice: { type: "none" },
            }
          : {}),
      },
    };
  }
  return {
    url: endpoint.url,
    headers: {
      "content-type": "application/json",
      ...(endpoint.key ? { authorization: `Bearer ${endpoint.key}` } : {}),
    },
    body: {
      model: endpoint.model,
      max_tokens: maxTokens,
      messages: system ? [{ role: "system", content: system }, ...messages] : messages,
      ...(names.length > 0
        ? {
            tools: names.map((name) => ({ type: "function", function: { name, parameters } })),
            tool_choice: "none",
          }
        : {}),
    },
  };
}

/** @param {Endpoint["kind"]} kind @param {any} answer @returns {string} */
export function readAnswer(kind, answer) {
  const text =
    kind === "anthropic"
      ? (answer?.content ?? []).map((/** @type {{ text?: string }} */ block) => block.text ?? "").join("")
      : answer?.choices?.[0]?.message?.content;
  if (typeof text !== "string" || text.trim() === "") throw new Error("The model answered without text.");
  return text;
}

/** @param {Endpoint} endpoint @param {Ask} ask @param {AbortSignal} [signal] @returns {Promise<string>} */
export async function callModel(endpoint, ask, signal) {
  const { url, headers, body } = buildRequest(endpoint, ask);
  const response = await fetch(url, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}: ${text.slice(0, 400)}`);
  return readAnswer(endpoint.kind, JSON.parse(text));
}
