/** Entry `context-compactor/langchain` for Cloudflare Workers, which compile no bytes. */

import wasm from "../../core.wasm";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { compactionMiddleware, type CompactionMiddleware, type CompactionMiddlewareOptions } from "../adapters/langchain.js";
