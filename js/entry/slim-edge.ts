/** Entry `context-compactor/slim` for edge runtimes. */

export { initialize, type EngineFiles, type EngineSource } from "../engine.js";
export * from "./edge.js";
