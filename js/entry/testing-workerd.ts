/** Entry `context-compactor/testing` for Cloudflare Workers. */

import { bring } from "../host/workerd.js";

bring();

export * from "../formats/conformance.js";
export * from "../store/conformance.js";
