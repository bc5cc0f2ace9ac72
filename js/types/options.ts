/** What options are made of, and what the app's callbacks are told. */

/** `calibrated` (default) is fitted to real tokenizers; `chars4` is `round(characters / 4)`. */
export type Estimator = "calibrated" | "chars4";

export interface Keep {
  messages?: number;
  tokens?: number;
  /** Share of the history's tokens, 0..1. */
  fraction?: number;
}

/** What the app is used for: what a summary must preserve. `buildSummaryPrompt` takes any other name for `assistant`. */
export type Mode = "developer" | "planning" | "debugger" | "assistant";

/** Ways to compact, see docs/presets.md; the default is `balanced`. */
export type Preset = "balanced" | "offload" | "react" | "layered" | "factor3" | "checkpoint";

/** A size that a model can be run with. */
export interface ModelProfile {
  model: string;
  /** Tokens that are asked for. */
  size: number;
  /** Tokens that the provider then takes; default `share` of `size`. */
  contextSize?: number;
  /** 0..1, default 1; 0.85 where a provider wants that. */
  share?: number;
}

export interface Progress {
  /** Preset `checkpoint` tells its six: identify, prepare, summarize, checkpoint, update, validate (`S5.5`). */
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
  done: number;
  total: number;
  previousTokens: number;
  currentTokens: number;
}

export type LogLevel = "debug" | "info" | "warn" | "error";
