/** Requests to an app's own summarizer, and its answers. */

import type { Message, Usage } from "./messages.js";

/** Something in the history that a good summary mentions. */
export interface Fact {
  /** What kind of thing it is. */
  kind: "path" | "url" | "id" | "number" | "command" | "error" | "constraint" | "decision" | "identifier";
  /** As it is in the message, such as `src/parser.ts`. */
  text: string;
  /** Index of the message it comes from, as `context.explain()` counts; absent if it comes from an earlier summary. */
  index?: number;
  /** How important it is, relative to the other facts. */
  weight: number;
}

/** A request for a summary. Send `system` and `messages` to a model unchanged, and limit its answer to `maxTokens`. Or, where
 *  `thread` is there, send your last request again with its messages added: the provider has that prompt in its cache. */
export interface SummaryRequest {
  /** System prompt for the summarizer. */
  system: string;
  /** The conversation to summarize, fenced as data. */
  messages: { role: "user"; content: string }[];
  /** The longest answer, in tokens. */
  maxTokens: number;
  /** The length that the prompt asks for, in tokens. */
  targetTokens: number;
  /** Things that a good summary mentions, most important first. */
  facts: Fact[];
  /** Long texts were shortened so that the request fits `maxInputTokens`, or the summarizer's window. */
  truncated: boolean;
  /** The model to call: option `summarize.model`, else `model`. */
  model?: string;
  /** The same request as a continuation of the conversation: add `messages`, which are in its format, to the prompt that
   *  `prepare` returned last, and send it as you sent that: same model, system prompt, tools, tool choice and thinking settings
   *  (a change of them can empty the provider's cache). They forbid calls: if the answer has one all the same, throw, and the next
   *  attempt comes without `thread`, as after any failure but 408, 425, 429, 5xx and a timeout, and after an answer that was no
   *  summary. Only sessions offer it, for a summary of their history. It is absent if nothing was prepared since the session
   *  was opened, or that prompt was changed since or does not hold all that is summarized; if `summarize.model` is another model than `model`; if
   *  the prompt holds a secret (`redact.secrets`) or `redact.text` is given; if the prompt and the answer do not fit the window
   *  together; and if the history is shown in parts or shortened (`truncated`). */
  thread?: { messages: Message[] };
}

/** The second argument of a `Summarize` function. */
export interface SummarizeContext {
  /** Aborted when the attempt times out or the operation ends. Pass it to `fetch`. */
  signal: AbortSignal;
  /** Number of this attempt, from 1. */
  attempt: number;
  /** The text to summarize. `history`: the messages up to the cut. `result`: one tool result. `chunk`: a part of either.
   *  `merge`: several summaries, to become one. `age`: an old checkpoint, to become shorter. */
  purpose: "history" | "result" | "chunk" | "merge" | "age";
}

/** The answer of a summarizer: the text of the summary. `usage`: a `Usage`, or the usage object of the provider. */
export type SummaryAnswer = string | { text: string; usage?: Usage | object };

/** The app's own call of a model. Return the text of the summary; throw to have it tried again (option
 *  `summarize.attempts`). It must not wait for `prepare`, `compact` or another call that changes the context of the same
 *  session: such a call waits for the summary. */
export interface Summarize {
  (request: SummaryRequest, context: SummarizeContext): SummaryAnswer | Promise<SummaryAnswer>;
  /** The `call` of every function. It lets TypeScript distinguish a function from `SummarizeOptions`. */
  readonly call: object;
}
