/** Types of the evaluator. */

import type { Format, Message, Usage } from "../types/messages.js";

/** A conversation of an agent, complete and in order. */
export interface Transcript<M extends Message = Message> {
  /** All messages, in order. */
  messages: readonly M[];
  /** The format of the messages. Default: detected. */
  format?: Format;
  /** A name that decides, with `seed`, where it is cut. Default: its index among the transcripts. */
  id?: string;
  /** The project or system that it comes from. Names that transcripts of other sources have, too (a framework's
   *  identifiers, a shell's paths), do not count as needs. */
  source?: string;
  /** Usage that the provider reported; `message`: index of the answer. With it sizes and cache misses are as they were, else
   *  estimated. */
  usage?: readonly (Usage & { message: number })[];
  /** Indices of messages after which the agent itself compacted, so that it wrote the rest without what came before. */
  compactions?: readonly number[];
  /** Tokens of the system prompt and the tools, if `usage` does not show them. Default: 20,000. */
  stableTokens?: number;
}

/** A policy of compaction. All kinds but `price` act at numbers of tokens; `none` never compacts, in an unlimited window. */
export type PolicyRule =
  | { kind: "none" }
  /** A summary when the prompt has `at` tokens; the last `keep` tokens stay, at least the current tool calls. `clear` is what is
   *  cleared from half of `at` on when it pays: all results but the newest `keep` that have more than `minTokens`, and `inputs`.
   *  With it no summary comes that frees less than a fifth of `at`. */
  | { kind: "threshold"; at: number; keep: number; clear?: { keep: number; minTokens: number; inputs: boolean } }
  /** The oldest messages go when the prompt has more than `at` tokens, until it has `to`. */
  | { kind: "slide"; at: number; to: number }
  /** From `at` tokens on, all results but the newest `keep` are cleared before every call. */
  | { kind: "clear"; at: number; keep: number }
  /** The engine's rule, by the prices: no summary below `floor` tokens, default 0, and one at `ceiling` tokens, default 183,616.
   *  `clear`: as above, at any size; a fifth is one of `ceiling`. */
  | { kind: "price"; keep: number; floor?: number; ceiling?: number; clear?: { keep: number; minTokens: number; inputs: boolean } };

/** The state before a call, for a policy function. */
export interface PolicyMoment {
  /** Number of the call, from 0. */
  call: number;
  /** Calls of the transcript. */
  calls: number;
  /** Tokens of the prompt. */
  tokens: number;
  /** Of `tokens`, those in the provider's cache. */
  cached: number;
  /** Of `tokens`, those of the system prompt and the tools. */
  stable: number;
  /** Messages that are in the prompt verbatim. */
  messages: number;
  /** The user has just spoken. */
  isTurn: boolean;
}

/** The action of a policy before a call. `keep`: of `compact` in tokens, of `clear` in results. */
export type PolicyAction =
  | { kind: "none" }
  | { kind: "compact"; keep: number }
  | { kind: "slide"; to: number }
  | { kind: "clear"; keep: number };

/** A rule, the name of one (`baselines()` has them), or a function that decides before every call; nothing is `none`. */
export type Policy = string | PolicyRule | ((moment: PolicyMoment) => PolicyAction | undefined);

/** Progress of an evaluation. */
export interface EvaluationProgress {
  /** The current stage. */
  stage: "replay" | "optimum" | "cut" | "measure";
  /** Completed steps of the stage, of `total`. */
  done: number;
  /** Steps of the stage. */
  total: number;
}

/** Options of every evaluation. */
export interface EvaluationOptions {
  /** Ends the evaluation, which rejects with `aborted`. */
  signal?: AbortSignal;
  /** Called as the evaluation advances. */
  onProgress?: (progress: EvaluationProgress) => void;
}

/** Options of a replay. */
export interface ReplayOptions extends EvaluationOptions {
  /** Also compute the least cost of any policy of summaries that knows the future. Exact, and slow. */
  optimum?: boolean;
}

