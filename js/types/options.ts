/** Options of everything that plans or compacts. */

import type { Format, Message } from "./messages.js";
import type {
  CheckpointOptions,
  Factor3Options,
  LayeredOptions,
  OffloadOptions,
  Preset,
  ReactOptions,
} from "./presets.js";
import type { ModelPrices } from "./models.js";
import type { Goal, Level } from "./state.js";
import type { Summarize } from "./summaries.js";

/** `calibrated` (default) is fitted to real tokenizers; `chars4` is `round(characters / 4)`. */
export type Estimator = "calibrated" | "chars4";

export interface Keep {
  messages?: number;
  tokens?: number;
  /** Share of the history's tokens, 0..1. */
  fraction?: number;
}

/** What a model's tokens cost, in USD for a million. What is not said of the cache costs as much as input. */
export interface Prices extends ModelPrices {
  /** How long the provider's cache holds a prompt that is not used, in ms; default five minutes. */
  ttlMs?: number;
}

/** What the app is used for: what a summary must preserve (`S5.10`). Any other name is `ASSISTANT`. */
export type Mode = "DEVELOPER" | "PLANNING" | "DEBUGGER" | "ASSISTANT";

export interface ProviderOptions {
  /** `openai` is Chat Completions, and every server that speaks it. */
  kind: "openai" | "anthropic" | "gemini" | "ollama";
  model: string;
  /** Endpoint, or a base that ends in `/v1` (`/v1beta` for `gemini`, `/api` for `ollama`); default the provider's own. */
  url?: string;
  /** Of every request, the key among them, as in `{ authorization: "Bearer …" }`. */
  headers?: Record<string, string> | { entries(): Iterable<[string, string]> };
}

