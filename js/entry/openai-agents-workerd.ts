/** Entry `context-compactor/openai-agents` for Cloudflare Workers, which compile no bytes. */

import wasm from "../../core.wasm";
import { bringFrom } from "../engine.js";

bringFrom(() => wasm);

export { contextCompactor, type AgentsCompactor, type AgentsCompactorOptions, type AgentsModel, type AgentsModelProvider } from "../adapters/openai-agents.js";
export { CompactingSession, type AgentsSession } from "../adapters/agent-session.js";
