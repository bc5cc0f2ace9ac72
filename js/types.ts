/** Public types of context-compactor. Token counts are tokens, times are milliseconds, unless a name says otherwise. */

import type { CompactionError } from "./errors.js";

/** One message in the app's own format. It is never mutated and never re-created while it is kept. */
export type Message = object;
/** Wire formats; detected from the messages when `format` is not given. */
export type Format = "openai-chat" | "openai-responses" | "anthropic" | "gemini" | "ai-sdk" | "react";
type PlainMessage = { role: "user"; content: string } | { role: "assistant"; content: string };
type MessageItem =
  | PlainMessage
  | { type: "message"; role: "user"; content: string | { type: "input_text"; text: string }[] }
  | { type: "message"; role: "assistant"; content: string };
type GeminiMessage = { role: "user"; parts: { text: string }[] } | { role: "model"; parts: { text: string }[] };
type UiText = { type: "text"; text: string };
type UiMessage = { id: string; role: "user"; parts: UiText[] } | { id: string; role: "assistant"; parts: UiText[] };
/** A message that a compaction adds: a summary or an acknowledgement, in the shape of its format. In `ai-sdk` it is a UI
 *  message in a history of UI messages, else a model message. A trajectory gets none. */
export type NewMessage<F extends Format = Format> = {
  "openai-chat": PlainMessage;
  "openai-responses": MessageItem;
  anthropic: PlainMessage;
  gemini: GeminiMessage;
  "ai-sdk": PlainMessage | UiMessage;
  react: never;
}[F];
/** The new messages that can stand among messages of a type: those of the formats that the type belongs to. */
export type NewMessageAmong<M> = [Extract<NewMessage, M>] extends [never] ? NewMessage : Extract<NewMessage, M>;
/** Presets; the default is `offload`. */
export type Preset = "offload" | "react" | "layered" | "factor3" | "checkpoint";
/** `calibrated` (default) is fitted to real tokenizers; `chars4` is `round(characters / 4)`. */
export type Estimator = "calibrated" | "chars4";

/** USD for a million tokens. */
export interface TokenPrices {
  input: number;
  output: number;
  /** Of the input, what was read from the provider's cache. */
  cacheRead?: number;
  /** And what was written to it. */
  cacheWrite?: number;
}

export interface ModelPrices extends TokenPrices {
  /** What all tokens of a request cost whose input is larger than `above`; the last that is reached holds. */
  tiers?: (TokenPrices & { above: number })[];
}

/** What the catalogue knows about a model. */
export interface ModelFacts {
  /** Its id there. */
  model: string;
  /** Who serves it, by the id there. */
  provider: string;
  /** Tokens. */
  contextWindow: number;
  /** The most that it answers in one response, where that is known. */
  maxOutputTokens?: number;
  /** As they are today, where they are known. */
  prices?: ModelPrices;
  /** The catalogues, with their versions. */
  source: string;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
  reasoningTokens?: number;
}

export interface Fact {
  kind: "path" | "url" | "id" | "number" | "command" | "error" | "constraint" | "decision" | "identifier";
  text: string;
  /** Index of the message it comes from; none when that is not the app's own, as an earlier summary. */
  index?: number;
  weight: number;
}

/** What a summariser is asked. Send `system` and `messages` as they are; cap the answer at `maxTokens`. */
export interface SummaryRequest {
  system: string;
  messages: { role: "user"; content: string }[];
  maxTokens: number;
  targetTokens: number;
  /** Things that a good summary names. */
  facts: Fact[];
  /** Some text was clipped so that the request fits `maxInputTokens`. */
  truncated: boolean;
  /** `summaryModel`, else `model`, as given in the options. */
  model?: string;
}

export interface SummarizeContext {
  signal: AbortSignal;
  /** From 1. */
  attempt: number;
  /** What the summary is for: the history up to a boundary, a tool result or a part of one, several of either joined, or
   *  an old checkpoint. */
  purpose: "history" | "result" | "chunk" | "merge" | "age";
}

/** The app's own call of a model. Return the summary's text; throw to have it tried again. */
export type Summarize = (
  request: SummaryRequest,
  context: SummarizeContext,
) => Promise<string | { text: string; usage?: Usage }>;

export interface Keep {
  messages?: number;
  tokens?: number;
  /** Share of the history's tokens, 0..1. */
  fraction?: number;
}

/** Every number of preset `offload` (`S1.1` to `S1.12`). */
export interface OffloadOptions {
  /** Offload runs at this many tokens or more; default 150,000, scaled with a window under 48K. */
  offloadThreshold?: number;
  /** Share of the messages that is scanned for results, 0..1; default 0.5. */
  scanRatio?: number;
  /** Only results longer than this many characters are offloaded; default 50. */
  minChars?: number;
  /** Summarise when offloading freed fewer tokens than this and the history is still too large; default 15,000. */
  compactTriggerThreshold?: number;
  /** Steps between two attempts to summarise; default 5. */
  compactCooldownSteps?: number;
  /** Messages kept at the end; default 5. */
  preserveCount?: number;
  /** Target length of a summary in tokens; default 8,000. */
  targetTokens?: number;
}

