/** Entry `context-compactor/worker-thread`: the engine's side of `context-compactor/worker`, for a worker of the app's own. */

import { bring } from "../host/files.js";

bring();

export { opfsStore, type OpfsOptions } from "../store/opfs/store.js";
export { serve } from "../worker/serve.js";
