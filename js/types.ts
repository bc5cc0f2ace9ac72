/** Public types of context-compactor. Token counts are tokens, times are milliseconds, unless a name says otherwise. */

export type {
  AdvancedOptions,
  CheckpointOptions,
  Factor3Options,
  LayeredOptions,
  OffloadOptions,
  PresetOptions,
  Prices,
  Provider,
  ReactOptions,
  StateOptions,
  SummarizeOptions,
} from "./generated/options.js";
export type * from "./types/adapters.js";
export type * from "./types/formats.js";
export type * from "./types/messages.js";
export type * from "./types/models.js";
export type * from "./types/nouns.js";
export type * from "./types/options.js";
export type * from "./types/pool.js";
export type * from "./types/results.js";
export type * from "./types/session.js";
export type * from "./types/state.js";
export type * from "./types/store.js";
export type * from "./types/summaries.js";
export type * from "./types/tools.js";
