/** Entry `context-compactor/testing` for Cloudflare Workers, which compile no bytes. */

import wasm from "../../core.wasm";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { formatConformance } from "../formats/conformance.js";
export { storeConformance, type ConformanceCase, type ConformanceOptions } from "../store/conformance.js";
