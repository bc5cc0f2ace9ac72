/** Entry `context-compactor/langchain` for edge runtimes that import a compiled module by `?module`. */

import wasm from "../../core.wasm?module";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { compactionMiddleware, type CompactionMiddleware, type CompactionMiddlewareOptions } from "../adapters/langchain.js";
