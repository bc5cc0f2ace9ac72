/** Entry `context-compactor/openai-agents` for edge runtimes. */

import { bring } from "../host/edge.js";

bring();

export * from "../adapters/openai-agents.js";
export * from "../adapters/agent-session.js";
