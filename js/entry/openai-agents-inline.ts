/** Entry `context-compactor/openai-agents` where its module comes as code, which every bundler can load apart. */

import { compiled } from "../module.js";
import { bringFrom } from "../engine.js";

bringFrom(() => compiled(import("../wasm/inline.js")));

export { contextCompactor, type AgentsCompactor, type AgentsCompactorOptions, type AgentsModel, type AgentsModelProvider } from "../adapters/openai-agents.js";
export { CompactingSession, type AgentsSession } from "../adapters/agent-session.js";
