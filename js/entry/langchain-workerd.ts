/** Entry `context-compactor/langchain` for Cloudflare Workers. */

import { bring } from "../host/workerd.js";

bring();

export * from "../adapters/langchain.js";
