/** Plans, and results of compactions. */

import type { CompactionError } from "../errors.js";
import type { Names } from "../generated/options.js";
import type { Message, NewMessageAmong, Usage } from "./messages.js";
import type { State } from "./state.js";

/** One step of a compaction. */
export interface Edit {
  /** The step. `repair`: messages that the provider would refuse were left out of the prompt, or corrected in it; the log
   *  keeps them, and `context.explain()` says why. */
  kind: Names["step"] | "repair";
  /** Indices of the messages that it changed, as `context.explain()` counts. */
  indices: number[];
  /** Tokens that it removed from the context. */
  freedTokens: number;
  /** More about it, for people. */
  detail?: string;
  /** Of kind `offload`: how many results were stored, and tokens of the context. */
  offload?: {
    /** Results that were stored, with references in their place. */
    offloadedCount: number;
    /** Tokens before. */
    previousTokens: number;
    /** Tokens after. */
    currentTokens: number;
    /** `previousTokens` less `currentTokens`. */
    freedTokens: number;
    /** The context is still at or above the threshold of the preset. */
    stillExceedsThreshold: boolean;
  };
}

/** Where one message of the history is now. Each message has exactly one entry. */
export interface LedgerEntry {
  /** Index of the message: of a session, among all messages ever appended, from 0; of `compact()`, in the array that was
   *  passed. */
  index: number;
  /** `verbatim`: in the context as it was given. `summarized`: a summary replaces it. `offloaded`: in the context, with a
   *  reference in place of a text, an image or a document. `reduced`: in the context, shortened. `dropped`: left out of the last prompt, or out of
   *  the context; `reason` says which. */
  fate: "verbatim" | "summarized" | "offloaded" | "reduced" | "dropped";
  /** The message of a summary quotes it in full. */
  quoted?: boolean;
  /** Id of the summary that replaces or quotes it, as in `Checkpoint.id`. */
  checkpoint?: string;
  /** Reference of the first text, image or document that left it, for `recall.read`, which gives the text, or says what the image
   *  was. Of `compact()`, which stores nothing, none. */
  ref?: string;
  /** All its references, if there are several. */
  refs?: string[];
  /** SHA-256 of the first text that left it, in hex; of an image, of the JSON of its part of the message. None of a text of a message
   *  that a summary replaces. Of an erased message: of the message. */
  sha256?: string;
  /** Index of the message with the result that its first result is shown as a difference from (`admit.rereads`). That one is in
   *  every prompt that this one is in. */
  basis?: number;
  /** The same for all its results, if there are several. */
  bases?: number[];
  /** Why, for people. */
  reason?: string;
}

/** A message of the user that states constraints, such as "never push to main", for which a pin is proposed. */
export interface PinProposal {
  /** Index of the message, as `context.explain()` counts. */
  index: number;
  /** The sentences that require, limit or forbid something, verbatim. */
  constraints: string[];
  /** Tokens of the whole message: what a pin would keep in the context. */
  tokens: number;
}

/** Result of a compaction. `success` is true if the context fits and no step failed; else `error` says why. */
export type CompactionResult<M = Message> = CompactionReport<M> &
  (
    | {
        /** No step failed, and the context fits the window. Also when there was nothing to do: then `changed` is false. */
        success: true;
        /** The context was edited. */
        changed: boolean;
        /** Why nothing changed, or how a fallback was used; for people. */
        reason?: string;
        /** The error of your summarizer, when the built-in one wrote the summary in its place (`summarize.fallback:
         *  "extractive"`). */
        fellBack?: CompactionError;
        error?: undefined;
      }
    | {
        /** The summary failed, or the context does not fit the window. */
        success: false;
        /** The context was edited all the same, by steps that need no summary. */
        changed: boolean;
        /** The message of `error`. */
        reason: string;
        fellBack?: undefined;
        /** `context_overflow` whenever the context does not fit: its message has the fewest tokens that a compaction can
         *  reach, and the largest message. If a failed summary is why, `cause` is that error, for example
         *  `summary_failed`. */
        error: CompactionError;
      }
  );

/** What `compact(messages, { state })` did. `changed` is true when `state` is another one than was passed: store it then. */
export type CarriedResult<M = Message> = CompactionResult<M> & {
  /** What to pass to the next call for this conversation: a JSON object of a few KB, for example for a `jsonb` column. `null` as
   *  long as there is nothing to remember. */
  state: State | null;
};