/** Cost of a policy on a transcript. */
export interface ReplayReport {
  /** Cost of all calls, in USD. */
  cost: number;
  currency: "USD";
  /** Calls of the agent's model. */
  calls: number;
  /** Summaries, slides and clearings. */
  compactions: number;
  /** How often the agent needed something that had left the context; fetching it again is part of the cost. */
  refetches: number;
  /** Tokens that were fetched again. */
  refetchedTokens: number;
  /** Tokens of the largest prompt. */
  largestPrompt: number;
  /** Calls without a compaction whose prompt did not begin with the one before it. */
  changedPrefixes: number;
  /** By call: tokens of the prompt, cost so far in USD, and the action before it. */
  steps: { tokens: number; cost: number; action?: Exclude<PolicyAction["kind"], "none"> }[];
  /** The least possible cost, in USD, with the option `optimum`. */
  optimum?: number;
  /** With `usage`: the cost that was billed and that of a replay of the same prompts, in USD; `misses`: how many of the
   *  `calls` found less than half of what could have been cached. */
  billed?: { billed: number; simulated: number; calls: number; misses: number };
}

/** How much a context keeps of what the agent later wrote from memory. Fractions, 0..1, of the needs unless noted. */
export interface RecallScores {
  /** The name is in the context. */
  mention: number;
  /** The name is in the context, within 280 characters of two words that also surround it in the messages. */
  context: number;
  /** Of the spans of eight tokens that the agent copied; absent if it copied none. */
  verbatim?: number;
  /** As `mention`, or the context has the path or main argument of the call whose result has the name. */
  referenced: number;
  /** As `referenced`, or a search with the agent's own words finds it. */
  recoverable: number;
  /** Of all names in the context, those that are not in the messages. */
  invented: number;
  /** Tokens of the context. */
  tokens: number;
}

/** A place where a transcript was cut. */
export interface RecallCut {
  /** Index of the transcript among those that were passed. */
  transcript: number;
  /** Index of the first message after the cut. */
  at: number;
  /** Tokens of the texts before it, since the last compaction and without the app's instructions. */
  tokens: number;
  /** Number of names that the agent later wrote from memory. */
  needs: number;
  /** Number of spans of eight tokens that the agent later copied. */
  copied: number;
  /** Scores, one for each budget. */
  scores: RecallScores[];
}

/** How cuts are chosen. */
export interface Cutting {
  /** Least tokens before a cut. Default: 20,000. */
  prefixTokens?: number;
  /** Tokens after a cut that are searched for needs. Default: 20,000. */
  futureTokens?: number;
  /** Least needs of a cut. Default: 5. */
  needs?: number;
  /** Most cuts between two compactions. Default: 2. */
  cuts?: number;
  /** Seed of the random choice among possible cuts. Default: 7. */
  seed?: number;
}

/** Options of a measurement of recall. */
export interface RecallOptions extends EvaluationOptions {
  /** How cuts are chosen. */
  cutting?: Cutting;
}

/** The compactors that are known by name. `keep-layer`, the two with a tail and `extractive` are those of
 *  context-compactor. */
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
 * Compacts messages to at most `budget` tokens: returns a text, or messages in the same format. What exceeds the budget
 * is cut off at the end. The messages are those of the transcript before `cut`, without the app's instructions.
 */
export type Compactor<M extends Message = Message> = (
  messages: M[],
  budget: number,
  cut: Omit<RecallCut, "scores">,
) => string | readonly Message[] | Promise<string | readonly Message[]>;

/** Result of a measurement of recall. */
export interface RecallReport {
  /** The cuts with their scores. */
  cuts: RecallCut[];
  /** Mean scores over all cuts, one for each budget; empty without cuts. */
  means: (RecallScores & { budget: number })[];
  /** Fractions of the needs, 0..1, that a search with the agent's own words finds in its first 5 and 10 passages. */
  search?: { hits5: number; hits10: number };
}

/** The policies, prices and compactors that are known by name. */
export interface Baselines {
  /** Policies, for `Policy`. */
  policies: { name: string; policy: PolicyRule }[];
  /** Typical prices of providers, in USD per million tokens. */
  prices: { name: string; prices: import("../generated/options.js").Prices }[];
  /** Compactors, for a measurement of recall. `own`: those of context-compactor. */
  compactors: { name: CompactorName; own: boolean }[];
}
