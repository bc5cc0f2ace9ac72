/** Entry `context-compactor/langchain` where its module comes as code, which every bundler can load apart. */

import { compiled } from "../module.js";
import { bringFrom } from "../engine.js";

bringFrom(() => compiled(import("../wasm/inline.js")));

export { compactionMiddleware, type CompactionMiddleware, type CompactionMiddlewareOptions } from "../adapters/langchain.js";
