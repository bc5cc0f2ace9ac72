/** Entry `context-compactor/history` for Cloudflare Workers. */

import { bring } from "../host/workerd.js";

bring();

export * from "../history.js";
export type { Problem, Split } from "../types/history.js";
