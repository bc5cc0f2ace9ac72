import type { RunState, SourceName } from "./types.js";

export const WINDOWS = [8_192, 16_384, 32_768, 65_536, 131_072] as const;
export const SPEEDS = [1, 2, 4, 8, 32] as const;
/** Small enough for each run that compaction has something to do. */
export const WINDOW_OF: Record<SourceName, number> = {
  "invoicing-run": 32_768,
  "queue-triage": 8_192,
  own: 32_768,
};

/** Before a session is open. */
export const EMPTY: RunState = {
  phase: "opening",
  error: undefined,
  id: "",
  sourceName: "invoicing-run",
  contextWindow: 32_768,
  preset: "balanced",
  economy: false,
  source: [],
  cursor: 0,
  log: [],
  context: [],
  weights: [],
  sourceWeights: [],
  samples: [],
  compactions: [],
  offloads: [],
  ledger: [],
  usage: undefined,
  idle: undefined,
  playing: false,
  speed: 8,
  view: undefined,
  busy: undefined,
  chat: [],
};
