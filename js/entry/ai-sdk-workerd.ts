/** Entry `context-compactor/ai-sdk` for Cloudflare Workers. */

import { bring } from "../host/workerd.js";

bring();

export * from "../adapters/ai-sdk.js";
export type { ExecutableRecallTools, ExecutableTool } from "../adapters/recall-tools.js";
