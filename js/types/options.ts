/** Types of option values, and of what callbacks receive. */

import type { CompactOptions as NativeOptions, Names, SessionOptions as NativeSessionOptions } from "../generated/options.js";
import type { CustomFormat } from "./formats.js";
import type { Format } from "./messages.js";

/** The option `format`, which may also be one of the app's own. */
interface AnyFormat {
  /** The format of the messages: its name, or how messages of another library or of your own are read and written
   *  (`CustomFormat`; `context-compactor/formats` has those of several libraries). Default: detected from the messages. */
  format?: Format | CustomFormat;
}

/** Options of everything that plans or compacts. */
export interface CompactOptions extends Omit<NativeOptions, "format">, AnyFormat {}

/** Options of a session: those of `compact` without `state`, since a session keeps its state itself, and its own. */
export interface SessionOptions extends Omit<NativeSessionOptions, "format" | "state">, AnyFormat {}

/** How tokens are estimated: `calibrated` (default) is fitted to real tokenizers, `chars4` is `round(characters / 4)`. */
export type Estimator = "calibrated" | "chars4";

/** How many of the newest messages to keep: one of the three. */
export interface Keep {
  /** This many messages. */
  messages?: number;
  /** Messages of this many tokens. */
  tokens?: number;
  /** Messages of this fraction of the history's tokens, 0..1. */
  fraction?: number;
}

/** The kind of work, which decides what a summary must preserve. `buildSummaryPrompt` treats any other name as
 *  `assistant`. */
export type Mode = "developer" | "planning" | "debugger" | "assistant";

/** A strategy of compaction with its numbers: which steps it takes, when, and how much it keeps. Default: `balanced`. */
export type Preset = Names["preset"];

/** How the results of one tool are treated (option `toolPolicies`). A field that is left out changes nothing for the tool. */
export interface ToolPolicy {
  /** `always`: results that are appended while this is set stay verbatim, as pinned messages do. `newest`: the tool's older results leave
   *  first. `disposable`: all of its results leave first, once the model has answered them. The last two need option `clear`. */
  keep?: "always" | "newest" | "disposable";
  /** Results of more tokens are stored, and the model sees a preview, in place of `admit.maxTokens`. Needs option `admit`. */
  maxTokens?: number;
  /** Results become this digest before they are sent, whatever `digest.tools` says; `false`: they become none. Needs option `digest`. */
  digest?: "search" | "file" | "query" | "api" | false;
}

/** A window size that a model can be run with (option `profiles` of preset `checkpoint`). */
export interface ModelProfile {
  /** The model's name, as in option `model`. */
  model: string;
  /** The size to ask for, in tokens: option `contextWindow`. */
  size: number;
  /** Tokens that the provider then accepts. Default: `share` of `size`. */
  contextSize?: number;
  /** Usable fraction of `size`, 0..1. Default 1; some providers need 0.85. */
  share?: number;
}

/** Progress of an operation, for `onProgress` and event `progress`. */
export interface Progress {
  /** The current stage. Preset `checkpoint` has six: identify, prepare, summarize, checkpoint, update, validate. `verify`
   *  and `erase` belong to those calls. */
  stage:
    | "identify"
    | "prepare"
    | "read"
    | "offload"
    | "compress"
    | "summarize"
    | "checkpoint"
    | "update"
    | "validate"
    | "commit"
    | "verify"
    | "erase";
  /** Completed steps of this stage, of `total`. */
  done: number;
  /** Steps of this stage. */
  total: number;
  /** Tokens of the context before the operation. */
  previousTokens: number;
  /** Tokens of the context now. */
  currentTokens: number;
}

/** Severity of a line for option `logger`. */
export type LogLevel = "debug" | "info" | "warn" | "error";
