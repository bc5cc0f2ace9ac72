/** Entry `context-compactor/summarizers`: summaries by the clients of providers. */

import { CompactionError } from "../errors.js";
import type { Summarize, SummaryRequest } from "../types.js";
import { usageOf } from "./usage.js";

/** What `openaiCompatible` needs of a client of `openai`. */
export interface OpenAiClient {
  /** The address of the endpoint, which decides the name of the limit of an answer. */
  baseURL?: string;
  chat: { completions: { create(body: any, options?: { signal?: AbortSignal }): PromiseLike<any> } };
}

/** What `anthropic` needs of a client of `@anthropic-ai/sdk`. */
export interface AnthropicClient {
  messages: { create(body: any, options?: { signal?: AbortSignal }): PromiseLike<any> };
}

/** What `aiSdk` needs of a model of the AI SDK. */
export interface AiSdkModel {
  readonly modelId: string;
  doGenerate(options: any): PromiseLike<any>;
}

/** What `workersAi` needs of the binding of Workers AI. */
export interface WorkersAi {
  run(model: any, inputs: any, options?: any): Promise<any>;
}

/** How a summarizer continues the conversation, so that the provider reads it from its cache. */
export interface SummarizerOptions {
  /** Returns the body of your last request: the prompt that `prepare` returned, with the system prompt, the tools and the
   *  settings that you sent. A summary then continues that request where it can (`SummaryRequest.thread`). Default: each
   *  summary is a request of its own. */
  lastRequest?: () => object | undefined;
}

/**
 * Writes summaries with a client of `openai`, or any other that has `chat.completions.create`: `openSession({ summarize:
 * openaiCompatible(client, "gpt-5-mini") })`. Rejects with the client's error, and with `summary_failed` when the answer is
 * cut, refused, or has no text.
 */
export function openaiCompatible(client: OpenAiClient, model: string, { lastRequest }: SummarizerOptions = {}): Summarize {
  return async (request, { signal }) => {
    const { system, maxTokens } = request;
    const limit = capOf(client.baseURL);
    const own = { model, messages: [{ role: "system", content: system }, ...request.messages] };
    const body = { ...(continued(request, lastRequest) ?? own), [limit]: maxTokens };
    const { choices, usage } = await client.chat.completions.create(body, { signal });
    const { message, finish_reason: end } = choices?.[0] ?? {};
    return answer(message?.tool_calls?.length ? "" : message?.content, usage, end === "length", message?.refusal);
  };
}

/**
 * Writes summaries with a client of `@anthropic-ai/sdk`: `openSession({ summarize: anthropic(client, "claude-haiku-4-5") })`.
 * Rejects with the client's error, and with `summary_failed` when the answer is cut or has no text.
 */
export function anthropic(client: AnthropicClient, model: string, { lastRequest }: SummarizerOptions = {}): Summarize {
  return async (request, { signal }) => {
    const { system, messages, maxTokens } = request;
    const body = { ...(continued(request, lastRequest) ?? { model, system, messages }), max_tokens: maxTokens };
    const { content, usage, stop_reason: end } = await client.messages.create(body, { signal });
    const isCall = (content as { type: string }[]).some(({ type }) => type === "tool_use");
    return answer(isCall ? "" : textOf(content), usage, end === "max_tokens", end === "refusal" ? "stop_reason refusal" : undefined);
  };
}

/**
 * Writes summaries with a model of the AI SDK 6 or 7: `openSession({ summarize: aiSdk(openai("gpt-5-mini")) })`. Rejects with
 * the model's error, and with `summary_failed` when the answer is cut or has no text.
 */
export function aiSdk(model: AiSdkModel): Summarize {
  return async ({ system, messages, maxTokens }, { signal }) => {
    const texts = messages.map(({ role, content }) => ({ role, content: [{ type: "text", text: content }] }));
    const prompt = [{ role: "system", content: system }, ...texts];
    const { content, usage, finishReason } = await model.doGenerate({ prompt, maxOutputTokens: maxTokens, abortSignal: signal });
    // The reason is a text in models of the second version of the interface.
    return answer(textOf(content), usageOf(usage), (finishReason?.unified ?? finishReason) === "length");
  };
}

/**
 * Writes summaries with Workers AI: `openSession({ summarize: workersAi(env.AI, "@cf/meta/llama-3.1-8b-instruct") })`. Rejects
 * with the binding's error, and with `summary_failed` when the answer has no text.
 */
export function workersAi(ai: WorkersAi, model: string): Summarize {
  return async ({ system, messages, maxTokens }, { signal }) => {
    const inputs = { messages: [{ role: "system", content: system }, ...messages], max_tokens: maxTokens };
    const { response, choices, usage } = await ai.run(model, inputs, { signal });
    const choice = choices?.[0];
    return answer(response ?? choice?.message?.content, usage, choice?.finish_reason === "length");
  };
}

/** The last request with the order for a summary at its end, where there is one and it can be continued. */
function continued({ thread }: SummaryRequest, lastRequest: SummarizerOptions["lastRequest"]): object | undefined {
  const last = thread && (lastRequest?.() as { messages?: unknown[] } | undefined);
  if (!last || !Array.isArray(last.messages)) return undefined;
  const { stream: _, stream_options: _of, max_tokens: _old, max_completion_tokens: _new, ...rest } = last as Record<string, unknown>;
  return { ...rest, messages: [...last.messages, ...thread.messages] };
}

/** An endpoint where the limit of an answer has another name. */
export const OPENAI = "https://api.openai.com";

/** OpenAI's reasoning models refuse `max_tokens`; most other servers know no other name. */
function capOf(baseURL = ""): "max_tokens" | "max_completion_tokens" {
  return /^https?:\/\/api\.openai\.com(?=[/:]|$)/.test(baseURL) ? "max_completion_tokens" : "max_tokens";
}

/** The texts of an answer's parts. */
export function textOf(parts: unknown): string {
  const all = Array.isArray(parts) ? (parts as { type?: unknown; text?: unknown }[]) : [];
  return all.map(({ type, text }) => ((type === "text" || type === "output_text") && typeof text === "string" ? text : "")).join("");
}

/** The answer of a summarizer, if it is one. */
export function answer(text: unknown, usage: object | undefined, isCut: boolean, refusal?: string): { text: string; usage?: object } {
  if (refusal) throw new CompactionError("summary_failed", `the model refused: ${refusal}`);
  if (isCut) throw new CompactionError("summary_failed", "the answer was cut at its longest length");
  if (typeof text !== "string" || text === "") throw new CompactionError("summary_failed", "the answer has no text");
  return usage ? { text, usage } : { text };
}
