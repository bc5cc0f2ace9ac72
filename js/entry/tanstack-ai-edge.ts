/** Entry `context-compactor/tanstack-ai` for edge runtimes. */

import { bring } from "../host/edge.js";

bring();

export * from "../adapters/tanstack-ai.js";
