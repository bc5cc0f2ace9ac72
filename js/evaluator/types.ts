/** Types of the evaluator. */

import type { Format, Message, Usage } from "../types/messages.js";

/** A conversation of an agent, complete and in order. */
export interface Transcript<M extends Message = Message> {
  messages: readonly M[];
  /** Detected from the messages when it is not given. */
  format?: Format;
  /** Decides, with `seed`, where it is cut; default its place among the transcripts. */
  id?: string;
  /** What transcripts of other sources name too (a framework's identifiers, a shell's paths) is no need of this one. */
  source?: string;
  /** What the provider reported for calls, each by the message that answered it. Sizes and cache misses are then as they
   *  were, else estimated. */
  usage?: readonly (Usage & { message: number })[];
  /** Messages after which the agent itself compacted: what comes later was written without what came before. */
  compactions?: readonly number[];
  /** Tokens of the system prompt and the tools, where no usage tells them; default 20,000. */
  stableTokens?: number;
}

/** When to do what. All but `price` are thresholds of tokens; `none` has a window without end. */
export type PolicyRule =
  | { kind: "none" }
  /** A summary when the prompt has `at` tokens; the last `keep` tokens stay, at least the exchange under way. */
  | { kind: "threshold"; at: number; keep: number }
  /** The oldest messages go when the prompt has more than `at` tokens, until it has `to`. */
  | { kind: "slide"; at: number; to: number }
  /** From `at` tokens on, all results but the newest `keep` are cleared before every call. */
  | { kind: "clear"; at: number; keep: number }
  /** The engine's rule, by the prices; never a prompt above `ceiling` tokens, default 183,616. `clear` is what is cleared
   *  between summaries when it pays: all results but the newest `keep` that have more than `minTokens`, and `inputs`. */
  | { kind: "price"; keep: number; ceiling?: number; clear?: { keep: number; minTokens: number; inputs: boolean } };

/** What is known before a call. */
export interface PolicyMoment {
  /** The call's number, from 0, of `calls`. */
  call: number;
  calls: number;
  /** Tokens of its prompt. */
  tokens: number;
  /** Of these, what the provider has in its cache. */
  cached: number;
  /** Of these, the system prompt and the tools. */
  stable: number;
  /** Messages in the prompt word for word. */
  messages: number;
  /** The user has just spoken. */
  isTurn: boolean;
}

/** What a policy does before a call; `keep` of `compact` is tokens, of `clear` results. */
export type PolicyAction =
  | { kind: "none" }
  | { kind: "compact"; keep: number }
  | { kind: "slide"; to: number }
  | { kind: "clear"; keep: number };

/** A rule, the name of one (`baselines()` has them), or a function that decides before every call; nothing is `none`. */
export type Policy = string | PolicyRule | ((moment: PolicyMoment) => PolicyAction | undefined);

/** How far an evaluation is. */
export interface EvaluationProgress {
  stage: "replay" | "optimum" | "cut" | "measure";
  done: number;
  total: number;
}

export interface EvaluationOptions {
  signal?: AbortSignal;
  onProgress?: (progress: EvaluationProgress) => void;
}

export interface ReplayOptions extends EvaluationOptions {
  /** Find the least that any policy of summaries could have cost, who knew how it goes on: exact, and takes a while. */
  optimum?: boolean;
}

/** What a policy costs on a transcript. Costs are USD. */
export interface ReplayReport {
  cost: number;
  currency: "USD";
  calls: number;
  /** Summaries, slides and clearings. */
  compactions: number;
  /** What the agent needed and the context had no more, and its tokens: fetched again, at its price. */
  refetches: number;
  refetchedTokens: number;
  /** Tokens. */
  largestPrompt: number;
  /** Calls without a compaction whose prompt did not begin with the one before it. */
  changedPrefixes: number;
  /** By call: tokens of the prompt, what was paid so far, and what was done before. */
  steps: { tokens: number; cost: number; action?: Exclude<PolicyAction["kind"], "none"> }[];
  /** The least cost, when it was asked for. */
  optimum?: number;
  /** The calls as they were, where usage was given: what was billed, and what a replay of the same prompts costs. Of the
   *  calls, `misses` found less than half of what could have been cached. */
  billed?: { billed: number; simulated: number; calls: number; misses: number };
}

/** What a context holds of what the agent went on to write from memory; shares, 0..1. */
export interface RecallScores {
  /** T1: named. */
  mention: number;
  /** T2: named within 280 characters of two words that also surround it in the messages. */
  context: number;
  /** T3: of the spans of eight tokens that were copied; missing where none was. */
  verbatim?: number;
  /** T1, or the path or main argument of what holds it is named. */
  referenced: number;
  /** That, or a search with the agent's own words finds it. */
  recoverable: number;
  /** Names in the context that are not in the messages, of all in the context. */
  invented: number;
  /** Of the context. */
  tokens: number;
}

/** A place where a transcript was cut. */
export interface RecallCut {
  /** Place of the transcript among those that were given. */
  transcript: number;
  /** Index of the first message after the cut. */
  at: number;
  /** Tokens of the texts before it, since the last compaction and without the app's instructions. */
  tokens: number;
  /** Names that the agent went on to write from memory, and spans of eight tokens that it copied. */
  needs: number;
  copied: number;
  /** By budget. */
  scores: RecallScores[];
}

/** Where transcripts are cut. */
export interface Cutting {
  /** Tokens before a cut at least; default 20,000. */
  prefixTokens?: number;
  /** Tokens after it that are looked at; default 20,000. */
  futureTokens?: number;
  /** Needs of a cut at least; default 5. */
  needs?: number;
  /** Cuts between two compactions at most; default 2. */
  cuts?: number;
  /** Of the choice among the places where a cut may be; default 7. */
  seed?: number;
}

export interface RecallOptions extends EvaluationOptions {
  cutting?: Cutting;
}

/** The compactors that can be asked for by name: `keep-layer`, the two with a tail and `extractive` are the product's. */
export type CompactorName =
  | "keep-layer"
  | "tail + keep-layer"
  | "masked tail + keep-layer"
  | "extractive"
  | "tail"
  | "head + tail"
  | "masking"
  | "lead + tail"
  | "TF-IDF + tail"
  | "LexRank + tail"
  | "bag of names + tail"
  | "shuffled lines";

/**
 * Makes of messages a context of at most `budget` tokens: a text, or messages in the same format. What does not fit is cut
 * off at the end. The messages are the transcript's own, without the app's instructions; `cut` says where they end.
 */
export type Compactor<M extends Message = Message> = (
  messages: M[],
  budget: number,
  cut: Omit<RecallCut, "scores">,
) => string | readonly Message[] | Promise<string | readonly Message[]>;

export interface RecallReport {
  cuts: RecallCut[];
  /** By budget, over all cuts; without cuts there are none. */
  means: (RecallScores & { budget: number })[];
  /** Shares of the needs that a search with the agent's own words finds among its first 5 and 10 passages. */
  search?: { hits5: number; hits10: number };
}

/** What can be asked for by name, and what reports compare. */
export interface Baselines {
  policies: { name: string; policy: PolicyRule }[];
  /** Shapes of prices that providers have, USD for a million tokens. */
  prices: { name: string; prices: import("../generated/options.js").Prices }[];
  /** `own` are the product's. */
  compactors: { name: CompactorName; own: boolean }[];
}
