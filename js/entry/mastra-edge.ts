/** Entry `context-compactor/mastra` for edge runtimes that import a compiled module by `?module`. */

import wasm from "../../core.wasm?module";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { ContextCompactor, type ContextCompactorOptions } from "../adapters/mastra.js";
