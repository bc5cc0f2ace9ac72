/** Entry `context-compactor/testing` for edge runtimes that import a compiled module by `?module`. */

import wasm from "../../core.wasm?module";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { formatConformance } from "../formats/conformance.js";
export { storeConformance, type ConformanceCase, type ConformanceOptions } from "../store/conformance.js";
