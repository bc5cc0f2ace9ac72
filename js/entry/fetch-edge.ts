/** Entry `context-compactor/fetch` for edge runtimes that import a compiled module by `?module`. */

import wasm from "../../core.wasm?module";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { compactingFetch, type CompactingFetch, type CompactingFetchOptions } from "../adapters/fetch.js";