/** The part of a compaction's result that successes and failures share. */
export interface CompactionReport<M = Message> {
  /** The messages of the context now. Kept messages are the objects that were passed. */
  messages: M[];
  /** The context fits the window: `currentTokens` is at most `contextWindow` less `maxOutputTokens` and `reserveTokens`. */
  fits: boolean;
  /** The store has the new context. False when the store is full: the result is in memory, `prepare` sends it, and the
   *  next call that finds room stores it. Absent for `compact()`, which stores nothing. */
  stored?: boolean;
  /** `auto`: the preset's threshold was reached. `manual`: a call of `compact`. `model`: a call of `new_context` (`handoff`).
   *  `overflow`: `prepare({ force: true })`. `none`: nothing called for a compaction. */
  trigger: "auto" | "manual" | "model" | "overflow" | "none";
  /** Tokens of the context before. */
  previousTokens: number;
  /** Tokens of the context now. */
  currentTokens: number;
  /** `previousTokens` less `currentTokens`. */
  freedTokens: number;
  /** Messages after the summary, which were kept; without a summary, all messages but the leading ones of the system. */
  preservedCount: number;
  /** References of stored texts to which nothing in the context refers any more. `recall.read` still resolves them. */
  retiredRefs: string[];
  /** Text of the summary, when one was written. */
  summary?: string;
  /** Tokens of the summarized messages less those of the summary. */
  savedTokens?: number;
  /** The entry of this compaction in `archive.compactionLog()`, in Markdown. */
  logEntry?: string;
  /** Proposed pins among the summarized messages that were neither added nor rejected. The summarizer was asked to keep their
   *  constraints; `pins.add(index)` still brings the whole message back verbatim. */
  pinProposals?: PinProposal[];
  /** Of those, the sentences that the new context does not hold: with `pins.proposals: "keep"` constraints of the user stay
   *  verbatim up to a tenth of the window. A `warning` event (`too_large`) says so too. `pins.add(index)` brings the
   *  whole message back. Absent when every constraint is there. */
  omittedConstraints?: PinProposal[];
  /** The steps that changed something, in order. */
  appliedEdits: Edit[];
  /** Where every message of the history is now, by index. */
  ledger: LedgerEntry[];
  /** Tokens that the summarizer's calls reported, summed; absent when none reported any. */
  usage?: Usage;
  /** Calls of a model, failed attempts included. */
  llmCalls: number;
  /** From the start to the end, in ms. */
  durationMs: number;
}

/** What the next `prepare` would do. */
export interface Plan {
  /** A step would change the context. */
  willCompact: boolean;
  /** Why, or why not; for people. */
  reason: string;
  /** Tokens of the context now. */
  tokens: number;
  /** Tokens at which the preset compacts. */
  limit: number;
  /** The fewest tokens that a compaction can reach: what is fixed, and what must be kept. After a provider refused the prompt,
   *  large texts become shorter too. */
  floor: number;
  /** The steps, in order. */
  edits: {
    /** The step, as in `Edit.kind`. */
    kind: Edit["kind"];
    /** Indices of the messages that it would change. */
    indices: number[];
    /** Tokens that it would free. */
    freedTokens: number;
    /** Calls of a model that it would make. */
    llmCalls: number;
    /** Tokens of the prompts of those calls. */
    inputTokens: number;
    /** Tokens of their answers, at most. */
    outputTokens: number;
  }[];
  /** Estimated cost of the next calls of the model, as many as the session has had: `now` with a compaction first, its own
   *  cost and later look-ups included; `later` without one. `needs`: of 100 of these calls, about how many need something that
   *  left the context, each counted in `now` as one more call; measured on recorded coding sessions in preset `balanced`.
   *  Answers are not counted. Absent without prices. */
  cost?: { now: number; later: number; needs: number; currency: "USD" };
  /** How far the session is from its `limits`; absent without any. `usd`: in USD, `spent` by the usage that was reported;
   *  `prompts` go out until the limit is reached if each costs as much as the call that was reported last, and it is absent while
   *  none was. `requestBytes`: bytes of the messages as JSON in UTF-8, now and after this plan. */
  limits?: {
    usd?: { limit: number; spent: number; left: number; prompts?: number };
    requestBytes?: { limit: number; bytes: number; after: number };
  };
  /** Why compaction cannot make the context fit, when it cannot; for people. */
  proof?: string;
}

