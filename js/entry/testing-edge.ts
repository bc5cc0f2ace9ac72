/** Entry `context-compactor/testing` for edge runtimes. */

import { bring } from "../host/edge.js";

bring();

export * from "../formats/conformance.js";
export * from "../store/conformance.js";
