/** Entry `context-compactor/mastra`. */

import { bring } from "../host/files.js";

bring();

export * from "../adapters/mastra.js";
