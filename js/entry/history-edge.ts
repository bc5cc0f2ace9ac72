/** Entry `context-compactor/history` for edge runtimes. */

import { bring } from "../host/edge.js";

bring();

export * from "../history.js";
export type { Problem, Split } from "../types/history.js";
