/** Entry `context-compactor` for edge runtimes. */

import { bring } from "../host/edge.js";

bring();

export * from "../index.js";
