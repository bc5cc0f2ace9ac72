/** Entry `context-compactor/mastra` for Cloudflare Workers, which compile no bytes. */

import wasm from "../../core.wasm";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { ContextCompactor, type ContextCompactorOptions } from "../adapters/mastra.js";
