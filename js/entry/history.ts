/** Entry `context-compactor/history`. */

import { bring } from "../host/files.js";

bring();

export * from "../history.js";
export type { Problem, Split } from "../types/history.js";