/** Every number of preset `layered` (`S3.1` to `S3.8`). `clear: "every-turn"` and `largeOutputTokens` switch those
 *  rungs on under another preset too. */
export interface LayeredOptions {
  /** Clear old results at every `prepare`, or never; default `every-turn` (`S3.1`). `break-even` clears them in batches,
   *  when reading less from the provider's cache at the calls to come (as many are expected as there were) saves more
   *  than writing what stands behind the first of them anew costs, and when the session would act otherwise. */
  clear?: "every-turn" | "break-even" | "never";
  /** For `break-even`: price of a token read from the provider's cache, as a share of the price of input; default 0.1. */
  cacheRead?: number;
  /** And of one written to it; default 1.25. */
  cacheWrite?: number;
  /** Tools whose old results are cleared, whatever the letter case; default bash, read_file, write_file, edit_file. */
  compactableTools?: string[];
  /** The newest results of those tools that stay; default 3. */
  keepRecent?: number;
  /** Only results of more tokens than this are cleared; default 1,000. */
  clearMinTokens?: number;
  /** The most tokens that are kept free for an answer; default 20,000 (`S3.2`). */
  outputReserve?: number;
  /** Tokens that the system prompt and the tools may take before they count; default 13,000 (`S3.2`). */
  fixedReserve?: number;
  /** No summary when it could replace fewer tokens than this; default 20,000 (`S3.3`). */
  minSavings?: number;
  /** A result of more tokens than this is stored and previewed; default 40,000 (`S3.8`). */
  largeOutputTokens?: number;
  /** Characters of such a preview; default 2,000. */
  previewChars?: number;
  /** Tools that read a file, whatever the letter case; default read_file (`S3.6`). */
  readTools?: string[];
  /** Files that were read last and are put back behind a summary; default 5. */
  maxRestoreFiles?: number;
  /** Tokens of one of them, cut at the end; default 5,000. */
  maxRestoreTokensPerFile?: number;
  /** Tokens of all of them; default 50,000. */
  maxRestoreTokensTotal?: number;
  /** Messages kept at the end; default 5. */
  preserveCount?: number;
  /** Target length of a summary in tokens; default 8,000. */
  targetTokens?: number;
}

/** Every number of preset `react` (`S2.1` to `S2.7`), in characters. */
export interface ReactOptions {
  /** The first layer; default true. */
  singleEnabled?: boolean;
  /** A larger result is compressed before it is ever sent; default 50,000; `Infinity` switches the layer off. */
  singleResultThreshold?: number;
  /** Size of a chunk; default 50,000. */
  chunkSize?: number;
  /** Share that a chunk is compressed to; default 0.1. */
  chunkRatio?: number;
  /** Share that the joined chunks are compressed to when they are still too large; default 0.1. */
  secondRatio?: number;
  /** The second layer; default true. */
  globalEnabled?: boolean;
  /** Above this share of the limit all results of some size are compressed; default 0.8; 1 switches the layer off. */
  globalCompressionThreshold?: number;
  /** The limit; default 200,000. */
  modelContextLimit?: number;
  /** What the system prompt takes of it; default 5,000. */
  systemPromptLength?: number;
  /** What the instructions take of it; default 3,000. */
  instructionLength?: number;
  /** Only larger results are compressed by the second layer; default 5,000. */
  resultCompressionMinSize?: number;
  /** Share that they are compressed to; default 0.1. */
  globalRatio?: number;
  /** JSON, tables, logs, diffs and HTML are shortened by their structure, without a model; what was compressed before is
   *  taken over; results that later turns rely on get twice the room; what is asked for follows what is answered
   *  (`S2.11`). Default true. */
  strategies?: boolean;
  /** The most that a result which later turns rely on is compressed to, as a share; default 0.3. */
  relianceRatio?: number;
}

/** Every number of preset `factor3` (`S4.1` to `S4.6`). `processTools` switches processing on under another preset
 *  too. */
