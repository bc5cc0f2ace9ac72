/** Entry `context-compactor/openai-agents` for edge runtimes that import a compiled module by `?module`. */

import wasm from "../../core.wasm?module";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { contextCompactor, type AgentsCompactor, type AgentsCompactorOptions, type AgentsModel, type AgentsModelProvider } from "../adapters/openai-agents.js";
export { CompactingSession, type AgentsSession } from "../adapters/agent-session.js";
