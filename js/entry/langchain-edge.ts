/** Entry `context-compactor/langchain` for edge runtimes. */

import { bring } from "../host/edge.js";

bring();

export * from "../adapters/langchain.js";
