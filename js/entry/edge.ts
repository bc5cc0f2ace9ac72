/** Entry for edge runtimes that import a compiled module by `?module`. */

import wasm from "../../core.wasm?module";
import { start } from "../engine.js";

start(wasm);

export * from "../index.js";
