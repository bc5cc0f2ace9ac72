/** Entry `context-compactor/testing`. */

import { bring } from "../host/files.js";

bring();

export * from "../formats/conformance.js";
export * from "../store/conformance.js";
