/** Entry `context-compactor/ai-sdk`. */

import { bring } from "../host/files.js";

bring();

export * from "../adapters/ai-sdk.js";
export type { ExecutableRecallTools, ExecutableTool } from "../adapters/recall-tools.js";
