/** Entry `context-compactor`: the engine comes with the first call that needs it, from its file or as code. */

import { bring } from "../host/files.js";

bring();

export * from "../index.js";
