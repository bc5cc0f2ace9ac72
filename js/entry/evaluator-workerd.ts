/** Package `context-compactor-evaluator` for Cloudflare Workers, which compile no bytes. */

import wasm from "../../evaluator.wasm";
import { bringFrom } from "../evaluator/module.js";

bringFrom(() => Promise.resolve(wasm));

export * from "../evaluator/index.js";
