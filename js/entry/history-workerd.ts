/** Entry `context-compactor/history` for Cloudflare Workers, which compile no bytes. */

import wasm from "../../core.wasm";
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
