/** Entry `context-compactor/tanstack-ai` for Cloudflare Workers. */

import { bring } from "../host/workerd.js";

bring();

export * from "../adapters/tanstack-ai.js";