export interface Factor3Options {
  /** Whose results become what matters of them right after retrieval (`S4.5`), whatever the letter case of the names;
   *  the whole result is stored, and its reference stands in its place. Kept as they are: errors, small results. */
  processTools?: {
    /** Title, snippet and URL; default web_search, search_web, search. */
    search?: string[];
    /** Outline with line ranges; default read_file. */
    files?: string[];
    /** Number of rows and some of them; default query, sql, run_query, execute_sql, query_database. */
    queries?: string[];
    /** Status and key fields; default fetch, http_request, api_request, call_api, api. */
    apis?: string[];
  };
  /** `debug` keeps every result as it is (`S4.6`); default normal. */
  verbosity?: "normal" | "debug";
  /** A result of fewer tokens is kept as it is; default 200. */
  minTokens?: number;
  /** So is JSON or YAML of fewer tokens than this; default 500. */
  structuredMinTokens?: number;
  /** Characters of a snippet of a search; default 300. */
  snippetChars?: number;
  /** A file of more lines becomes its outline; default 500. */
  fileLines?: number;
  /** Lines of an outline at most; default 200. */
  outlineLines?: number;
  /** An answer of more rows becomes a sample of them; default 100. */
  queryRows?: number;
  /** Rows of a sample; default 10. */
  sampleRows?: number;
  /** Characters that the fields of a response take at most; default 4,000. */
  apiChars?: number;
  /** Messages kept at the end; default 3. */
  preserveCount?: number;
  /** Target length of a summary in tokens; default 4,000. */
  targetTokens?: number;
  /** Share of the window from which a warning is told and recent messages are summarised too, 0..1; default 0.8
   *  (`S4.7`). */
  emergencyShare?: number;
}

/** Every number of preset `checkpoint` (`S5.1` to `S5.12`). */
export interface CheckpointOptions {
  /** Size of the window, which decides the prompt's budget; default by `contextWindow` (`S5.9`). */
  tier?: "TIER_1_MINIMAL" | "TIER_2_BASIC" | "TIER_3_STANDARD" | "TIER_4_PREMIUM" | "TIER_5_ULTRA";
  /** Tokens that the system prompt may take; default by `tier`: 200, 500, 1,000, 1,500, 1,500. What it leaves is for the
   *  checkpoints: above that they are made shorter and merged before their time. For them the default grows with
   *  windows above 32K in proportion, as they do; a number that is given is taken as it is. */
  promptBudget?: number;
  /** Tokens kept free for the answer where `maxOutputTokens` does not say; default 1,000, a quarter of a small window
   *  at most. */
  safetyMargin?: number;
  /** A session compresses above this share of the window less budget and margin, 0..1; default 0.75. */
  triggerShare?: number;
  /** Messages kept at the end; default 5. */
  preserveCount?: number;
  /** The user's newest messages that stay word for word; default 10 (`S5.6`). */
  keepUserMessages?: number;
  /** More tokens than this make a checkpoint of level 1; default 3,000 (`S5.7`). */
  compactAbove?: number;
  /** More tokens than this make one of level 2, fewer one of level 3; default 2,000. */
  moderateAbove?: number;
  /** Longest checkpoint of level 1, in tokens for a window up to 32K; default 100. Larger windows have longer ones in
   *  proportion. */
  compactTokens?: number;
  /** The same of level 2; default 300. */
  moderateTokens?: number;
  /** The same of level 3; default 500. */
  detailedTokens?: number;
  /** A checkpoint as many compressions old is made one of level 2; default 5 (`S5.8`). */
  ageModerate?: number;
  /** And then one of level 1; default 10. */
  ageCompact?: number;
  /** So many old checkpoints of level 1 become one, 2 or more; default 3. */
  mergeCount?: number;
  /** Snapshots that a session of any preset keeps, the newest ones, 100 at most; default 5 (`S5.2`). */
  keepSnapshots?: number;
  /** What models can be run with (`S5.12`). With them the window is the limit of `model` at a size of `contextWindow`;
   *  a model or a size that is not listed is an error. */
  profiles?: {
    model: string;
    /** Tokens that are asked for. */
    size: number;
    /** Tokens that the provider then takes; default `share` of the size. */
    contextSize?: number;
    /** 0..1; default 1; 0.85 where a provider wants that. */
    share?: number;
  }[];
}

/** What the app is used for: what a summary must preserve (`S5.10`). Any other name is `ASSISTANT`. */
export type Mode = "DEVELOPER" | "PLANNING" | "DEBUGGER" | "ASSISTANT";

/** How detailed a checkpoint is: 1 compact, 2 moderate, 3 detailed (`S5.7`). */
export type Level = 1 | 2 | 3;

/** What a session is for (`S5.13`). Never compressed: it stands in the system prompt and guides summaries. */
export interface Goal {
  id: string;
  description: string;
  priority: "low" | "medium" | "high";
  status: "active" | "paused" | "completed";
  checkpoints: { description: string; status: "pending" | "in-progress" | "completed"; completedAt?: number }[];
  decisions: { id: string; description: string; rationale: string; locked: boolean }[];
  artifacts: { type: "file"; path: string; action: "created" | "modified" | "deleted" }[];
}

/** Whether the context fits (`S5.12`). */
export interface Validation {
  valid: boolean;
  tokens: number;
  /** The most that fits. */
  limit: number;
  /** Tokens too many. */
  overage?: number;
  message?: string;
  /** What to do, what costs least first. */
  suggestions?: string[];
}

