/** Entry `context-compactor/fetch` where its module comes as code, which every bundler can load apart. */

import { compiled } from "../module.js";
import { bringFrom } from "../engine.js";

bringFrom(() => compiled(import("../wasm/inline.js")));

export { compactingFetch, type CompactingFetch, type CompactingFetchOptions } from "../adapters/fetch.js";
