/** Entry `context-compactor/mastra` for Cloudflare Workers. */

import { bring } from "../host/workerd.js";

bring();

export * from "../adapters/mastra.js";
