/** Entry `context-compactor/history` for edge runtimes that import a compiled module by `?module`. */

import wasm from "../../core.wasm?module";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export {
  buildSummaryPrompt,
  detectFormat,
  extractiveSummary,
  proposePins,
  repairHistory,
  splitMessages,
  validateHistory,
} from "../history.js";
export type { Problem, Split } from "../types/history.js";
