/** Entry without the module: the app loads it with `initialize`, for example from "context-compactor/core.wasm". */

export { initialize, type EngineSource } from "../engine.js";
export * from "../index.js";
