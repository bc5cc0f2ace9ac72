/** Entry `context-compactor/tanstack-ai` for Cloudflare Workers, which compile no bytes. */

import wasm from "../../core.wasm";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { contextCompactor, type TanStackCompactor, type TanStackCompactorOptions, type TanStackMiddleware } from "../adapters/tanstack-ai.js";
