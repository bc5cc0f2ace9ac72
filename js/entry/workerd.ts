/** Entry `context-compactor` for Cloudflare Workers. */

import { bring } from "../host/workerd.js";

bring();

export * from "../index.js";