export interface Progress {
  /** Preset `checkpoint` tells its six: identify, prepare, summarise, checkpoint, update, validate (`S5.5`). */
  stage:
    | "identify"
    | "prepare"
    | "read"
    | "offload"
    | "compress"
    | "summarise"
    | "checkpoint"
    | "update"
    | "validate"
    | "commit"
    | "verify"
    | "erase";
  done: number;
  total: number;
  tokensBefore: number;
  tokensNow: number;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface CompactOptions {
  /** Default `balanced`. */
  preset?: Preset;
  /** Detected when it can be. */
  format?: Format;
  /** The conversation's model. Without `contextWindow` its window and the most that it answers are looked up
   *  (`modelFacts`), and a model that nobody knows is an error. Tokens are estimated for its family of tokenizers. */
  model?: string;
  /** The summariser's model, when it is another one. */
  summaryModel?: string;
  /** The summariser's window in tokens, when it is another one than `contextWindow`: no prompt for a summary of the
   *  history, with room for its answer, is longer. A summary then takes at most an eighth of it. At least 1,000. */
  summaryContextWindow?: number;
  /** What becomes of a history that is longer than the summariser's window. `parts`, the default: it is split where
   *  exchanges end, into as few parts as fit; each is summarised by a call with purpose `chunk`, up to `concurrency` at
   *  once, and a call with purpose `merge` makes one summary of them. Every answer is stored as it comes, so that no part
   *  is paid for twice. `clip`: one call, with the longest texts shortened and messages in the middle left out. */
  longHistory?: "parts" | "clip";
  /** Tokens; default that of `model`, and 200,000 without one. */
  contextWindow?: number;
  /** Tokens that one answer may take. Default where `contextWindow` is given or `model` is not: 16,384; else the most
   *  that the model answers, up to 20,000. Never more than a quarter of the window; `checkpoint` has a margin of its
   *  own. `layered` keeps no more than its `outputReserve` free, however long an answer may be. */
  maxOutputTokens?: number;
  /** When a session acts: at this many tokens, or this share of the window. Overrides the preset's own trigger. With
   *  `price` (that of `balanced`) a session acts as soon as its calls paid as much for a larger context as a compaction
   *  costs, by `prices`, and at the threshold given here, or where the window ends, at the latest. */
  trigger?: { tokens?: number; fraction?: number; price?: boolean };
  /** What the model's tokens cost; default what the catalogue knows about `model` where the window is looked up too. With
   *  neither, the trigger takes those of a model of the middle class (3 and 15 USD, 0.30 to read the cache, 3.75 to
   *  write it), and plans tell no cost. */
  prices?: Prices;
  /** What stays at the end. Overrides the preset's own count. */
  keep?: Keep;
  /** Tokens kept free for what the messages do not show (tools, margins); default 0. */
  reserveTokens?: number;
  estimator?: Estimator;
  summarize?: Summarize;
  /** A cheaper one for single tool results (`S2.8`); default `summarize`. */
  summarizeResult?: Summarize;
  provider?: ProviderOptions;
  /** Used for `provider`, and refused without it; default the global one. */
  fetch?: typeof fetch;
  /** When every attempt of `summarize` or `provider` at a summary failed: `none`, the default in every preset, leaves the
   *  history as it is and the result is no success; with `extractive` the built-in summariser writes it, and the result
   *  says why (`fellBack`). With neither of them the built-in summariser writes every summary. */
  fallback?: "extractive" | "none";
  /** Attempts in total; default 3. Before the next one a provider's `Retry-After` is waited for, up to a minute. */
  retryCount?: number;
  /** Calls of a model that may be under way at once; default 4. */
  concurrency?: number;
  /** Of one attempt, in ms; default 120,000. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Replaces the estimator everywhere. Called with one message at a time. */
  tokenCounter?: (messages: Message[]) => number;
  /** Which messages stay word for word for ever (`S4.3`); asked when a message is appended. One that would be
   *  summarised is quoted in full, fenced, behind the summary. Anything but `true` and `false`, as a Promise, is refused. */
  pinned?: (message: Message, index: number) => boolean;
  /** What becomes of other messages of the user that state constraints, as "never push to main" (`S4.3`). Event `pin` and
   *  `pinProposals()` tell them, and `pin(index)` keeps such a message whole. With `keep`, the default, the constraints
   *  themselves stay word for word behind every summary until `rejectPin(index)` says that they hold no more; they take
   *  no more than a tenth of the window, the newest first. With `ask` every summary is only asked to repeat them.
   *  `accept` pins the messages at once, as long as pins take no more than a tenth of the window. `off` looks for none. */
  pinProposals?: "keep" | "ask" | "accept" | "off";
  /** What a file holds now, for files that are put back behind a summary (`S3.6`). Where it fails, what the model read
   *  is put back. */
  readFile?: (path: string) => Promise<string>;
  onProgress?: (progress: Progress) => void;
  logger?: (level: LogLevel, message: string) => void;
  /** Clock (ms) and id source (any unique string), for reproducible runs. */
  runtime?: { now(): number; id(): string };
  /** Replaces secrets in what the summariser sees and in what is written in the place of messages, as
   *  `[redacted: aws-access-key 1]`; the same secret has the same placeholder in a session for ever. What is stored, what
   *  `read` gives back and the messages that stay are never changed. Known are private keys (PEM, OpenSSH, PGP), keys of
   *  AWS (a secret key where a label names it), tokens of GitHub, Slack and npm, signed JSON web tokens, what follows
   *  `Bearer`, passwords in URLs, `sk-…` keys (OpenAI, Anthropic and others), live keys of Stripe and API keys of Google:
   *  shapes that nobody writes by chance, and no others. Default true. */
  redactSecrets?: boolean;
  /** Applied after that to the text that the summariser sees, never to what is stored: for secrets that only you know. */
  redact?: (text: string) => string;
  /** More guidance for the summary. */
  instructions?: string;
  /** What your requests to Anthropic send as `thinking.block_binding.prefix_mismatch_behavior`: with `error` (default, as
   *  there) signed thinking behind an edit is taken out; with `drop_block` it is left for the server to drop, so that the
   *  cached prefix stays what it is. */
  prefixMismatchBehavior?: "error" | "drop_block";
  offload?: OffloadOptions;
  react?: ReactOptions;
  layered?: LayeredOptions;
  factor3?: Factor3Options;
  checkpoint?: CheckpointOptions;
  /** What the app is used for (`S5.10`); default `ASSISTANT`. Presets other than `checkpoint` heed it with `level`. */
  mode?: Mode;
  /** What the conversation is for: it guides summaries. Of a session that works on it already, what it has reached so
   *  far holds (`S5.13`). */
  goal?: Goal;
  /** How detailed summaries are; default, in preset `checkpoint`, by what they stand for (`S5.7`). */
  level?: Level;
}