/** What `session.compact()` would do. */
export interface CompactionPreview extends Plan {
  /** Tokens of the context afterwards, about. */
  tokensAfter: number;
  /** The messages whose place in the context would be another, by index; all others stay as they are. */
  changes: {
    /** Index of the message, as `context.explain()` counts. */
    index: number;
    /** Its tokens now. */
    tokens: number;
    /** Where it is now. */
    before: LedgerEntry["fate"];
    /** Where it would be. */
    after: LedgerEntry["fate"];
  }[];
}

/** How full the context is. */
export interface ContextUsage {
  /** Tokens of the next prompt. */
  usedTokens: number;
  /** Lower bound: about 99 of 100 prompts have from `low` to `high` tokens, of what the session knows. After `recordUsage` only
   *  what came since is estimated, and the bounds follow how far reports were off. `usedTokens` with the option `tokenCounter`. */
  low: number;
  /** Upper bound. */
  high: number;
  /** The context window, in tokens. */
  maxTokens: number;
  /** Neither `model` nor `contextWindow` was given: `maxTokens` is an assumed 200,000. */
  assumed?: true;
  /** `usedTokens` of `maxTokens`, 0..100 with one decimal; more when the context does not fit. */
  percent: number;
  /** Tokens at which the preset compacts. */
  threshold: number;
  /** Messages in the context. */
  messageCount: number;
  /** Tool calls in the context. */
  toolCallCount: number;
  /** References to stored texts in the context. */
  offloadCount: number;
  /** The window by what it is used for; the tokens add up to `maxTokens` while the context fits. `buffer`: kept free for
   *  the answer. */
  categories: { name: string; tokens: number; kind: "used" | "free" | "buffer" }[];
  /** How the estimate is corrected. Absent until `recordUsage` was called. */
  correction?: UsageCorrection;
}

/** How estimates are corrected by the provider's counts: a context that was estimated at more than `estimated` tokens
 *  counts as `reported`, and `factor` times the excess; a smaller one as `overhead`, and a proportional share of the rest. */
export interface UsageCorrection {
  /** The model whose counts these are, if it is named. */
  model?: string;
  /** Calls of `recordUsage` that it was learned from. */
  reports: number;
  /** Tokens of the prompt that was reported last, as the provider counted them. */
  reported: number;
  /** Tokens of that prompt by the estimate. */
  estimated: number;
  /** How much the reported tokens grow for each estimated token. */
  factor: number;
  /** Tokens of the provider's count that belong to no message, system prompt or tool of the session. */
  overhead: number;
  /** The context still begins with that prompt; false once a compaction, restore or rewind changed it. */
  anchored: boolean;
}

/** Result of `prepare`. */
export interface Prepared<M = Message, N = NewMessageAmong<M>> {
  /** The messages to send now. */
  messages: (M | N)[];
  /** The system prompt to send, with the active goal at its end. Absent when the session has neither. */
  system?: string;
  /** How full the context is. */
  usage: ContextUsage;
  /** The steps that changed the context or this prompt, in order. */
  edits: Edit[];
  /** The context is still at or above the threshold of the preset. */
  stillExceedsThreshold: boolean;
  /** The store has the context that this prompt is made of. False when the store is full: the context is compacted in
   *  memory, a `warning` (`quota_exceeded`) is emitted, and `append` fails until there is room; the next `prepare` that
   *  finds room stores the context. */
  stored: boolean;
  /** Result of the summary, when one was attempted. */
  result?: CompactionResult<M | N>;
  /** A summary is being written in the background, and this prompt does not wait for it (option `background`). */
  pending?: true;
  /** With `summarize: "server"`: fields to add to the request, by which the provider compacts. Anthropic:
   *  `{ betas, context_management }`, for `client.beta.messages.create` (over HTTP, `betas` is the header `anthropic-beta`). OpenAI
   *  Responses: `{ context_management }`. Then append the answer whole. */
  request?: Record<string, unknown>;
}
