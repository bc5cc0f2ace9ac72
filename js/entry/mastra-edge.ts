/** Entry `context-compactor/mastra` for edge runtimes. */

import { bring } from "../host/edge.js";

bring();

export * from "../adapters/mastra.js";
