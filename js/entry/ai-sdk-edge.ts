/** Entry `context-compactor/ai-sdk` for edge runtimes. */

import { bring } from "../host/edge.js";

bring();

export * from "../adapters/ai-sdk.js";
export type { ExecutableRecallTools, ExecutableTool } from "../adapters/recall-tools.js";
