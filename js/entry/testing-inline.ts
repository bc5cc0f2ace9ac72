/** Entry `context-compactor/testing` where its module comes as code, which every bundler can load apart. */

import { compiled } from "../module.js";
import { bringFrom } from "../engine.js";

bringFrom(() => compiled(import("../wasm/inline.js")));

export { formatConformance } from "../formats/conformance.js";
export { storeConformance, type ConformanceCase, type ConformanceOptions } from "../store/conformance.js";
