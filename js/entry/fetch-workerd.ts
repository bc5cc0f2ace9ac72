/** Entry `context-compactor/fetch` for Cloudflare Workers, which compile no bytes. */

import wasm from "../../core.wasm";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { compactingFetch, type CompactingFetch, type CompactingFetchOptions } from "../adapters/fetch.js";
