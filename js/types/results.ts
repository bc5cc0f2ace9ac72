/** Plans, and what came of them. */

import type { CompactionError } from "../errors.js";
import type { Message, NewMessageAmong, Usage } from "./messages.js";

export interface Edit {
  /** The step that made it; `repair`: messages that the provider would refuse were left out of the prompt, or mended in it. The log
   *  keeps them, and `context.explain()` says why. */
  kind: "admit" | "clear" | "offload" | "compress" | "summarize" | "age" | "merge" | "rollover" | "repair";
  indices: number[];
  freedTokens: number;
  detail?: string;
  /** What offloading reports (`S1.2`). */
  offload?: {
    offloadedCount: number;
    previousTokens: number;
    currentTokens: number;
    freedTokens: number;
    stillExceedsThreshold: boolean;
  };
}

/** What became of one source message. Each has exactly one entry. */
export interface LedgerEntry {
  index: number;
  /** `dropped`: in the context and not sent by the last `prepare`, or in the context no more; `reason` says which. */
  fate: "verbatim" | "summarized" | "offloaded" | "reduced" | "dropped";
  /** It stands word for word inside the message of a summary. */
  quoted?: boolean;
  checkpoint?: string;
  /** Reference of its (first) text that was stored, for `read`: of a result, of an input, or of what the user said. */
  ref?: string;
  /** All of them, when there are several. */
  refs?: string[];
  /** Of the first one's text. */
  sha256?: string;
  reason?: string;
}

/** A message of the user that states constraints (`S4.3`). */
export interface PinProposal {
  /** Its index among the app's messages. */
  index: number;
  /** The sentences that require, limit or forbid something, to the letter. */
  constraints: string[];
  /** What the whole message costs: that much stays in the context with the pin. */
  tokens: number;
}

/** What a compaction did, or why it did not. */
export type CompactionResult<M = Message> = CompactionReport<M> &
  (
    | {
        /** It worked and `fits`. */
        success: true;
        /** The context was edited. */
        changed: boolean;
        /** Why nothing changed, or how a fallback was used. */
        reason?: string;
        /** The built-in summarizer wrote the summary, as `summarize.fallback` asks for: why yours did not. */
        fellBack?: CompactionError;
        error?: undefined;
      }
    | {
        /** What was asked for could not be had: the summary failed, or the context does not fit. */
        success: false;
        /** The context was edited all the same, as by steps that need no summary. */
        changed: boolean;
        /** What `error` says. */
        reason: string;
        fellBack?: undefined;
        /** `context_overflow` whenever the context does not fit: what no compaction goes below, and the largest message. Where it
         *  does not fit because the summary failed, `cause` is that error, such as `summary_failed`. */
        error: CompactionError;
      }
  );

export interface CompactionReport<M = Message> {
  messages: M[];
  /** The context fits the window, with room for the answer: `currentTokens` is at most `contextWindow` less
   *  `maxOutputTokens` and `reserveTokens`. */
  fits: boolean;
  /** The store has it. False when the store is full: the result stands in memory, `prepare` sends it, and the next call that
   *  finds room stores it. Absent for `compact()`, which stores nothing. */
  stored?: boolean;
  trigger: "auto" | "manual" | "overflow" | "none";
  previousTokens: number;
  currentTokens: number;
  freedTokens: number;
  preservedCount: number;
  /** References of offloads that nothing in the context refers to any more. */
  retiredRefs: string[];
  summary?: string;
  /** Tokens of what was summarized less those of the summary (`S4.4`). */
  savedTokens?: number;
  /** What `archive.compactionLog()` says about it (`S4.4`). */
  logEntry?: string;
  /** Pins that were proposed for what was summarized and that nobody answered (`S4.3`). Their constraints were quoted to
   *  the summarizer as what it must keep; `pins.add(index)` still brings the message back word for word. */
  pinProposals?: PinProposal[];
  appliedEdits: Edit[];
  ledger: LedgerEntry[];
  usage?: Usage;
  llmCalls: number;
  durationMs: number;
}

export interface Plan {
  willCompact: boolean;
  reason: string;
  tokens: number;
  limit: number;
  /** Tokens that no compaction can go below: what is fixed plus what must stay. */
  floor: number;
  edits: {
    kind: Edit["kind"];
    indices: number[];
    freedTokens: number;
    llmCalls: number;
    inputTokens: number;
    outputTokens: number;
  }[];
  /** What the calls to come would cost, as many as there were so far, with a compaction before them (its own cost and what
   *  has to be fetched again included) and without; answers aside. Where prices are known. */
  cost?: { now: number; later: number; currency: "USD" };
  /** Why compaction cannot help, when it cannot. */
  proof?: string;
}

export interface ContextUsage {
  usedTokens: number;
  maxTokens: number;
  /** Neither `model` nor `contextWindow` was given: the window is taken for 200,000 tokens. */
  assumed?: true;
  percent: number;
  threshold: number;
  messageCount: number;
  toolCallCount: number;
  offloadCount: number;
  categories: { name: string; tokens: number; kind: "used" | "free" | "buffer" }[];
  /** How the estimate is corrected, since a provider's usage was recorded. */
  correction?: UsageCorrection;
}

/** `usedTokens` is `reported`, and `factor` times what the estimate is above `estimated`; below that it is `overhead` and a
 *  share of the rest. */
export interface UsageCorrection {
  /** The model, where it is named. */
  model?: string;
  /** Usages that it was learned from. */
  reports: number;
  /** Tokens of the prompt that was reported last. */
  reported: number;
  /** What that prompt was estimated at. */
  estimated: number;
  /** Growth between reports by its estimate. */
  factor: number;
  /** Tokens that no message, system prompt or tool of the session accounts for. */
  overhead: number;
  /** The context still begins with that prompt; otherwise it was compacted or gone back from since. */
  anchored: boolean;
}

export interface Prepared<M = Message> {
  /** What to send now. */
  messages: (M | NewMessageAmong<M>)[];
  /** The system prompt, when the session has one of its own, and the goal behind it. */
  system?: string;
  usage: ContextUsage;
  edits: Edit[];
  /** The context still is as large as the preset acts at (`S1.2`), whatever was done. */
  stillExceedsThreshold: boolean;
  /** The store has the context that this is made of. False when the store is full: the context is compacted in memory, a
   *  `warning` says so (`quota_exceeded`), `append` fails until there is room, and the next `prepare` that finds room stores
   *  it. */
  stored: boolean;
  /** Present when a summary was attempted. */
  result?: CompactionResult<M | NewMessageAmong<M>>;
  /** A summary is being made that this prompt does not wait for (option `background`). */
  pending?: true;
}
