/** Entry `context-compactor/tanstack-ai` where its module comes as code, which every bundler can load apart. */

import { compiled } from "../module.js";
import { bringFrom } from "../engine.js";

bringFrom(() => compiled(import("../wasm/inline.js")));

export { contextCompactor, type TanStackCompactor, type TanStackCompactorOptions, type TanStackMiddleware } from "../adapters/tanstack-ai.js";
