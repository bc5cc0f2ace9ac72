/** Entry `context-compactor/ai-sdk` where its module comes as code, which every bundler can load apart. */

import { compiled } from "../module.js";
import { bringFrom } from "../engine.js";

bringFrom(() => compiled(import("../wasm/inline.js")));

export {
  compose,
  contextCompactor,
  type CompactionData,
  type AiSdkCompactor,
  type AiSdkCompactorOptions,
  type PartWriter,
} from "../adapters/ai-sdk.js";
export type { ExecutableRecallTools, ExecutableTool } from "../adapters/recall-tools.js";
