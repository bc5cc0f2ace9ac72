/** Package `context-compactor-evaluator` for edge runtimes that import a compiled module by `?module`. */

import wasm from "../../evaluator.wasm?module";
import { bringFrom } from "../evaluator/module.js";

bringFrom(() => Promise.resolve(wasm));

export * from "../evaluator/index.js";
