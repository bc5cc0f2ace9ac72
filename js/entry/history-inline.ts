/** Entry `context-compactor/history` where its module comes as code, which every bundler can load apart. */

import { compiled } from "../module.js";
import { bringFrom } from "../engine.js";

bringFrom(() => compiled(import("../wasm/inline.js")));

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
