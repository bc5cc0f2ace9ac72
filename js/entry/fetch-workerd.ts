/** Entry `context-compactor/fetch` for Cloudflare Workers. */

import { bring } from "../host/workerd.js";

bring();

export * from "../adapters/fetch.js";
