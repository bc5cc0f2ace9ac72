/** Entry `context-compactor/tanstack-ai` for edge runtimes that import a compiled module by `?module`. */

import wasm from "../../core.wasm?module";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { contextCompactor, type TanStackCompactor, type TanStackCompactorOptions, type TanStackMiddleware } from "../adapters/tanstack-ai.js";
