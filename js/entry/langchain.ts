/** Entry `context-compactor/langchain`. */

import { bring } from "../host/files.js";

bring();

export * from "../adapters/langchain.js";