/** A summary that stands in the context (`S5.3`). */
export interface CheckpointRecord {
  id: string;
  /** ms since 1970. */
  timestamp: number;
  /** Indices of the messages that it stands for: from the first to behind the last; 0 to 0 when a fork took it over. */
  messageRange: [number, number];
  originalTokens: number;
  compressedTokens: number;
  /** Compressed to original. */
  compressionRatio: number;
  level?: Level;
  /** Compressions of the session before it. */
  number: number;
}

/** A snapshot that can be restored (`S5.2`). It is no message: handed over as one it is refused (`S5.4`). */
export interface SnapshotInfo {
  id: string;
  /** `emergency`: taken by the session itself before a step that was to make a prompt fit (`S5.15`). */
  purpose: "recovery" | "rollback" | "emergency";
  /** ms since 1970. */
  timestamp: number;
  /** Messages in its context. */
  messageCount: number;
  /** Checkpoints among them. */
  checkpointCount: number;
  /** Tokens of its context. */
  tokens: number;
  goal?: Goal;
}

/** What the model sees, by its parts (`S5.1`): system prompt, checkpoints, recent messages, in this order. The object
 *  and its lists are frozen; the messages are the app's own. */
export interface ActiveContext<M = Message> {
  /** The session's own, without the goal. */
  readonly systemPrompt?: string;
  readonly checkpoints: readonly Readonly<CheckpointRecord>[];
  /** All messages that are neither the system's nor a checkpoint's. */
  readonly recentMessages: readonly (M | NewMessageAmong<M>)[];
  /** Tokens: of the system prompt with tools and goal, of the checkpoints, of the rest, and of all. */
  readonly tokenCount: Readonly<{ system: number; checkpoints: number; recent: number; total: number }>;
}

