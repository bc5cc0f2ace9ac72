/** Package `context-compactor-evaluator` where its module comes as code, which every bundler can load apart. */

import { compiled } from "../module.js";
import { bringFrom } from "../evaluator/module.js";

bringFrom(() => compiled(import("../wasm/evaluator-inline.js")));

export * from "../evaluator/index.js";
