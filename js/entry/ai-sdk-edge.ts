/** Entry `context-compactor/ai-sdk` for edge runtimes that import a compiled module by `?module`. */

import wasm from "../../core.wasm?module";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export {
  compose,
  contextCompactor,
  type CompactionData,
  type AiSdkCompactor,
  type AiSdkCompactorOptions,
  type PartWriter,
} from "../adapters/ai-sdk.js";
export type { ExecutableRecallTools, ExecutableTool } from "../adapters/recall-tools.js";
