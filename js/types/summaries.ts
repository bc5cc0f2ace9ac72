/** What an app's own summarizer is asked and answers. */

import type { Usage } from "./messages.js";

export interface Fact {
  kind: "path" | "url" | "id" | "number" | "command" | "error" | "constraint" | "decision" | "identifier";
  text: string;
  /** Index of the message it comes from; none when that is not the app's own, as an earlier summary. */
  index?: number;
  weight: number;
}

/** What a summarizer is asked. Send `system` and `messages` as they are; cap the answer at `maxTokens`. */
export interface SummaryRequest {
  system: string;
  messages: { role: "user"; content: string }[];
  maxTokens: number;
  targetTokens: number;
  /** Things that a good summary names. */
  facts: Fact[];
  /** Some text was clipped so that the request fits `maxInputTokens`, or the summarizer's window. */
  truncated: boolean;
  /** `summarize.model`, else `model`, as given in the options. */
  model?: string;
}

export interface SummarizeContext {
  signal: AbortSignal;
  /** From 1. */
  attempt: number;
  /** What the summary is for: the history up to a boundary, a tool result, a part of either, the summaries of such parts
   *  or several checkpoints to become one, or an old checkpoint. */
  purpose: "history" | "result" | "chunk" | "merge" | "age";
}

/** What a summarizer answers. `usage` is read as `recordUsage` reads it: in this library's names, or as the provider has it. */
export type SummaryAnswer = string | { text: string; usage?: Usage | object };

/** The app's own call of a model. Return the summary's text; throw to have it tried again. It must not call `prepare`,
 *  `compact` or another call that changes the context of the session that asks it: that would wait for the summary. */
export interface Summarize {
  (request: SummaryRequest, context: SummarizeContext): SummaryAnswer | Promise<SummaryAnswer>;
  /** That of every function. Without it, TypeScript takes its type for that of `call` in `summarize: { call: (request) => … }`. */
  readonly call: object;
}
