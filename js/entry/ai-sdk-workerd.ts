/** Entry `context-compactor/ai-sdk` for Cloudflare Workers, which compile no bytes. */

import wasm from "../../core.wasm";
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
