/** The presets and every number of each. */

/** Presets; the default is `balanced`. */
export type Preset = "balanced" | "offload" | "react" | "layered" | "factor3" | "checkpoint";

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
  /** Clear old results at every `prepare`, or never; default `every-turn` (`S3.1`). `break-even`, the default of
   *  `balanced`, clears them in batches: when the calls since they grew old paid more for reading them from the provider's
   *  cache than writing what stands behind the first of them anew costs, and when the session would act otherwise. */
  clear?: "every-turn" | "break-even" | "never";
  /** For `break-even`: price of a token read from the provider's cache, as a share of the price of input; default that
   *  of the model where its prices are known, else 0.1. */
  cacheRead?: number;
  /** And of one written to it; default that of the model, else 1.25. */
  cacheWrite?: number;
  /** Tools whose old results are cleared, whatever the letter case; default bash, read_file, write_file, edit_file;
   *  preset `balanced`: all. */
  compactableTools?: string[];
  /** The newest results of those tools that stay; default 3. */
  keepRecent?: number;
  /** Only results of more tokens than this are cleared; default 1,000. */
  clearMinTokens?: number;
  /** The inputs of calls whose results are old are cleared too, when they are as large: their long texts go to the store, a
   *  reference with their length and first line stands in their places. Calls that a provider holds to something (a signature,
   *  a record of its own) stay. Default false; preset `balanced`: true. */
  clearInputs?: boolean;
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
  /** The limit in characters, as trajectories are measured elsewhere. Without it the limit is the window, in tokens. */
  modelContextLimit?: number;
  /** What the system prompt takes of `modelContextLimit`; default 5,000. */
  systemPromptLength?: number;
  /** What the instructions take of `modelContextLimit`; default 3,000. */
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
