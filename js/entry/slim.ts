/** Entry `context-compactor/slim`: the main entry with `initialize`, for apps that serve the module themselves. */

export { initialize, type EngineFiles, type EngineSource } from "../engine.js";
export * from "./main.js";
