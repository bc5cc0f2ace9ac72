/** Entry for Cloudflare Workers, which compile no bytes: the module is imported as such. */

import wasm from "../../core.wasm";
import { start } from "../engine.js";

start(wasm);

export * from "../index.js";
