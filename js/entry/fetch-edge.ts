/** Entry `context-compactor/fetch` for edge runtimes. */

import { bring } from "../host/edge.js";

bring();

export * from "../adapters/fetch.js";
