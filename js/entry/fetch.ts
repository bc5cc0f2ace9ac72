/** Entry `context-compactor/fetch`. */

import { bring } from "../host/files.js";

bring();

export * from "../adapters/fetch.js";
