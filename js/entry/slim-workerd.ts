/** Entry `context-compactor/slim` for Cloudflare Workers. */

export { initialize, type EngineFiles, type EngineSource } from "../engine.js";
export * from "./workerd.js";