export interface ProviderOptions {
  kind: "openai" | "anthropic";
  model: string;
  /** Endpoint; default the provider's own. */
  url?: string;
  headers?: Record<string, string>;
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
    | "commit";
  done: number;
  total: number;
  tokensBefore: number;
  tokensNow: number;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface CompactOptions {
  /** Default `offload`. */
  preset?: Preset;
  /** Detected when it can be. */
  format?: Format;
  /** The conversation's model. Without `contextWindow` its window and the most that it answers are looked up
   *  (`modelFacts`), and a model that nobody knows is an error. */
  model?: string;
  /** The summariser's model, when it is another one. */
  summaryModel?: string;
  /** Tokens; default that of `model`, and 200,000 without one. */
  contextWindow?: number;
  /** Tokens that one answer may take. Default where `contextWindow` is given or `model` is not: 16,384; else the most
   *  that the model answers, up to 20,000. Never more than a quarter of the window; `checkpoint` has a margin of its
   *  own. */
  maxOutputTokens?: number;
  /** When a session acts: at this many tokens, or this share of the window. Overrides the preset's own threshold. */
  trigger?: { tokens?: number; fraction?: number };
  /** What stays at the end. Overrides the preset's own count. */
  keep?: Keep;
  /** Tokens kept free for what the messages do not show (tools, margins); default 0. */
  reserveTokens?: number;
  estimator?: Estimator;
  summarize?: Summarize;
  /** A cheaper one for single tool results (`S2.8`); default `summarize`. */
  summarizeResult?: Summarize;
  provider?: ProviderOptions;
  /** Used for `provider`; default the global one. */
  fetch?: typeof fetch;
  /** When every attempt at a summary failed: `none` leaves the history as it is, `extractive` uses the built-in
   *  summariser. Default `none` with `summarize` or `provider`, `extractive` with neither. */
  fallback?: "extractive" | "none";
  /** Attempts in total; default 3. */
  retryCount?: number;
  /** Calls of a model that may be under way at once; default 4. */
  concurrency?: number;
  /** Of one attempt, in ms; default 120,000. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Replaces the estimator everywhere. Called with one message at a time. */
  tokenCounter?: (messages: Message[]) => number;
  /** Which messages stay word for word for ever (`S4.3`); asked when a message is appended. One that would be
   *  summarised is quoted in full, fenced, behind the summary. */
  pinned?: (message: Message, index: number) => boolean;
  /** What becomes of other messages of the user that state constraints, as "never push to main" (`S4.3`). `ask`, the
   *  default, pins nothing: event `pin` and `pinProposals()` tell them, `pin(index)` accepts one, and as long as nobody
   *  does, every summary is asked to repeat the constraints word for word. `accept` pins them at once, as long as pins
   *  take no more than a tenth of the window. `off` looks for none. */
  pinProposals?: "ask" | "accept" | "off";
  /** What a file holds now, for files that are put back behind a summary (`S3.6`). Where it fails, what the model read
   *  is put back. */
  readFile?: (path: string) => Promise<string>;
  onProgress?: (progress: Progress) => void;
  logger?: (level: LogLevel, message: string) => void;
  /** Clock (ms) and id source (any unique string), for reproducible runs. */
  runtime?: { now(): number; id(): string };
  /** Applied to the text that the summariser sees, never to what is stored. */
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

export interface Edit {
  rung: "admit" | "clear" | "offload" | "compress" | "summarise" | "age" | "merge" | "rollover";
  indices: number[];
  tokensFreed: number;
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
  fate: "verbatim" | "summarised" | "offloaded" | "reduced" | "dropped";
  /** It stands word for word inside the message of a summary. */
  quoted?: boolean;
  checkpoint?: string;
  /** Reference of its (first) offloaded result, for `read`. */
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

export interface CompactionResult<M = Message> {
  messages: M[];
  success: boolean;
  error?: CompactionError;
  trigger: "auto" | "manual" | "overflow" | "none";
  previousTokens: number;
  currentTokens: number;
  freedTokens: number;
  preservedCount: number;
  /** References of offloads that nothing in the context refers to any more. */
  deletedFiles: string[];
  summary?: string;
  /** Tokens of what was summarised less those of the summary (`S4.4`). */
  savedTokens?: number;
  /** What `sessionLog()` says about it (`S4.4`). */
  logEntry?: string;
  /** Pins that were proposed for what was summarised and that nobody answered (`S4.3`). Their constraints were quoted to
   *  the summariser as what it must keep; `pin(index)` still brings the message back word for word. */
  pinProposals?: PinProposal[];
  appliedEdits: Edit[];
  ledger: LedgerEntry[];
  usage?: Usage;
  llmCalls: number;
  durationMs: number;
  /** Why nothing was done, or how a fallback was used. */
  reason?: string;
}

export interface Plan {
  willCompact: boolean;
  reason: string;
  tokens: number;
  limit: number;
  /** Tokens that no compaction can go below: what is fixed plus what must stay. */
  floor: number;
  rungs: {
    rung: Edit["rung"];
    indices: number[];
    tokensFreed: number;
    llmCalls: number;
    inputTokens: number;
    outputTokens: number;
  }[];
  /** Why compaction cannot help, when it cannot. */
  proof?: string;
}

export interface ContextUsage {
  usedTokens: number;
  maxTokens: number;
  percent: number;
  threshold: number;
  messageCount: number;
  toolCallCount: number;
  offloadCount: number;
  categories: { name: string; tokens: number; kind: "used" | "free" | "buffer" }[];
}

/** How full the context is, in characters; the names are the document's (`S2.9`). */
export interface ReactStats {
  total_size: number;
  model_limit: number;
  usage_percent: number;
  turns_count: number;
  compression_threshold: number;
  needs_compression: boolean;
}

/** A context as a trajectory (`S2.9`). */
export interface Trajectory {
  metadata: { session: string; created_at: number; updated_at: number; messages: number };
  reasoning_trace: string[];
  execution: { final_response: string; tool_calls: { thought: string; action: object; result: string }[] };
  context_compression: { enabled: boolean; stats: ReactStats };
}

export interface Prepared<M = Message> {
  /** What to send now. */
  messages: (M | NewMessageAmong<M>)[];
  /** The system prompt, when the session has one of its own, and the goal behind it. */
  system?: string;
  usage: ContextUsage;
  edits: Edit[];
  /** Present when a summary was attempted. */
  result?: CompactionResult<M | NewMessageAmong<M>>;
}

export interface Split<M = Message> {
  toCompress: M[];
  toPreserve: M[];
  /** Index of the first message that is preserved. */
  boundary: number;
  /** Where the cut was asked for, before it moved to part no call from its result. */
  requested: number;
  reason?: string;
}

export interface Problem {
  /** Id of the broken rule, as in `OC1`. */
  rule: string;
  index: number;
  message: string;
}

// ---- stores ---------------------------------------------------------------------------------------------------

export type MaybePromise<T> = T | Promise<T>;
/** Made by the library, never from user text: first the table (`meta`, `sessions`, `log`, `blobs`, `views`, `jobs`),
 *  then the row, of one part or more. Strings are well formed and sort by code unit, numbers are finite and sort by
 *  value, numbers before strings, a prefix before what it begins. */
export type Key = readonly (string | number)[];

/** What one commit writes. A key is at most once among `puts` and `deletes`, else the batch is refused. */
export interface Batch {
  /** All must hold, or nothing is written and `conflict` is thrown. `version` counts the commits that put the key,
   *  from 1, whether they expected one or not, and begins again when the key was deleted; `null` means that the key
   *  must not exist. */
  expect: { key: Key; version: number | null }[];
  /** The store copies the values before `commit` returns. */
  puts: [Key, Uint8Array][];
  /** A key that does not exist is no error. */
  deletes: Key[];
  /** `strict` resolves after the data were handed to the disk. */
  durability: "strict" | "relaxed";
}

/** Where sessions are kept. Methods may be synchronous or asynchronous. `storeConformance` checks all that is said
 *  here. Errors have the codes of `CompactionError`: `conflict`, `quota_exceeded`, `too_large`, `unsupported_value`,
 *  `invalid_option` (a key), `store_unavailable`, `store_corrupt`, `schema_too_new`, `closed`: nothing was written.
 *  Only `indeterminate` leaves open whether the batch was written: read again. */
export interface Store {
  readonly caps: {
    atomic: "batch" | "single-key";
    cas: boolean;
    /** What a strict commit survives: `synced` a power cut, `process` a crash of the process. */
    durable: "synced" | "process" | "none";
    /** A larger value is refused with `too_large`. */
    maxValueBytes: number;
    /** A batch of more expectations, puts and deletes together is refused with `too_large`. */
    maxBatchOps: number;
  };
  /** Values in the order of `keys`, as they were at one moment; `undefined` where there is none. A value is the
   *  caller's own, in a buffer of its exact length. */
  read(keys: Key[]): MaybePromise<(Uint8Array | undefined)[]>;
  /** Entries whose key begins with `prefix` (a table at least), in key order, or from the last back with `reverse`.
   *  Begins past `after`, a key under the prefix that need not exist. Stops at `limit` entries or before its values
   *  pass `maxBytes` (but returns one entry at least). With `keysOnly`, values are empty. */
  scan(
    prefix: Key,
    options: { after?: Key; limit: number; maxBytes: number; reverse?: boolean; keysOnly?: boolean },
  ): MaybePromise<[Key, Uint8Array][]>;
  /** All or nothing; resolves when it is as durable as asked. */
  commit(batch: Batch): MaybePromise<void>;
  /** Waits for what is under way. What is called later rejects with `closed`. */
  close?(): MaybePromise<void>;
}

// ---- sessions -------------------------------------------------------------------------------------------------

export interface SessionOptions extends CompactOptions {
  /** The app's own name for the session; default a new one. */
  id?: string;
  /** Default: IndexedDB where there is one, else memory. */
  store?: Store | "memory" | "indexeddb";
  systemPrompt?: string | (() => string);
  /** Id of the session that a new one is begun from, empty: a sub-agent with a context of its own (`S3.10`). */
  parent?: string;
}

/** What is told of a session of a store. */
export interface SessionInfo {
  id: string;
  format?: Format;
  /** Messages in its log. */
  messages: number;
  createdAt: number;
  updatedAt: number;
  /** The session that it was begun from, which may be deleted by now, and the rows of its log at that time (`S3.10`). */
  parent?: { id: string; seq: number };
}

/** What a chat shows when a command has ended (`S1.13`): lines of text for a fixed-width font. */
export interface CommandAnswer {
  /** `idle`: there was nothing to do. */
  tone: "ok" | "idle" | "error";
  text: string;
}

/** What `importSession` takes beside the options of a session. `id` is the one that the session had, by default, or, of
 *  another agent's, a new one; there must be none of that name in the store. */
export interface ImportOptions extends SessionOptions {
  /** What the session is restored from: its `context`, summaries and references as they are (default), or its
   *  `transcript`, so that every message stands in the context but those that a restore or a rewind left behind, and
   *  there are no snapshots (`S3.9`). */
  from?: "context" | "transcript";
  /** Told what was found, once the session is there. */
  onImport?: (report: ImportReport) => void;
}

export interface ImportReport {
  /** Transcripts of Claude Code are read as `anthropic`, of Codex as `openai-responses`. */
  kind: "context-compactor" | "claude-code" | "codex";
  /** Lines with something in them. */
  lines: number;
  messages: number;
  /** How many lines (of branches that were left: messages) are no part of the conversation, by what they are. */
  skipped: Record<string, number>;
}

/** A session in numbers (`S5.3`). Times are in ms since 1970. */
export interface SessionMetadata {
  startTime: number;
  lastUpdate: number;
  totalMessages: number;
  totalTokens: number;
  /** Summaries of the history so far. */
  compressionCount: number;
}

export interface SessionEvents {
  /** `S1.14`. */
  offload: { count: number; freedTokens: number };
  /** `S1.14`. */
  compact: { previousTokens: number; currentTokens: number; freedTokens: number; deletedFileCount: number };
  progress: Progress;
  /** A message of the user states constraints (`S4.3`); `accepted` when it is pinned already. */
  pin: PinProposal & { accepted: boolean };
  warning: { code: string; message: string };
}

/** A passage that `search` found. */
export interface SearchHit {
  /** For `read`: of the offload, or of the whole message. */
  ref: string;
  /** Position of the message in the session's log. */
  seq: number;
  /** In one line. */
  snippet: string;
}

type Described = { name: string; description: string };
type JsonSchema = { type: "object"; [keyword: string]: unknown };

/** A tool as an item of the list that each format's provider is sent. */
interface ToolDefinitions {
  "openai-chat": { type: "function"; function: Described & { parameters: JsonSchema } };
  "openai-responses": { type: "function"; parameters: JsonSchema; strict: boolean } & Described;
  anthropic: Described & { input_schema: JsonSchema };
  /** One of the `functionDeclarations` of the one tool that the API takes. */
  gemini: Described & { parametersJsonSchema: JsonSchema };
  /** For `tools[name] = tool({ description, inputSchema: jsonSchema(inputSchema) })`. */
  "ai-sdk": { type: "function"; inputSchema: JsonSchema } & Described;
  react: Described & { parameters: JsonSchema };
}
export type ToolDefinition<F extends Format = Format> = ToolDefinitions[F];

/** The message that answers a call. */
interface ToolAnswers {
  "openai-chat": { role: "tool"; tool_call_id: string; content: string };
  "openai-responses": { type: "function_call_output"; call_id: string; output: string };
  anthropic: {
    role: "user";
    content: { type: "tool_result"; tool_use_id: string; content: string; is_error?: boolean }[];
  };
  /** Parallel calls are answered in one content: put the `parts` of their answers together. */
  gemini: {
    role: "user";
    parts: { functionResponse: { id?: string; name: string; response: Record<string, unknown> } }[];
  };
  "ai-sdk": {
    role: "tool";
    content: {
      type: "tool-result";
      toolCallId: string;
      toolName: string;
      output: { type: "text" | "error-text"; value: string };
    }[];
  };
  /** The turn, with the thought when `{ thought, action }` was handed over. */
  react: { thought: string; action: object; result: string };
}
export type ToolAnswer<F extends Format = Format> = ToolAnswers[F];

/** The tools `recall_read` and `recall_search`. */
export interface RecallTools<F extends Format = Format> {
  /** For the list of tools of a request, and for `prepare({ tools })`, which counts them. */
  definitions: ToolDefinition<F>[];
  /** Answers a call as the provider returned it: an item of `tool_calls`, a `tool_use` block, a `function_call` item, a
   *  part with a `functionCall`, a tool call of the AI SDK (or a tool part of a UI message, which comes back with its
   *  output), an action. What the model got wrong, such as a reference that there is not, is part of the answer, so that
   *  it can go on. Throws `invalid_message` for what is no call, and what the store throws. */
  handle<C>(call: C): Promise<C extends { state: unknown } ? C : ToolAnswer<F>>;
}

export interface Session<M = Message> extends AsyncDisposable {
  readonly id: string;
  /** The format that the messages are read as. Plain ones, and none, are read as `openai-chat` until one comes that
   *  only another format has, unless the options say it. */
  readonly format: Format;
  /** Durable when it resolves. */
  append(...messages: M[]): Promise<void>;
  /** Hand over the whole history instead: known messages are recognised, the rest appended. A changed past is
   *  reported with the index where it differs, and nothing is appended. */
  sync(messages: readonly M[]): Promise<{ appended: number; diverged?: number }>;
  /** The messages to send now, made to fit as the preset says. */
  prepare(options?: { signal?: AbortSignal; tools?: unknown; trigger?: "auto" | "overflow" }): Promise<Prepared<M>>;
  /** `/compact` (`S1.13`). */
  compact(options?: { instructions?: string; signal?: AbortSignal }): Promise<CompactionResult<M | NewMessageAmong<M>>>;
  /** Makes the context what it was just before message `index` was appended, to edit that message or have it written
   *  again: the view of that time, so a summary that was made later is undone. `index` counts every message of the log, as
   *  `explain` does, and must not part an exchange. `append` and `sync` go on from there, `sync` with the history as it is
   *  then. What was said since stays in the log, and rewinding to an index behind it brings it back; the goal stays as it
   *  is. Throws `invalid_option`, naming an index that works. */
  rewind(index: number): Promise<void>;
  /** Begins a session with the context of this one, for a sub-agent: the same messages, settings and goal, and a log of
   *  its own with the messages that stand in this context; what a summary stands for stays here. Its offloads are copies:
   *  neither session changes the other from then on, nor does deleting one. Throws `conflict` when there is a session
   *  called `id` (`S3.10`). */
  fork(options?: { id?: string }): Promise<Session<M>>;
  /** The sessions that were begun from this one, oldest first. */
  children(): Promise<SessionInfo[]>;
  /** What `prepare` would do now. */
  plan(): Plan;
  /** `/context` (`S1.13`). */
  getContextUsage(): ContextUsage;
  /** What the session is for. */
  readonly goal: Goal | undefined;
  /** Durable when it resolves. */
  setGoal(goal: Goal): Promise<void>;
  /** Takes over what the markers in a model's output say about the goal: `[CHECKPOINT] … - COMPLETED`,
   *  `[DECISION] …`, `[ARTIFACT] Created …`, at the start of a line (`S5.13`). */
  applyMarkers(modelOutput: string): Promise<Goal>;
  /** How far the context can be trusted after its compressions by a model of this size (`S5.11`). */
  reliability(): { score: number; warn: boolean };
  /** Pins the message with this index: word for word for ever (`S4.3`), also one that was summarised already. Durable
   *  when it resolves. */
  pin(index: number): Promise<void>;
  /** The pins that are proposed and not answered, in the order of their messages (`S4.3`). */
  pinProposals(): PinProposal[];
  /** What every summary saved, with the use of the window before and after, as Markdown (`S4.4`); times are UTC. Empty
   *  when there is none yet. Never sent to a model. */
  sessionLog(): string;
  /** Whether the context fits as it is (`S5.12`). */
  validate(): Validation;
  /** The context by its parts, as it is now (`S5.1`). */
  getState(): ActiveContext<M>;
  /** Tokens that the next messages may take: what the window leaves after the answer's share; never below 0. */
  getAvailableTokens(): number;
  /** Takes messages out of the context, given by their `index` in `explain()`; the transcript keeps them, and so do
   *  `search` and `sync`. A call goes with its results: the indices of all that went are returned. Refused with
   *  `invalid_option` where a message is pinned, stands in a checkpoint, or the rest would break a rule of its provider
   *  (`S5.1`). */
  removeMessages(ids: readonly number[]): Promise<number[]>;
  /** Takes a snapshot of messages, checkpoints and goal: its id (`S5.2`). Durable when it resolves, small whatever the
   *  session's size, and never sent to a model. Default `recovery`. The newest 5 are kept. */
  snapshot(purpose?: "recovery" | "rollback"): Promise<string>;
  /** The snapshots that can be restored, oldest first. */
  snapshots(): Promise<SnapshotInfo[]>;
  /** Goes back to a snapshot: the context and the goal are exactly what they were. What was said since is in the context
   *  no more and `sync` expects it no more; transcript and `explain()` keep it, and a snapshot of it brings it back.
   *  Throws `not_found` for one that there is not, or not any more. */
  restore(id: string): Promise<void>;
  /** The summaries that stand in the context, oldest first (`S5.3`). */
  checkpoints(): CheckpointRecord[];
  /** Every checkpoint that was ever made, also those that another one stands for by now (`S5.3`). */
  checkpointRecords(): Promise<CheckpointRecord[]>;
  /** The session in numbers. */
  metadata(): SessionMetadata;
  /** Every message in order, as it was appended, whatever was compacted since: the same objects where the process holds
   *  them. As in `explain()`, those that a restore or a rewind left behind are among them. Read a page at a time; what is
   *  appended meanwhile is not part of it (`S5.3`). */
  history(): AsyncIterable<M>;
  /** The session as an archive of JSON lines, for `importSession`: a line of metadata, then each message with its
   *  position, id, time and role, each change of the context, the snapshots, the checkpoints, the offloads. Read as fast
   *  as it is taken. It has all that the session has: keep it as you keep the conversation (`S3.9`). */
  exportJsonl(): ReadableStream<Uint8Array>;
  /** The conversation to read: texts as they are, tools in fences, media named. No text in it can pose as a heading of
   *  the document (`S5.3`). */
  exportMarkdown(): Promise<string>;
  /** Appends a turn of a trajectory, and compresses results when the whole has become too large (`S2.4`). */
  addTurn(turn: { thought: string; action: object; result: string }): Promise<void>;
  /** How full the context is, in characters (`S2.9`). */
  stats(): ReactStats;
  /** The context as a trajectory, whatever its format (`S2.9`). */
  exportTrajectory(): Trajectory;
  /** The fate of every message of the session. */
  explain(): LedgerEntry[];
  /** The text of an offload, or of what `search` found: characters `offset .. offset + limit`. */
  read(ref: string, range?: { offset?: number; limit?: number }): Promise<string>;
  /** The passages of the whole conversation that match best, best first: also of what was offloaded or summarised. `limit`
   *  is 10 by default. */
  search(query: string, options?: { limit?: number }): Promise<SearchHit[]>;
  /** Tools with which the model does both itself, in `format`, else in the session's own (name it while the session is
   *  empty). Their results are never offloaded. */
  tools<F extends Format = Format>(format?: F): RecallTools<F>;
  on<E extends keyof SessionEvents>(event: E, listener: (data: SessionEvents[E]) => void): () => void;
  /** Waits for what is under way, then releases the engine's memory. */
  close(): Promise<void>;
  /** Removes everything that the session stored. */
  delete(): Promise<void>;
}
