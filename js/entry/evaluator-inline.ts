/** Entry `context-compactor/evaluator` where its module comes as code, which every bundler can load apart. */

import { bringFrom } from "../evaluator/module.js";

bringFrom(async () => WebAssembly.compile((await import("../wasm/evaluator-inline.js")).bytes));

export * from "../evaluator/index.js";
