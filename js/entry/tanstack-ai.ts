/** Entry `context-compactor/tanstack-ai`. */

import { bring } from "../host/files.js";

bring();

export * from "../adapters/tanstack-ai.js";
